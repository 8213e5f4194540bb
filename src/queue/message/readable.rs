//! Payloads that may be unreadable, for operators' tools.

use bytes::{Bytes, BytesMut};
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

type Decoded<T> = Result<T, Box<dyn std::error::Error + Sync + Send>>;

/// A payload that may not be a `T`, because SQL and other programs can enqueue any value.
///
/// Open a queue as `Queue<Readable<T>>` to see every message that `peek`, `dead_letters` and
/// `archived` return. With `Queue<T>`, one message that is not a `T` would fail its whole page. The
/// ids of dead letters can be passed to `replay` and `discard`.
///
/// A consumer of such a queue receives unreadable messages like all other messages, and has to
/// settle them itself. Only a null still counts as unreadable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readable<T> {
    /// The payload is a `T`.
    Yes(T),
    /// The payload is not a `T`.
    No {
        /// The payload in Postgres' binary format; `None` if it is null or its row is malformed.
        raw: Option<Bytes>,
        /// The reason why the payload cannot be read.
        why: String,
    },
}

impl<T> Readable<T> {
    /// Returns the payload, if it is a `T`.
    #[must_use]
    pub fn ok(self) -> Option<T> {
        match self {
            Self::Yes(payload) => Some(payload),
            Self::No { .. } => None,
        }
    }
}

impl<'a, T: FromSql<'a>> FromSql<'a> for Readable<T> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Decoded<Self> {
        let no = |why: Box<dyn std::error::Error + Sync + Send>| Self::No {
            raw: Some(Bytes::copy_from_slice(raw)),
            why: why.to_string(),
        };
        Ok(T::from_sql(ty, raw).map_or_else(no, Self::Yes))
    }

    fn from_sql_null(ty: &Type) -> Decoded<Self> {
        let no = |_| Self::No { raw: None, why: "it is null, or its row is malformed".to_owned() };
        Ok(T::from_sql_null(ty).map_or_else(no, Self::Yes))
    }

    fn accepts(ty: &Type) -> bool {
        T::accepts(ty)
    }
}

impl<T: ToSql> ToSql for Readable<T> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Decoded<IsNull> {
        match self {
            Self::Yes(payload) => payload.to_sql(ty, out),
            Self::No { why, .. } => Err(format!("an unreadable payload cannot be enqueued again ({why})").into()),
        }
    }

    fn accepts(ty: &Type) -> bool {
        T::accepts(ty)
    }

    to_sql_checked!();
}
