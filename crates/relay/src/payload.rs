//! Unconverted payloads: the bytes of a `bytea`, or the text of a `text`, `json` or `jsonb`.

use std::error::Error;

use bytes::{BufMut, Bytes, BytesMut};
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// A payload of a queue of `bytea`, `text`, `varchar`, `json` or `jsonb`, as bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Raw(pub Bytes);

type Converted<T> = Result<T, Box<dyn Error + Sync + Send>>;

impl FromSql<'_> for Raw {
    fn from_sql(ty: &Type, raw: &[u8]) -> Converted<Self> {
        let raw = match (ty, raw) {
            (&Type::JSONB, [1, rest @ ..]) => rest,
            (&Type::JSONB, _) => return Err("jsonb of an unknown version".into()),
            _ => raw,
        };
        Ok(Self(Bytes::copy_from_slice(raw)))
    }

    fn accepts(ty: &Type) -> bool {
        accepts(ty)
    }
}

impl ToSql for Raw {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Converted<IsNull> {
        match *ty {
            Type::BYTEA => {}
            _ if std::str::from_utf8(&self.0).is_err() => return Err("it is not UTF-8 text".into()),
            Type::JSON | Type::JSONB => {
                serde_json::from_slice::<serde::de::IgnoredAny>(&self.0)
                    .map_err(|cause| format!("it is not JSON: {cause}"))?;
                if *ty == Type::JSONB {
                    out.put_u8(1);
                }
            }
            _ => {}
        }
        out.put_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        accepts(ty)
    }

    to_sql_checked!();
}

fn accepts(ty: &Type) -> bool {
    matches!(*ty, Type::BYTEA | Type::TEXT | Type::VARCHAR | Type::JSON | Type::JSONB)
}
