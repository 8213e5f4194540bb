//! Payloads as the program reads and writes them: raw bytes for `bytea`, and Postgres' text form
//! for all other types.

use bytes::{BufMut, BytesMut};
use postgres_types::{FromSql, IsNull, Kind, ToSql, Type, to_sql_checked};
use trunkline::{Metadata, Readable};
use uuid::Uuid;

use crate::{clean::clean, float};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Sync + Send>>;

/// A payload in its text form. [`accepts`] returns true for the types that can be converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(pub Vec<u8>);

impl Text {
    /// Returns a field's name and value: the payload as text, or its bytes in hexadecimal digits if
    /// they are not valid text.
    pub fn field(&self) -> (&'static str, String) {
        match std::str::from_utf8(&self.0) {
            Ok(text) => ("payload", text.to_owned()),
            Err(_) => ("payload_hex", self.0.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect()),
        }
    }

    /// Returns the start of the payload, for a table.
    pub fn preview(&self) -> String {
        const WIDTH: usize = 60;
        let text = String::from_utf8_lossy(&self.0[..self.0.len().min(4 * WIDTH)]);
        let mut shown: String = clean(&text.chars().take(WIDTH).collect::<String>());
        if text.chars().count() > WIDTH || self.0.len() > 4 * WIDTH {
            shown.push('…');
        }
        shown
    }

    /// Returns [`Text::preview`], or the reason why the payload is unreadable.
    pub fn preview_of(payload: &Readable<Self>) -> String {
        match payload {
            Readable::Yes(text) => text.preview(),
            Readable::No { why, .. } => format!("(unreadable: {})", clean(why)),
        }
    }

    fn parse<T: std::str::FromStr>(&self, what: &str) -> Outcome<T> {
        let text = self.utf8()?;
        text.trim().parse().map_err(|_| format!("{:?} is not {what}", self.preview()).into())
    }

    fn utf8(&self) -> Outcome<&str> {
        std::str::from_utf8(&self.0)
            .map_err(|cause| format!("it is not UTF-8 text (at byte {})", cause.valid_up_to()).into())
    }

    fn truth(&self) -> Outcome<bool> {
        match self.utf8()?.trim().to_ascii_lowercase().as_str() {
            "t" | "true" | "yes" | "on" | "1" => Ok(true),
            "f" | "false" | "no" | "off" | "0" => Ok(false),
            _ => Err(format!("{:?} is neither true nor false", self.preview()).into()),
        }
    }
}

/// Shortens a long error to its start and end, for a table.
pub fn preview_of_error(error: &str) -> String {
    const ENDS: (usize, usize) = (160, 80);
    let left_out = error.chars().count().saturating_sub(ENDS.0 + ENDS.1);
    if left_out == 0 {
        return error.to_owned();
    }
    let tail: String = error.chars().skip(ENDS.0 + left_out).collect();
    error.chars().take(ENDS.0).chain(" … ".chars()).chain(tail.chars()).collect()
}

/// Returns metadata for a table.
pub fn preview_of_metadata(metadata: &Metadata) -> String {
    let named: Vec<String> = metadata.iter().map(|(name, text)| format!("{name}={text}")).collect();
    Text(named.join(" ").into_bytes()).preview()
}

fn digit(half: u8) -> char {
    char::from(b"0123456789abcdef"[usize::from(half)])
}

/// Returns true for types whose values are sent as their text.
fn is_textual(ty: &Type) -> bool {
    [Type::TEXT, Type::VARCHAR, Type::BPCHAR, Type::NAME, Type::JSON].contains(ty)
        || matches!(ty.kind(), Kind::Enum(_))
        || ty.name() == "citext"
}

fn accepts(ty: &Type) -> bool {
    const NATIVE: [Type; 9] = [
        Type::BYTEA,
        Type::JSONB,
        Type::INT2,
        Type::INT4,
        Type::INT8,
        Type::FLOAT4,
        Type::FLOAT8,
        Type::BOOL,
        Type::UUID,
    ];
    NATIVE.contains(ty) || is_textual(ty)
}

