//! Routes: a topic, subject or stream that is computed from each message.

mod field;

use std::{borrow::Cow, str::FromStr, sync::Arc};

use trunkline::Metadata;

use crate::error::Error;

/// A route: text with fields that each message fills, such as `orders.{metadata.tenant}` or
/// `orders.{payload.customer.country}`.
///
/// The fields are `{queue}`, `{key}`, `{metadata.NAME}` and `{payload.FIELD.FIELD…}`; `{{` and `}}`
/// stand for braces. If the broker's names consist of parts with dots between them, a field fills
/// exactly one part: a message whose value contains a dot has no route. A field with a plus,
/// `{+metadata.NAME}`, may fill several parts. So may `{queue}`, because queues' names may contain
/// dots, and a field that is the whole route.
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
    Place(Place),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// The field's name in the route's text.
    name: String,
    field: Field,
    /// True if the value may fill several parts of a name.
    whole: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Field {
    Key,
    Metadata(String),
    Payload(Vec<String>),
}

/// The parts of a message that can fill a route.
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
                end.ok_or_else(|| bad(text, "unmatched brace; write {{ or }} for a brace that is part of the name"))?;
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
    fn of(template: &str, place: &str) -> Result<Self, Error> {
        let (whole, name) = place.strip_prefix('+').map_or((false, place), |name| (true, name));
        let field = match name.split_once('.') {
            None if place == "queue" => return Ok(Self::Queue),
            None if name == "key" => Field::Key,
            Some(("metadata", name)) if !name.is_empty() => Field::Metadata(name.to_owned()),
            Some(("payload", path)) if path.split('.').all(|field| !field.is_empty()) => {
                Field::Payload(path.split('.').map(str::to_owned).collect())
            }
            _ => {
                return Err(bad(
                    template,
                    &format!(
                        "{{{place}}} is no placeholder; there are {{queue}}, {{key}}, {{metadata.NAME}} and {{payload.FIELD}}"
                    ),
                ));
            }
        };
        Ok(Self::Place(Place { name: name.to_owned(), field, whole }))
    }
}

fn bad(template: &str, why: &str) -> Error {
    Error::usage(format!("the route {template:?} cannot be used: {why}"))
}

impl Template {
    pub(crate) fn queue() -> Self {
        Self(vec![Part::Queue])
    }

    /// Returns true if the route reads fields of payloads, which then must be JSON.
    #[must_use]
    pub fn reads_payloads(&self) -> bool {
        self.fields().any(|field| matches!(field, Field::Payload(_)))
    }

    /// Returns true if the route reads the keys of messages.
    #[must_use]
    pub fn reads_keys(&self) -> bool {
        self.fields().any(|field| *field == Field::Key)
    }

    fn fields(&self) -> impl Iterator<Item = &Field> {
        self.0.iter().filter_map(|part| match part {
            Part::Place(place) => Some(&place.field),
            _ => None,
        })
    }

    /// Returns the destination, if it is the same for all messages.
    #[must_use]
    pub fn fixed(&self) -> Option<&str> {
        match &self.0[..] {
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns a message's destination, or the reason why it has none. `separator` separates the
    /// parts of the broker's names.
    pub(crate) fn fill(&self, of: Fields<'_>, separator: Option<char>) -> Result<Arc<str>, String> {
        if let [Part::Text(text)] = &self.0[..] {
            return Ok(text.clone());
        }
        let is_all = self.0.len() == 1;
        let mut filled = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Queue => filled.push_str(of.queue),
                Part::Place(place) => {
                    let text = place.field.text(of)?;
                    let separator = separator.filter(|separator| !is_all && !place.whole && text.contains(*separator));
                    if let Some(separator) = separator {
                        let (name, text) = (&place.name, shortened(&text));
                        return Err(format!(
                            "no route: {{{name}}} is {text}, and {separator:?} would part it in two; write {{+{name}}} where it may"
                        ));
                    }
                    filled.push_str(&text);
                }
            }
        }
        Ok(filled.into())
    }
}

impl Field {
    fn text<'a>(&self, of: Fields<'a>) -> Result<Cow<'a, str>, String> {
        match self {
            Self::Key => of.key.map(Cow::Borrowed).ok_or_else(|| "no route: the message has no key".to_owned()),
            Self::Metadata(name) => {
                let text = of.metadata.get(name).map(Cow::Borrowed);
                text.ok_or_else(|| format!("no route: the metadata has no {name:?}"))
            }
            Self::Payload(path) => field::of(of.payload, path).map_err(|why| format!("no route: {why}")),
        }
    }
}

/// Quotes a text for an error, and truncates a long one.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 100;
    match text.char_indices().nth(MOST) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(template: &str) -> Result<String, String> {
        let metadata = Metadata::new().with("tenant", "acme").with("dotted", "a.b");
        let payload = br#"{"kind": "new", "to": {"zip": 7}, "id": 12345678901234567890124, "rate": 1.50}"#;
        let of = Fields { queue: "or.ders", key: Some("k1"), metadata: &metadata, payload };
        template.parse::<Template>().expect("a template").fill(of, Some('.')).map(|filled| filled.to_string())
    }

    #[test]
    fn places_are_filled_from_each_message() {
        assert_eq!(fill("a.{metadata.tenant}.{payload.kind}.{payload.to.zip}").as_deref(), Ok("a.acme.new.7"));
        assert_eq!(fill("{queue}-{key}").as_deref(), Ok("or.ders-k1"));
        assert_eq!(fill("{{x}}").as_deref(), Ok("{x}"));
    }

    #[test]
    fn numbers_stay_as_they_are_written() {
        assert_eq!(fill("a.{payload.id}").as_deref(), Ok("a.12345678901234567890124"));
        assert_eq!(fill("a.{+payload.rate}").as_deref(), Ok("a.1.50"));
    }

    #[test]
    fn place_fills_one_part_of_route_unless_marked() {
        for parts in ["a.{metadata.dotted}", "{metadata.dotted}-x", "a.{payload.rate}"] {
            assert!(fill(parts).is_err_and(|why| why.contains("would part it")), "{parts}");
        }
        assert_eq!(fill("a.{+metadata.dotted}").as_deref(), Ok("a.a.b"));
        assert_eq!(fill("{metadata.dotted}").as_deref(), Ok("a.b"), "it is the whole route");
    }

    #[test]
    fn missing_field_is_named() {
        assert!(fill("{metadata.none}").is_err_and(|why| why.contains("\"none\"")));
        assert!(fill("{payload.to}").is_err_and(|why| why.contains("not text")));
        assert!(fill("{payload.to.street}").is_err_and(|why| why.contains("to.street")));
    }

    #[test]
    fn a_bad_template_is_refused_at_the_start() {
        for bad in ["", "a{", "a}", "{nothing}", "{metadata.}", "{payload}", "{payload..x}", "{}", "{+}", "{+queue}"] {
            assert!(bad.parse::<Template>().is_err(), "{bad}");
        }
    }
}
