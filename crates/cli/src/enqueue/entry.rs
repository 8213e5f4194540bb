//! Messages as arguments and lines describe them.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use serde_json::value::RawValue;
use trunkline::{Description, Draft, Metadata, Unique};

use crate::{text::Text, time};

/// Fields that describe a message.
const KNOWN: [&str; 10] =
    ["payload", "payload_hex", "delay", "at", "due_at", "metadata", "priority", "unique", "key", "columns"];
/// Other fields that the program prints. They are ignored, because the message gets a new id in its
/// new queue, and its attempts are counted from the start.
const PASSED_OVER: [&str; 9] =
    ["id", "state", "attempt", "enqueued_at", "ended_at", "dead_at", "archived_at", "error", "unreadable"];

/// The maximum number of bytes in a key.
const LONGEST_KEY: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    After(Duration),
    At(SystemTime),
}

/// A message to enqueue.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    payload: Cow<'a, Text>,
    due: Due,
    metadata: Metadata,
    priority: u8,
    pub unique: Option<Unique>,
    key: Option<String>,
    columns: Metadata,
}

impl Entry<'_> {
    pub fn draft(&self) -> Draft<&Text> {
        let draft = Draft::new(&*self.payload).metadata(self.metadata.clone()).priority(self.priority);
        let draft = match &self.key {
            Some(key) => draft.key(key.as_str()),
            None => draft,
        };
        let draft = match &self.unique {
            Some(unique) => draft.unique(unique.clone()),
            None => draft,
        };
        let draft = self.columns.iter().fold(draft, |draft, (name, text)| draft.column(name, text));
        match self.due {
            Due::After(delay) => draft.after(delay),
            Due::At(time) => draft.at(time),
        }
    }

    /// Returns the reason why a queue cannot have a message with this priority and these keys.
    pub fn misfit(&self, queue: &Description) -> Option<String> {
        match (&self.key, &self.unique) {
            _ if u32::from(self.priority) >= queue.priorities.max(1) => {
                let highest = queue.priorities.max(1) - 1;
                Some(format!("its priority is {}: the highest of this queue is {highest}", self.priority))
            }
            (None, _) if queue.partitions > 0 => {
                Some("it has no key, which each message of this queue needs".to_owned())
            }
            (Some(_), _) if queue.partitions == 0 => Some("it has a key, and this queue has no keys".to_owned()),
            (Some(key), _) if key.is_empty() || key.len() > LONGEST_KEY => {
                Some(format!("its key has {} bytes: expected 1 to {LONGEST_KEY}", key.len()))
            }
            (_, Some(_)) if !queue.uniqueness => {
                Some("it has a unique key, and this queue keeps no unique keys".to_owned())
            }
            _ => None,
        }
    }
}

/// Defaults for messages that do not set their own values.
#[derive(Debug, Clone)]
pub struct Usual {
    pub due: Due,
    pub metadata: Metadata,
    pub priority: u8,
    pub unique: Option<Unique>,
    /// The time for which a line's unique key is kept.
    pub within: Option<Duration>,
    /// True if a message replaces a waiting message with the same unique key.
    pub replaces: bool,
    pub key: Option<String>,
    /// The values of columns that users added to the queue's table.
    pub columns: Metadata,
}

/// The format of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// The line is the payload.
    Payload,
    /// The line is a JSON object.
    Object {
        /// The type of the queue's payloads.
        payload: String,
        /// True if the payloads are themselves JSON.
        of_json: bool,
    },
}

impl Usual {
    /// Returns an entry with this payload and the defaults.
    pub fn payload<'a>(&self, payload: &'a Text) -> Entry<'a> {
        Entry {
            payload: Cow::Borrowed(payload),
            due: self.due,
            metadata: self.metadata.clone(),
            priority: self.priority,
            unique: self.unique.clone(),
            key: self.key.clone(),
            columns: self.columns.clone(),
        }
    }

    /// Returns a unique key with the default options.
    pub fn key(&self, key: &str) -> Unique {
        let unique = Unique::key(key);
        let unique = self.within.map_or(unique.clone(), |within| unique.within(within));
        if self.replaces { unique.replacing() } else { unique }
    }

    /// Parses a line. If it is not a message, fails with the reason.
    pub fn line<'a>(&self, line: &'a Text, form: &Form) -> Result<Entry<'a>, String> {
        let Form::Object { payload, of_json } = form else { return Ok(self.payload(line)) };
        let fields = Fields::of(line)?;
        let mut metadata = self.metadata.clone();
        fields.texts("metadata")?.iter().for_each(|(name, text)| metadata.insert(name, text));
        let mut columns = self.columns.clone();
        fields.texts("columns")?.iter().for_each(|(name, text)| columns.insert(name, text));
        let due = fields.due()?.unwrap_or(self.due);
        let priority = fields.priority()?.unwrap_or(self.priority);
        let unique = fields.unique()?.map(|key| self.key(&key)).or_else(|| self.unique.clone());
        let key = fields.key()?.or_else(|| self.key.clone());
        let payload = Cow::Owned(fields.payload(payload, *of_json)?);
        Ok(Entry { payload, due, metadata, priority, unique, key, columns })
    }
}

