//! Payloads on the wire: elements of a Postgres array, written once and read once.

use bytes::{BufMut, Bytes, BytesMut};
use postgres_types::{FromSql, FromSqlOwned, IsNull, Kind as TypeKind, ToSql, Type, to_sql_checked};
use tracing::warn;

use crate::{
    error::{Error, Kind, Result, caught},
    postgres::{
        array::{BadArray, Each, Elements, Received},
        json::Json,
    },
};

/// The maximum number of messages in a row.
pub(crate) const MAX_BATCH: usize = 1024;
/// The maximum size of a payload, in bytes as Postgres stores it.
pub const MAX_PAYLOAD: usize = 64 << 20;

/// A payload: any type that can be converted to and from a Postgres value.
///
/// This trait is implemented for every type that implements [`ToSql`] and [`FromSql`]: `Vec<u8>`,
/// `String`, integers, `Uuid`, [`Json`](crate::Json), composite types with derived implementations,
/// and `Vec`s of these types for queues of arrays.
///
/// If an implementation of [`FromSql`] fails or panics, the attempt of that message fails, with the
/// text of the error or the panic as the reason. The other messages are delivered. If a [`ToSql`]
/// panics, the call that enqueues panics, and nothing is enqueued.
pub trait Payload: ToSql + FromSqlOwned + Send + Sync + 'static {}

impl<T: ToSql + FromSqlOwned + Send + Sync + 'static> Payload for T {}

/// A payload type that names the type of its column, so that both always match: see
/// [`Settings::of`](crate::Settings::of). You can implement it for your own types.
pub trait ColumnType {
    /// The type's name in Postgres, as `create table` accepts it.
    const NAME: &'static str;
}

impl<T> ColumnType for Json<T> {
    const NAME: &'static str = "jsonb";
}

impl ColumnType for serde_json::Value {
    const NAME: &'static str = "jsonb";
}

impl ColumnType for String {
    const NAME: &'static str = "text";
}

impl ColumnType for Vec<u8> {
    const NAME: &'static str = "bytea";
}

impl ColumnType for Binary {
    const NAME: &'static str = "bytea";
}

impl ColumnType for i16 {
    const NAME: &'static str = "int2";
}

impl ColumnType for i32 {
    const NAME: &'static str = "int4";
}

impl ColumnType for i64 {
    const NAME: &'static str = "int8";
}

impl ColumnType for f64 {
    const NAME: &'static str = "float8";
}

impl ColumnType for bool {
    const NAME: &'static str = "bool";
}

impl ColumnType for uuid::Uuid {
    const NAME: &'static str = "uuid";
}

/// Bytes that can be shared without copying, for queues of `bytea`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Binary(pub Bytes);

impl ToSql for Binary {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.put_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::BYTEA
    }

    to_sql_checked!();
}

impl FromSql<'_> for Binary {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(Bytes::copy_from_slice(raw)))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::BYTEA
    }
}

/// The type of a queue's payload column, for encoding and decoding.
#[derive(Debug, Clone)]
pub(crate) struct PayloadColumn {
    /// The array type of the column.
    pub array: Type,
    /// The array's element type: the type of a payload.
    element: Type,
    /// The element type without its domains. Rust types match only this type.
    base: Type,
}

impl PayloadColumn {
    /// Creates the column from the type of `payload` in a queue's table.
    pub fn new(array: Type) -> Option<Self> {
        let TypeKind::Array(element) = array.kind() else { return None };
        let element = element.clone();
        let mut base = element.clone();
        while let TypeKind::Domain(under) = base.kind() {
            base = under.clone();
        }
        Some(Self { array, element, base })
    }

    /// Returns the payload's type as the user named it.
    pub fn name(&self) -> String {
        match self.base.kind() {
            TypeKind::Array(member) => format!("{}[]", member.name()),
            _ => self.element.name().to_owned(),
        }
    }

    pub fn check<T: Payload>(&self, queue: &str) -> Result<()> {
        if <T as ToSql>::accepts(&self.base) && <T as FromSql>::accepts(&self.base) {
            return Ok(());
        }
        Err(Error::new(Kind::WrongType {
            queue: queue.to_owned(),
            column: self.name(),
            rust: std::any::type_name::<T>(),
        }))
    }

    /// Appends one element: its length and its value. After an error, `out` may contain a part of
    /// the element.
    pub fn encode<T: Payload>(&self, payload: &T, out: &mut BytesMut) -> Result<()> {
        let failed = |cause| Error::new(Kind::Encode { rust: std::any::type_name::<T>(), column: self.name(), cause });
        let start = out.len();
        out.put_i32(0);
        if let IsNull::Yes = payload.to_sql(&self.base, out).map_err(failed)? {
            return Err(failed("a message's payload cannot be null".into()));
        }
        let bytes = out.len() - start - 4;
        if bytes > MAX_PAYLOAD {
            return Err(Error::new(Kind::TooLarge { bytes, limit: MAX_PAYLOAD }));
        }
        let text = self.base == Type::TEXT || self.base == Type::VARCHAR;
        if text && let Some(at) = out[start + 4..].iter().position(|byte| *byte == 0) {
            return Err(failed(
                format!("the text has a NUL character at byte {at}, which Postgres cannot store").into(),
            ));
        }
        out[start..start + 4].copy_from_slice(&(bytes as i32).to_be_bytes());
        Ok(())
    }