impl ToSql for Text {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Outcome<IsNull> {
        match *ty {
            Type::BYTEA => out.put_slice(&self.0),
            Type::JSONB => {
                out.put_u8(1); // the version of the format
                out.put_slice(self.utf8()?.as_bytes());
            }
            Type::INT2 => out.put_i16(self.parse("a whole number of 16 bits")?),
            Type::INT4 => out.put_i32(self.parse("a whole number of 32 bits")?),
            Type::INT8 => out.put_i64(self.parse("a whole number of 64 bits")?),
            Type::FLOAT4 => out.put_f32(float::parse(self.utf8()?)?),
            Type::FLOAT8 => out.put_f64(float::parse(self.utf8()?)?),
            Type::BOOL => out.put_u8(u8::from(self.truth()?)),
            Type::UUID => out.put_slice(self.parse::<Uuid>("a UUID")?.as_bytes()),
            _ => out.put_slice(self.utf8()?.as_bytes()),
        }
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        accepts(ty)
    }

    to_sql_checked!();
}

impl FromSql<'_> for Text {
    fn from_sql(ty: &Type, raw: &[u8]) -> Outcome<Self> {
        let text = match *ty {
            Type::JSONB => return Ok(Self(raw.get(1..).unwrap_or_default().to_vec())),
            Type::INT2 => i16::from_sql(ty, raw)?.to_string(),
            Type::INT4 => i32::from_sql(ty, raw)?.to_string(),
            Type::INT8 => i64::from_sql(ty, raw)?.to_string(),
            Type::FLOAT4 => float::text(f32::from_sql(ty, raw)?),
            Type::FLOAT8 => float::text(f64::from_sql(ty, raw)?),
            Type::BOOL => bool::from_sql(ty, raw)?.to_string(),
            Type::UUID => Uuid::from_slice(raw)?.to_string(),
            _ => return Ok(Self(raw.to_vec())),
        };
        Ok(Self(text.into_bytes()))
    }

    fn accepts(ty: &Type) -> bool {
        accepts(ty)
    }
}

/// A payload that is never read. Verbs that use this type work with every payload type.
#[derive(Debug)]
pub struct Unread;

impl ToSql for Unread {
    fn to_sql(&self, _: &Type, _: &mut BytesMut) -> Outcome<IsNull> {
        Err("there is nothing to write".into())
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl FromSql<'_> for Unread {
    fn from_sql(_: &Type, _: &[u8]) -> Outcome<Self> {
        Ok(Self)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_as_it_was() {
        let cases = [
            (Type::BYTEA, "any\r"),
            (Type::TEXT, "naïve"),
            (Type::JSONB, "{\"a\": 1}"),
            (Type::INT2, "-7"),
            (Type::INT8, "9007199254740993"),
            (Type::FLOAT8, "0.1"),
            (Type::BOOL, "true"),
            (Type::UUID, "67e55044-10b1-426f-9247-bb680e5fe0c8"),
        ];
        for (ty, text) in cases {
            let (mut out, text) = (BytesMut::new(), Text(text.into()));
            assert!(text.to_sql(&ty, &mut out).is_ok(), "{ty}");
            assert_eq!(Text::from_sql(&ty, &out).ok(), Some(text), "{ty}");
        }
    }

    #[test]
    fn what_is_none_of_the_type_is_refused() {
        for ty in [Type::INT4, Type::FLOAT4, Type::BOOL, Type::UUID] {
            assert!(Text("soon".into()).to_sql(&ty, &mut BytesMut::new()).is_err(), "{ty}");
        }
        assert!(Text(vec![0xff]).to_sql(&Type::TEXT, &mut BytesMut::new()).is_err());
        assert!(!accepts(&Type::POINT));
    }
}