/// The fields of a line, not yet parsed. If a name occurs twice, the last value applies, as for
/// `jsonb`.
struct Fields<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Fields<'a> {
    fn of(Text(line): &'a Text) -> Result<Self, String> {
        let fields: BTreeMap<String, &RawValue> =
            serde_json::from_slice(line).map_err(|cause| format!("it is not a JSON object: {}", told(&cause)))?;
        match fields.keys().map(String::as_str).find(|name| !KNOWN.contains(name) && !PASSED_OVER.contains(name)) {
            Some(other) => Err(format!("the field {other:?} is unknown; a message is made of {}", KNOWN.join(", "))),
            None => Ok(Self(fields)),
        }
    }

    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.get(name).copied()
    }

    /// Returns a field that is present and not null.
    fn some(&self, name: &str) -> Option<&'a RawValue> {
        self.get(name).filter(|value| value.get() != "null")
    }

    fn payload(&self, ty: &str, of_json: bool) -> Result<Text, String> {
        let value = match (self.get("payload"), self.get("payload_hex")) {
            (Some(value), None) => value,
            (None, Some(digits)) => {
                let digits = text(digits).and_then(|digits| bytes(&digits));
                return digits.map(Text).ok_or_else(|| "payload_hex must be pairs of hexadecimal digits".to_owned());
            }
            (None, None) => return Err("it has no payload: expected {\"payload\": …}".to_owned()),
            (Some(_), Some(_)) => return Err("it has both payload and payload_hex: use one".to_owned()),
        };
        let json = value.get();
        let found = match json.as_bytes().first() {
            _ if of_json => return Ok(Text(json.into())),
            Some(b'"') => {
                let text =
                    text(value).ok_or_else(|| "its payload has half a surrogate pair, which is not text".to_owned());
                return text.map(|text| Text(text.into()));
            }
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'n') => "null",
            _ => return Ok(Text(json.into())), // accepts a number, true and false as text
        };
        Err(format!("its payload is {found}, and the queue's are of type {ty}: write it as a string"))
    }

    fn priority(&self) -> Result<Option<u8>, String> {
        let Some(value) = self.some("priority") else { return Ok(None) };
        let priority = value.get().parse();
        priority.map(Some).map_err(|_| format!("its priority is {}: expected a whole number from 0 to 9", value.get()))
    }

    fn unique(&self) -> Result<Option<String>, String> {
        let Some(value) = self.some("unique") else { return Ok(None) };
        text(value).map(Some).ok_or_else(|| format!("its unique key is {}: expected a string", value.get()))
    }

    fn key(&self) -> Result<Option<String>, String> {
        let Some(value) = self.some("key") else { return Ok(None) };
        text(value).map(Some).ok_or_else(|| format!("its key is {}: expected a string", value.get()))
    }

    fn due(&self) -> Result<Option<Due>, String> {
        let said = ["delay", "at", "due_at"].into_iter().filter_map(|name| Some((name, self.some(name)?)));
        let said: Vec<(&str, &RawValue)> = said.collect();
        let wrong = |name: &str, why: String| format!("{name}: {why}");
        match said.as_slice() {
            [] => Ok(None),
            [(name @ "delay", value)] => {
                // The value is a number of seconds, or a string with a unit.
                let delay = time::duration(&text(value).unwrap_or_else(|| value.get().to_owned()));
                delay.map(|delay| Some(Due::After(delay))).map_err(|why| wrong(name, why))
            }
            [(name, value)] => {
                let time = time::instant(&text(value).unwrap_or_default());
                time.map(|time| Some(Due::At(time))).map_err(|why| wrong(name, why))
            }
            [(one, _), (other, _), ..] => Err(format!("it has both {one} and {other}: use one")),
        }
    }

    /// Returns a field that contains names and texts.
    fn texts(&self, field: &str) -> Result<Metadata, String> {
        let Some(value) = self.some(field) else { return Ok(Metadata::new()) };
        serde_json::from_str(value.get())
            .map_err(|_| format!("{field} must be an object of names and texts, as {{\"tenant\": \"acme\"}}"))
    }
}

fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = digits.chars().map(|c| Some(c.to_digit(16)? as u8)).collect::<Option<_>>()?;
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    Some(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

/// Describes the error without its line number, because the caller adds the number of the line.
fn told(cause: &serde_json::Error) -> String {
    cause.to_string().replace(" at line 1 column ", " at byte ")
}

/// Parses an argument `NAME=VALUE`.
pub fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected a name and a value, such as tenant=acme".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual() -> Usual {
        Usual {
            due: Due::After(Duration::from_secs(7)),
            metadata: Metadata::new().with("a", "1").with("b", "2"),
            priority: 1,
            unique: None,
            within: None,
            replaces: false,
            key: None,
            columns: Metadata::new().with("tenant", "acme"),
        }
    }

    fn read(line: &str, ty: &str) -> Result<Entry<'static>, String> {
        let form = Form::Object { payload: ty.to_owned(), of_json: ty == "jsonb" };
        let line = Text(line.into());
        let Entry { payload, due, metadata, priority, unique, key, columns } = usual().line(&line, &form)?;
        let payload = Cow::Owned(payload.into_owned());
        Ok(Entry { payload, due, metadata, priority, unique, key, columns })
    }

    #[test]
    fn a_line_says_its_payload_as_the_type_has_it() {
        for (ty, payload, wanted) in [
            ("text", r#""say \"h\u00e9\"""#, "say \"hé\""),
            ("text", "1.50", "1.50"),
            ("bool", "true", "true"),
            ("bytea", r#""\u0000""#, "\0"),
            ("jsonb", r#"{"n": 1.10000000000000000001}"#, r#"{"n": 1.10000000000000000001}"#),
            ("jsonb", "\"x\"", "\"x\""),
            ("jsonb", "null", "null"),
        ] {
            let entry = read(&format!("{{\"payload\": {payload} }}"), ty);
            assert_eq!(entry, Ok(usual().payload(&Text(wanted.into()))), "{ty} {payload}");
        }
        let bytes = read(r#"{"payload_hex": "00fF"}"#, "bytea").expect("digits");
        assert_eq!(*bytes.payload, Text(vec![0, 0xff]));
    }

    #[test]
    fn line_gives_due_time_metadata_and_columns_or_defaults_hold() {
        let line = r#"{"id": 5, "attempt": 2, "payload": "x", "delay": "1h30m", "at": null, "metadata": {"b": "3", "n": 4}, "columns": {"price": 1.5}}"#;
        let entry = read(line, "text").expect("a message");
        assert_eq!(entry.due, Due::After(Duration::from_secs(5400)));
        assert_eq!(entry.metadata, usual().metadata.with("b", "3").with("n", "4"));
        assert_eq!(entry.columns, usual().columns.with("price", "1.5"));
        assert_eq!(
            read(r#"{"payload":"x","delay":0.5}"#, "text").map(|entry| entry.due),
            Ok(Due::After(Duration::from_millis(500)))
        );
        let time = time::instant("2030-01-01T08:00:00.000001Z").expect("a time");
        for name in ["at", "due_at"] {
            let line =
                format!("{{\"payload\": \"x\", \"{name}\": \"2030-01-01T10:00:00.000001+02:00\", \"metadata\": null}}");
            let entry = read(&line, "text").expect("a message");
            assert_eq!((entry.due, entry.metadata), (Due::At(time), usual().metadata), "{name}");
        }
    }

    #[test]
    fn a_line_that_is_no_message_says_why() {
        for (line, why) in [
            ("", "not a JSON object: EOF"),
            ("payload", "not a JSON object: expected value at byte 1"),
            ("[]", "not a JSON object: invalid type: sequence"),
            (r#"{"payload": "x"} {}"#, "not a JSON object: trailing characters at byte 18"),
            ("{}", "no payload"),
            (r#"{"payload_hex": "0"}"#, "pairs of hexadecimal digits"),
            (r#"{"payload_hex": "+f"}"#, "pairs of hexadecimal digits"),
            (r#"{"payload": "x", "payload_hex": "00"}"#, "it has both payload and payload_hex"),
            (r#"{"payload": "x", "dely": 1}"#, "the field \"dely\" is unknown; a message is made of payload"),
            (r#"{"payload": "x", "delay": 1, "due_at": "2030-01-01T08:00:00Z"}"#, "it has both delay and due_at"),
            (r#"{"payload": "x", "delay": -1}"#, "delay: expected 0 to 36500 days"),
            (r#"{"payload": "x", "delay": []}"#, "delay: expected a time"),
            (r#"{"payload": "x", "at": 7}"#, "at: expected a point in time"),
            (r#"{"payload": "x", "at": "tomorrow"}"#, "at: expected a point in time"),
            (r#"{"payload": "x", "metadata": ["a"]}"#, "metadata must be an object"),
            (r#"{"payload": "x", "columns": 7}"#, "columns must be an object"),
            (r#"{"payload": {"a": 1}}"#, "its payload is an object, and the queue's are of type text"),
            (r#"{"payload": null}"#, "its payload is null"),
            (r#"{"payload": "\ud800"}"#, "half a surrogate pair"),
        ] {
            let error = read(line, "text").expect_err(line);
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn a_name_has_a_text() {
        assert_eq!(named("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(named("a="), Ok(("a".to_owned(), String::new())));
        assert!(["a", "=b", ""].iter().all(|text| named(text).is_err()));
    }
}
