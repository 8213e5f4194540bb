//! Fields of a payload, as the payload spells them. Numbers are not parsed, so their digits do not
//! change.

use std::{borrow::Cow, collections::HashMap};

use serde_json::value::RawValue;

/// Returns the text, number or boolean at a path, or the reason why there is none.
pub(super) fn of<'a>(payload: &'a [u8], path: &[String]) -> Result<Cow<'a, str>, String> {
    let shown = || path.join(".");
    let none = || format!("the payload has no {:?}", shown());
    let mut value: &RawValue =
        serde_json::from_slice(payload).map_err(|cause| format!("the payload is not JSON: {cause}"))?;
    for field in path {
        let mut fields: HashMap<Cow<'a, str>, &'a RawValue> = serde_json::from_str(value.get()).map_err(|_| none())?;
        value = fields.remove(&**field).ok_or_else(none)?;
    }
    let raw = value.get();
    match raw.bytes().next() {
        Some(b'"') => {
            serde_json::from_str(raw).map(Cow::Owned).map_err(|cause| format!("{:?} of the payload: {cause}", shown()))
        }
        Some(b'-' | b'0'..=b'9' | b't' | b'f') => Ok(raw.into()),
        _ => Err(format!("{:?} of the payload is not text", shown())),
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    fn field(payload: &str, path: &str) -> Result<String, String> {
        let path: Vec<_> = path.split('.').map(str::to_owned).collect();
        of(payload.as_bytes(), &path).map(std::borrow::Cow::into_owned)
    }

    #[test]
    fn what_stands_there_is_returned() {
        for (written, text) in [("18446744073709551617", "18446744073709551617"), ("1e400", "1e400"), ("-0.0", "-0.0")]
        {
            assert_eq!(field(&format!(r#"{{"a": {{"b": {written} }}}}"#), "a.b").as_deref(), Ok(text));
        }
        assert_eq!(field(r#"{"a\u0062": "x\u00fc\n"}"#, "ab").as_deref(), Ok("xü\n"));
        assert_eq!(field(r#"{"a": 1, "a": 2}"#, "a").as_deref(), Ok("2"), "as jsonb has it");
        let deep = format!(r#"{{"deep": {}{}, "a": true}}"#, "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(field(&deep, "a").as_deref(), Ok("true"));
    }

    #[test]
    fn what_is_no_text_is_named() {
        for (payload, path) in [(r#"{"a": [1]}"#, "a"), (r#"{"a": null}"#, "a"), (r#"{"a": {}}"#, "a")] {
            assert!(field(payload, path).is_err_and(|why| why.contains("not text")), "{payload}");
        }
        for (payload, path) in [("[]", "a"), (r#"{"a": 1}"#, "a.b"), (r#"{"a": {}}"#, "a.b")] {
            assert!(field(payload, path).is_err_and(|why| why.contains(path)), "{payload}");
        }
        assert!(field(r#"{"a": "\ud800"}"#, "a").is_err());
        assert!(field("{", "a").is_err_and(|why| why.contains("not JSON")));
    }
}
