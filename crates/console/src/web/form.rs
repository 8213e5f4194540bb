//! The fields of the forms for actions.

use serde::{Deserialize, Deserializer};
use trunkline::Description;

/// The fields of a form. The verb determines which of them are used.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Form {
    pub verb: String,
    pub queue: String,
    pub id: String,
    /// The error that selects a group of dead letters. An empty text selects the dead letters
    /// without an error.
    pub error: Option<String>,
    pub text: String,
    pub from: String,
    pub until: String,
    /// The time at which the confirmation page counted the dead letters.
    pub counted: String,
    pub schedule: String,
    #[serde(deserialize_with = "with_line_feeds")]
    pub payload: String,
    pub metadata: String,
    pub delay: String,
    pub priority: String,
    pub key: String,
    pub rate: String,
    /// The name of the queue to purge, which the visitor types for confirmation.
    pub confirm: String,
    /// A random value for each confirmation page. A form that is submitted twice acts only once.
    pub token: String,
    pub csrf: String,
}

/// Converts CR LF to LF. Browsers send CR LF for every line break of a multi-line field.
fn with_line_feeds<'de, D: Deserializer<'de>>(field: D) -> Result<String, D::Error> {
    Ok(String::deserialize(field)?.replace("\r\n", "\n"))
}

/// A field that the visitor types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    pub name: &'static str,
    pub label: &'static str,
    pub value: String,
    pub is_long: bool,
}

impl Form {
    /// Returns the names and values of all fields, except those in `without`.
    pub fn fields(&self, without: &[&str]) -> Vec<(&'static str, &str)> {
        let error = self.error.as_deref().map(|error| ("error", error));
        let others = [
            ("csrf", &self.csrf),
            ("verb", &self.verb),
            ("queue", &self.queue),
            ("id", &self.id),
            ("text", &self.text),
            ("from", &self.from),
            ("until", &self.until),
            ("counted", &self.counted),
            ("schedule", &self.schedule),
            ("payload", &self.payload),
            ("metadata", &self.metadata),
            ("delay", &self.delay),
            ("priority", &self.priority),
            ("key", &self.key),
            ("rate", &self.rate),
            ("token", &self.token),
        ];
        let all = others.map(|(name, value)| (name, value.as_str())).into_iter().chain(error);
        all.filter(|(name, value)| !without.contains(name) && (!value.is_empty() || *name == "error")).collect()
    }

    /// Returns the fields that the visitor typed, for a form that allows changes. Leaves out the
    /// priority and the key if they are empty and the queue has none.
    pub fn typed(&self, is: Option<&Description>) -> Vec<Typed> {
        let line = |name, label, value: &String| Typed { name, label, value: value.clone(), is_long: false };
        let payload = || Typed { is_long: true, ..line("payload", "Payload", &self.payload) };
        match self.verb.as_str() {
            "enqueue" => {
                let mut all = vec![
                    payload(),
                    line("delay", "Delay, such as 90s, 5m or 1h", &self.delay),
                    line("metadata", "Metadata, a JSON object of strings", &self.metadata),
                ];
                if is.is_none_or(|is| is.priorities > 1) || !self.priority.is_empty() {
                    all.push(line("priority", "Priority", &self.priority));
                }
                if is.is_none_or(|is| is.partitions > 0) || !self.key.is_empty() {
                    all.push(line("key", "Key", &self.key));
                }
                all
            }
            "edit" => vec![payload()],
            "reschedule" => vec![line("delay", "Due in, such as 90s, 5m or 1h", &self.delay)],
            "replay" => vec![line("rate", "Messages per second; if empty, all at once", &self.rate)],
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_what_was_typed_and_groups_without_error() {
        let form = Form { verb: "enqueue".into(), payload: "{bad".into(), delay: "1h".into(), ..Form::default() };
        let typed: Vec<(&str, String)> = form.typed(None).into_iter().map(|field| (field.name, field.value)).collect();
        assert!(typed.contains(&("payload", "{bad".to_owned())) && typed.contains(&("delay", "1h".to_owned())));
        assert_eq!(form.fields(&["payload", "delay"]), [("verb", "enqueue")]);
        let group = Form { error: Some(String::new()), ..Form::default() };
        assert_eq!(group.fields(&[]), [("error", "")]);
    }

    #[test]
    fn line_breaks_of_a_payload_are_not_those_of_the_browser() {
        let form: Form = serde_json::from_str(r#"{"payload": "one\r\ntwo\n\r\n"}"#).expect("read");
        assert_eq!(form.payload, "one\ntwo\n\n");
    }
}
