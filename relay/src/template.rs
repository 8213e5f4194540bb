//! Routes: a topic, subject or stream made of each message.

use std::{fmt::Write, str::FromStr, sync::Arc};

use serde_json::Value;
use trunkline::Metadata;

use crate::error::Error;

/// A route: text with places that are filled from each message, as `orders.{metadata.tenant}` or `orders.{payload.customer.country}`.
///
/// `{queue}`, `{key}`, `{metadata.NAME}`, `{payload.FIELD.FIELD…}`; `{{` and `}}` are braces.
///
/// ```
/// # use trunkline_relay::Template;
/// assert!("orders.{metadata.tenant}".parse::<Template>().is_ok());
/// let error = "orders.{metdata.tenant}".parse::<Template>().unwrap_err();
/// assert!(error.to_string().contains("{metdata.tenant}"), "{error}");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(Arc<str>),
    Queue,
    Key,
    Metadata(String),
    Payload(Vec<String>),
}

/// What places are filled from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a> {
    pub queue: &'a str,
    pub key: Option<&'a str>,
    pub metadata: &'a Metadata,
    pub payload: &'a [u8],
}

impl FromStr for Template {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            let end = rest.find('}').filter(|_| brace == "{");
            let end =
                end.ok_or_else(|| bad(text, "a brace is not paired; write {{ or }} for one that is part of the name"))?;
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain).into()));
            }
            parts.push(Part::of(text, &rest[..end])?);
            rest = &rest[end + 1..];
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain.into()));
        }
        if parts.is_empty() {
            return Err(bad(text, "it is empty"));
        }
        Ok(Self(parts))
    }
}

impl Part {
    fn of(whole: &str, place: &str) -> Result<Self, Error> {
        match place.split_once('.') {
            None if place == "queue" => Ok(Self::Queue),
            None if place == "key" => Ok(Self::Key),
            Some(("metadata", name)) if !name.is_empty() => Ok(Self::Metadata(name.to_owned())),
            Some(("payload", path)) if path.split('.').all(|field| !field.is_empty()) => {
                Ok(Self::Payload(path.split('.').map(str::to_owned).collect()))
            }
            _ => Err(bad(
                whole,
                &format!(
                    "{{{place}}} is no place; there are {{queue}}, {{key}}, {{metadata.NAME}} and {{payload.FIELD}}"
                ),
            )),
        }
    }
}

fn bad(template: &str, why: &str) -> Error {
    Error::usage(format!("the route {template:?} cannot be used: {why}"))
}

impl Template {
    /// The queue's name.
    pub(crate) fn queue() -> Self {
        Self(vec![Part::Queue])
    }

    /// Whether a route needs the fields of payloads, which then must be JSON.
    #[must_use]
    pub fn reads_payloads(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Payload(_)))
    }

    /// Whether it needs the keys of messages.
    #[must_use]
    pub fn reads_keys(&self) -> bool {
        self.0.contains(&Part::Key)
    }

    /// The text, where it is the same for all messages.
    #[must_use]
    pub fn fixed(&self) -> Option<&str> {
        match &self.0[..] {
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Where a message goes, or why it cannot be said.
    pub(crate) fn fill(&self, of: Fields<'_>) -> Result<Arc<str>, String> {
        if let [Part::Text(text)] = &self.0[..] {
            return Ok(text.clone());
        }
        let payload = if self.reads_payloads() {
            serde_json::from_slice(of.payload).map_err(|cause| format!("no route: the payload is not JSON: {cause}"))?
        } else {
            Value::Null
        };
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Queue => filled.push_str(of.queue),
                Part::Key => filled.push_str(of.key.ok_or("no route: the message has no key")?),
                Part::Metadata(name) => {
                    let text = of.metadata.get(name);
                    filled.push_str(text.ok_or_else(|| format!("no route: the metadata has no {name:?}"))?);
                }
                Part::Payload(path) => {
                    let found = path.iter().try_fold(&payload, |value, field| value.get(field));
                    match found {
                        Some(Value::String(text)) => filled.push_str(text),
                        Some(Value::Number(number)) => drop(write!(filled, "{number}")), // a String takes everything
                        Some(Value::Bool(is)) => drop(write!(filled, "{is}")),
                        Some(_) => return Err(format!("no route: {:?} of the payload is no text", path.join("."))),
                        None => return Err(format!("no route: the payload has no {:?}", path.join("."))),
                    }
                }
            }
        }
        Ok(filled.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(template: &str) -> Result<String, String> {
        let metadata = Metadata::new().with("tenant", "acme");
        let of = Fields {
            queue: "orders",
            key: Some("k1"),
            metadata: &metadata,
            payload: br#"{"kind": "new", "to": {"zip": 7}}"#,
        };
        template.parse::<Template>().expect("a template").fill(of).map(|filled| filled.to_string())
    }

    #[test]
    fn places_are_filled_from_each_message() {
        assert_eq!(fill("a.{metadata.tenant}.{payload.kind}.{payload.to.zip}").as_deref(), Ok("a.acme.new.7"));
        assert_eq!(fill("{queue}-{key}").as_deref(), Ok("orders-k1"));
        assert_eq!(fill("{{x}}").as_deref(), Ok("{x}"));
    }

    #[test]
    fn what_a_message_lacks_is_named() {
        assert!(fill("{metadata.none}").is_err_and(|why| why.contains("\"none\"")));
        assert!(fill("{payload.to}").is_err_and(|why| why.contains("no text")));
        assert!(fill("{payload.to.street}").is_err_and(|why| why.contains("to.street")));
    }

    #[test]
    fn a_bad_template_is_refused_at_the_start() {
        for bad in ["", "a{", "a}", "{nothing}", "{metadata.}", "{payload}", "{payload..x}", "{}"] {
            assert!(bad.parse::<Template>().is_err(), "{bad}");
        }
    }
}