    /// Returns the parameter for elements that [`PayloadColumn::encode`] wrote one after another.
    pub fn array<'a>(&self, count: usize, elements: &'a [u8]) -> Elements<'a> {
        Elements { element: self.element.oid(), count: count as i32, nulls: false, values: elements }
    }

    pub fn element(&self) -> u32 {
        self.element.oid()
    }

    /// Passes each message of a received batch to `each`: its id, its element, and its payload, or
    /// the reason why it is not a `T`. Payloads are decoded directly from the wire buffer. If the
    /// whole batch is unreadable, returns the reason.
    ///
    /// # Errors
    /// The elements have a different type from that of the column when the queue was opened.
    pub fn decode<T: Payload>(
        &self,
        queue: &str,
        (first_id, size): (i64, usize),
        batch: &Received<'_>,
        mut each: impl FnMut(i64, Option<&[u8]>, Result<T>),
    ) -> Result<Option<Error>> {
        let mut elements = match self.elements::<T>(queue, batch)? {
            Ok(elements) => elements,
            Err(cause) => return Ok(Some(unreadable::<T>(queue, first_id, cause))),
        };
        if !(1..=MAX_BATCH).contains(&size) {
            return Ok(Some(unreadable::<T>(queue, first_id, format!("its row says it has {size} messages").into())));
        }
        // Wraps the ids around, because a range would overflow after the largest id.
        for id in (0_i64..).map(|nr| first_id.wrapping_add(nr)).take(size) {
            let raw = elements.next().unwrap_or_else(|| Err("its row has fewer payloads than messages".into()));
            match raw {
                Ok(Some(raw)) => each(id, Some(raw), self.decode_one(queue, id, raw)),
                Ok(None) => each(id, None, Err(unreadable::<T>(queue, id, "it is null".into()))),
                Err(cause) => each(id, None, Err(unreadable::<T>(queue, id, cause))),
            }
        }
        if elements.left > 0 {
            warn!(
                queue,
                id = first_id,
                more = elements.left,
                "a row has more payloads than messages; the extra payloads are skipped"
            );
        }
        Ok(None)
    }

    /// Returns all elements of a received batch with their ids, or the first error. If a batch
    /// cannot be split into elements, it counts as one null.
    pub fn decode_all<T: Payload>(&self, queue: &str, first_id: i64, batch: &Received<'_>) -> Result<Vec<(i64, T)>> {
        let page = |id, cause| Error::new(Kind::Page { queue: queue.to_owned(), id, cause });
        let without = |id, cause| match caught(|| T::from_sql_null(&self.base)) {
            Ok(Ok(payload)) => Ok(payload),
            _ => Err(page(id, unreadable::<T>(queue, id, cause))),
        };
        let elements = match self.elements::<T>(queue, batch)? {
            Ok(elements) => elements,
            Err(cause) => return Ok(vec![(first_id, without(first_id, cause)?)]),
        };
        let decode = |(id, raw): (i64, Result<Option<&[u8]>, BadArray>)| match raw {
            Ok(Some(raw)) => Ok((id, self.decode_one(queue, id, raw).map_err(|cause| page(id, cause))?)),
            Ok(None) => Ok((id, without(id, "it is null".into())?)),
            Err(cause) => Ok((id, without(id, cause)?)),
        };
        (0_i64..).map(|nr| first_id.wrapping_add(nr)).zip(elements).map(decode).collect()
    }

    /// Returns the elements, if the batch is one array. Returns an error if their type differs from
    /// the column's type when the queue was opened, because they would be decoded wrongly.
    fn elements<'a, T>(&self, queue: &str, batch: &Received<'a>) -> Result<Result<Each<'a>, BadArray>> {
        match batch.element() {
            Some(found) if found != self.element.oid() => {
                let found = Type::from_oid(found).map_or_else(|| format!("type {found}"), |ty| ty.name().to_owned());
                Err(Error::new(Kind::WrongType {
                    queue: queue.to_owned(),
                    column: format!("{found} (it was {} when the queue was opened)", self.name()),
                    rust: std::any::type_name::<T>(),
                }))
            }
            _ => Ok(batch.elements()),
        }
    }

    /// Decodes an element, given without its length. If the user's decoder panics, only this
    /// message fails, as after an error.
    pub fn decode_one<T: Payload>(&self, queue: &str, id: i64, raw: &[u8]) -> Result<T> {
        let decoded = caught(|| T::from_sql(&self.base, raw));
        decoded.unwrap_or_else(|panic| Err(panicked(&panic))).map_err(|cause| unreadable::<T>(queue, id, cause))
    }
}

/// Returns the reason why a payload whose decoder panicked cannot be read.
pub(crate) fn panicked(panic: &str) -> BadArray {
    format!("its decoder panicked: {panic}").into()
}

/// Returns the error of a payload that its reader refused.
pub(crate) fn refused(queue: &str, id: i64, cause: BadArray) -> Error {
    Error::new(Kind::Decode { queue: queue.to_owned(), id, rust: "its consumer's type", cause })
}

fn unreadable<T>(queue: &str, id: i64, cause: BadArray) -> Error {
    Error::new(Kind::Decode { queue: queue.to_owned(), id, rust: std::any::type_name::<T>(), cause })
}
