//! Payloads as bytes. Python's codecs convert them to values.

use bytes::{BufMut, Bytes, BytesMut};
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// The version byte before the text of a `jsonb`.
const VERSION: u8 = 1;

/// A payload in the binary format of its column: JSON as its text, an `int8` as eight bytes, a
/// `uuid` as sixteen bytes.
#[derive(Debug, Clone)]
pub struct Raw(pub Bytes);

impl Raw {
    pub fn copy(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

fn accepts_type(ty: &Type) -> bool {
    [Type::JSONB, Type::JSON, Type::BYTEA, Type::TEXT, Type::VARCHAR, Type::INT8, Type::UUID, Type::FLOAT8, Type::BOOL]
        .contains(ty)
}

impl ToSql for Raw {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        if *ty == Type::JSONB {
            out.put_u8(VERSION);
        }
        out.put_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        accepts_type(ty)
    }

    to_sql_checked!();
}

impl FromSql<'_> for Raw {
    fn from_sql(ty: &Type, raw: &[u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        match raw.split_first() {
            Some((&VERSION, text)) if *ty == Type::JSONB => Ok(Self::copy(text)),
            Some((version, _)) if *ty == Type::JSONB => {
                Err(format!("jsonb has version {version}, but only version 1 is supported").into())
            }
            _ => Ok(Self::copy(raw)),
        }
    }

    fn accepts(ty: &Type) -> bool {
        accepts_type(ty)
    }
}
