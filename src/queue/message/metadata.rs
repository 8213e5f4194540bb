//! Metadata: names and values next to a payload. Postgres stores the metadata of one message as a
//! JSON object, and the metadata of a row as an array of such objects.

mod wire;

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};

pub(crate) use self::wire::{Beside, Carried, Stamped};

/// The maximum size of a message's metadata, in bytes of JSON.
pub const MAX_METADATA: usize = 16 << 10;

/// Data in addition to a message's payload: names with values. The metadata stays with the message
/// through retries, as a dead letter, after a replay, and in the archive.
///
/// The W3C defines the names `traceparent` and `tracestate`; see
/// [`TraceContext`](crate::TraceContext). Most messages have empty metadata, which needs no memory
/// beyond a pointer and no space in the database.
///
/// ```
/// # use trunkline::Metadata;
/// let metadata = Metadata::new().with("tenant", "acme").with("version", "2");
/// assert_eq!(metadata.get("tenant"), Some("acme"));
/// assert_eq!(metadata.iter().collect::<Vec<_>>(), [("tenant", "acme"), ("version", "2")]);
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Metadata(Option<Box<Entries>>); // a pointer, because every message has this field and it is usually empty

/// A list with at least one entry, sorted by name.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Entries(Vec<(Box<str>, Box<str>)>);

impl Metadata {
    /// Creates empty metadata.
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    /// Returns the metadata with this name and value added. An earlier value of the name is
    /// replaced.
    #[must_use]
    pub fn with(mut self, name: impl Into<Box<str>>, text: impl Into<Box<str>>) -> Self {
        self.insert(name, text);
        self
    }

    /// Adds a name and its value, or replaces the value of the name.
    pub fn insert(&mut self, name: impl Into<Box<str>>, text: impl Into<Box<str>>) {
        let (name, text) = (name.into(), text.into());
        let place = self.place(&name);
        let Entries(entries) = &mut **self.0.get_or_insert_default();
        match place {
            Ok(at) => entries[at].1 = text,
            Err(at) => entries.insert(at, (name, text)),
        }
    }

    /// Returns the value of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let Entries(entries) = &**self.0.as_ref()?;
        self.place(name).ok().map(|at| &*entries[at].1)
    }

    /// Removes a name, and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<Box<str>> {
        let (at, Entries(entries)) = (self.place(name).ok()?, &mut **self.0.as_mut()?);
        let (_, text) = entries.remove(at);
        if entries.is_empty() {
            self.0 = None;
        }
        Some(text)
    }

    fn entries(&self) -> &[(Box<str>, Box<str>)] {
        self.0.as_ref().map_or(&[], |entries| &entries.0)
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.entries().binary_search_by(|(known, _)| (**known).cmp(name))
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Returns true if there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Iterates over names and values, sorted by name.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.entries().iter().map(|(name, text)| (&**name, &**text))
    }

    /// Returns the W3C's `traceparent`: the message's trace, and the span that enqueued the
    /// message.
    pub(crate) fn traceparent(&self) -> Option<&str> {
        self.get("traceparent")
    }

    /// Returns the W3C's `tracestate`: the data that tracing systems add to the `traceparent`.
    pub(crate) fn tracestate(&self) -> Option<&str> {
        self.get("tracestate")
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self.iter()).finish()
    }
}

impl<N: Into<Box<str>>, T: Into<Box<str>>> FromIterator<(N, T)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (N, T)>>(entries: I) -> Self {
        entries.into_iter().fold(Self::new(), |metadata, (name, text)| metadata.with(name, text))
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// Reads a map. Other languages may write values that are not strings; such a value becomes its
/// JSON text.
impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Names)
    }
}

struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Metadata;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("names and texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Metadata, A::Error> {
        let mut metadata = Metadata::new();
        while let Some((name, value)) = entries.next_entry::<String, serde_json::Value>()? {
            match value {
                serde_json::Value::String(text) => metadata.insert(name, text),
                other => metadata.insert(name, other.to_string()),
            }
        }
        Ok(metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::Metadata;

    #[test]
    fn names_are_sorted_and_unique_and_emptied_metadata_equals_new() {
        let mut metadata: Metadata = [("b", "1"), ("a", "2"), ("b", "3")].into_iter().collect();
        assert_eq!(metadata.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "3")]);
        assert_eq!((metadata.remove("b").as_deref(), metadata.remove("b")), (Some("3"), None));
        assert_eq!((metadata.get("a"), metadata.get("b"), metadata.len()), (Some("2"), None, 1));
        metadata.remove("a");
        assert!(metadata.is_empty() && metadata == Metadata::new());
        assert_eq!(size_of::<Metadata>(), size_of::<usize>(), "part of every message");
    }

    #[test]
    fn json_and_back() {
        let metadata: Metadata = serde_json::from_str(r#"{"b": "x\"", "a": [1, null]}"#).expect("a map");
        assert_eq!(serde_json::to_string(&metadata).expect("JSON"), r#"{"a":"[1,null]","b":"x\""}"#);
        assert!(serde_json::from_str::<Metadata>("[]").is_err());
    }
}
