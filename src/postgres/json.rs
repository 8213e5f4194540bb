//! Values that are stored as JSON.

mod finite;

use std::ops::{Deref, DerefMut};

use bytes::{BufMut, BytesMut};
use postgres_types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use self::finite::Finite;

/// The version byte that precedes the text of a `jsonb` value.
const VERSION: u8 = 1;

/// A value that is stored as JSON, in a column of type `jsonb` or `json`. The value can have any
/// type that serde can serialize and deserialize.
///
/// `Json` dereferences to the value itself.
///
/// An enqueue returns an error for a value that could not be read back. A value cannot be read back
/// if it has more than 127 levels of nesting, or if it contains NaN or an infinite number, which
/// JSON cannot represent.
///
/// Floating-point numbers are exact, except that `jsonb` has no negative zero. Another program may
/// have written an integer that needs more than 64 bits. A `serde_json::Value` then contains a
/// rounded number, but an `i128` or `u128` is exact.
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
        let start = out.len();
        serde_json::to_writer((&mut *out).writer(), &self.0)?;
        check(&out[start..], || self.0.serialize(Finite))?;
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

/// The maximum nesting depth of arrays and objects that `serde_json` can read.
const DEEPEST: usize = 127;

/// Returns an error if `text` could not be read back. `serde_json` writes `null` for an infinite
/// number or NaN. Most texts contain few brackets and no `null`, so this check is cheap.
fn check(
    text: &[u8],
    is_finite: impl FnOnce() -> Result<(), finite::NotFinite>,
) -> Result<(), Box<dyn std::error::Error + Sync + Send>> {
    if text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count() > DEEPEST {
        let depth = depth(text);
        if depth > DEEPEST {
            return Err(format!("it is nested {depth} deep, and at most {DEEPEST} can be read back").into());
        }
    }
    if std::str::from_utf8(text).is_ok_and(|text| text.contains("null")) {
        is_finite()?;
    }
    Ok(())
}

fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Serialize)]
    struct Reading {
        at: Option<u32>,
        celsius: Vec<(f64, f32)>,
    }

    fn written<T: Serialize + std::fmt::Debug>(value: T) -> Result<BytesMut, String> {
        let mut out = BytesMut::from(&b"before"[..]);
        Json(value).to_sql(&Type::JSONB, &mut out).map_err(|error| error.to_string())?;
        Ok(out.split_off(6))
    }

    fn nested(depth: usize) -> Value {
        (0..depth)
            .fold(json!("[[\"\\"), |inner, nr| if nr % 2 == 0 { json!([inner, "{"]) } else { json!({ "a\"[": inner }) })
    }

    #[test]
    fn written_json_can_be_read_back() {
        for value in [nested(0), nested(126), nested(127), json!("[".repeat(1000)), json!([null, { "null": null }])] {
            let text = written(&value).expect("written");
            assert_eq!(Json::<Value>::from_sql(&Type::JSONB, &text).expect("read").0, value);
        }
        for number in [f64::MAX, f64::MIN_POSITIVE, 123_456_789.123_456_79, 5e-324, 0.1 + 0.2] {
            let text = written(number).expect("written");
            let read = Json::<f64>::from_sql(&Type::JSONB, &text).expect("read").0;
            assert_eq!(read.to_bits(), number.to_bits());
        }
        // Tests the maximum, of which PostgreSQL writes all digits.
        let text = format!("\u{1}{}", f64::MAX);
        assert_eq!(Json::<f64>::from_sql(&Type::JSONB, text.as_bytes()).expect("read").0.to_bits(), f64::MAX.to_bits());
    }

    #[test]
    fn json_that_cannot_be_read_back_is_refused() {
        for depth in [128, 200, 1000] {
            let refused = written(nested(depth)).expect_err("too deep");
            assert_eq!(refused, format!("it is nested {depth} deep, and at most 127 can be read back"));
        }
        let reading = |celsius| Reading { at: None, celsius: vec![(1.0, celsius)] };
        assert!(written(reading(2.0)).is_ok(), "an option may be null");
        for celsius in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(
                written(reading(celsius)),
                Err("a number is not finite, and JSON has no word for it".to_owned())
            );
        }
    }
}
