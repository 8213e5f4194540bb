//! Values as JSON.

use std::ops::{Deref, DerefMut};

use bytes::{BufMut, BytesMut};
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The version byte before a `jsonb`'s text.
const VERSION: u8 = 1;

/// A value that is stored as JSON, in a column of type `jsonb` or `json`. Any type that serde can serialize and deserialize.
///
/// It is used like the value itself.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # use trunkline::Json;
/// #[derive(Debug, Serialize, Deserialize)]
/// struct Mail {
///     to: String,
/// }
///
/// let mail = Json(Mail { to: "ada@example.org".to_owned() });
/// assert_eq!(mail.to, "ada@example.org");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Json<T>(pub T);

impl<T: Serialize> Serialize for Json<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Json<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

impl<T> Deref for Json<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Json<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> From<T> for Json<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T: Serialize + std::fmt::Debug> ToSql for Json<T> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        if *ty == Type::JSONB {
            out.put_u8(VERSION);
        }
        serde_json::to_writer(out.writer(), &self.0)?;
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        [Type::JSON, Type::JSONB].contains(ty)
    }

    to_sql_checked!();
}

impl<'a, T: Deserialize<'a>> FromSql<'a> for Json<T> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        let text = match raw.split_first() {
            Some((&VERSION, text)) if *ty == Type::JSONB => text,
            Some((version, _)) if *ty == Type::JSONB => {
                return Err(format!("jsonb of version {version}, where only 1 is known").into());
            }
            _ => raw,
        };
        Ok(Self(serde_json::from_slice(text)?))
    }

    fn accepts(ty: &Type) -> bool {
        [Type::JSON, Type::JSONB].contains(ty)
    }
}
