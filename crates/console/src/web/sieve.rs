//! A filter for dead letters, used by both pages and actions.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

/// Conditions on dead letters. Without any field, all dead letters match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Sieve {
    pub id: Option<i64>,
    /// The kind of error that selects a group: see [`kind`].
    pub error: Option<String>,
    /// Text in the error, ignoring case.
    pub text: Option<String>,
    pub key: Option<String>,
    /// Text in the metadata, as JSON.
    pub metadata: Option<String>,
    /// The earliest time at which the dead letters died, in UTC: `2026-11-24T10:00`.
    pub from: Option<String>,
    /// The time before which the dead letters died.
    pub until: Option<String>,
    /// The time at which the dead letters were counted for a confirmation. Later ones do not match.
    pub counted: Option<String>,
}

impl Sieve {
    /// Removes empty fields. An empty `error` stays, because it selects the dead letters without an
    /// error.
    pub fn tidied(mut self) -> Self {
        let Self { text, key, metadata, from, until, counted, .. } = &mut self;
        for field in [text, key, metadata, from, until, counted] {
            *field = field.take().filter(|text| !text.trim().is_empty());
        }
        self
    }

    /// Returns the same filter without the group.
    pub fn of_all_groups(&self) -> Self {
        Self { error: None, ..self.clone() }
    }

    pub fn is_all(&self) -> bool {
        Self { counted: None, ..self.clone() } == Self::default()
    }

    /// Returns conditions on a dead letter `d`. The parameter, such as `$1`, is bound to the result
    /// of [`Sieve::values`].
    pub fn conditions(&self, parameter: &str) -> String {
        let value = |name: &str| format!("({parameter}::text::jsonb ->> '{name}')");
        let mut all = format!("{parameter}::text is not null");
        for (is_there, condition) in [
            (self.id.is_some(), format!("d.id = {}::bigint", value("id"))),
            (self.error.is_some(), format!("{} = {}", kind(&line("d.error")), value("error"))),
            (self.text.is_some(), format!("strpos(lower(d.error), lower({})) > 0", value("text"))),
            (self.key.is_some(), format!("((d.own ->> 'keys')::text[])[1] = {}", value("key"))),
            (self.metadata.is_some(), format!("strpos(d.metadata::text, {}) > 0", value("metadata"))),
            (self.from.is_some(), format!("d.dead_at >= {}::timestamp at time zone 'UTC'", value("from"))),
            (self.until.is_some(), format!("d.dead_at < {}::timestamp at time zone 'UTC'", value("until"))),
            (self.counted.is_some(), format!("d.dead_at <= {}::timestamptz", value("counted"))),
        ] {
            if is_there {
                all = format!("{all} and {condition}");
            }
        }
        all
    }

    pub fn values(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns names and values for forms and links.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let id = self.id.map(|id| id.to_string());
        let fields = [
            ("id", &id),
            ("error", &self.error),
            ("text", &self.text),
            ("key", &self.key),
            ("metadata", &self.metadata),
            ("from", &self.from),
            ("until", &self.until),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }

    /// Returns the query string of a link: `error=no%20such%20host&key=ada`.
    pub fn query(&self) -> String {
        let of = |(name, value): (&str, String)| format!("{name}={}", utf8_percent_encode(&value, NON_ALPHANUMERIC));
        self.fields().into_iter().map(of).collect::<Vec<_>>().join("&")
    }

    pub fn in_words(&self) -> String {
        if self.is_all() {
            return "all dead letters".to_owned();
        }
        if let Some(id) = self.id {
            return format!("dead letter {id}");
        }
        let of = |what: &str, value: &Option<String>| value.as_ref().map(|value| format!("{what} {value:?}"));
        let said = [
            of("with errors like", &self.error),
            of("with an error that contains", &self.text),
            of("with key", &self.key),
            of("with metadata that contains", &self.metadata),
            self.from.as_ref().map(|from| format!("that died at or after {from} UTC")),
            self.until.as_ref().map(|until| format!("that died before {until} UTC")),
        ];
        format!("the dead letters {}", said.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// Returns SQL for the line that identifies an error. This is the last line of a Python traceback,
/// which names the exception, unless that line is indented. Otherwise it is the first line.
pub fn line(error: &str) -> String {
    let first = format!("pg_catalog.split_part(pg_catalog.ltrim({error}, E' \\n\\r\\t'), E'\\n', 1)");
    let last = format!(r"pg_catalog.substring({error}, '\n(\S[^\n]*)\s*$')");
    // Removes a carriage return at the end, which a form would send as CR LF.
    let line = format!("case when {error} like 'Traceback %' then coalesce({last}, {first}) else {first} end");
    format!("pg_catalog.left(pg_catalog.rtrim({line}, E'\\r'), 500)")
}

/// Returns SQL for the kind of an error's line. Addresses, ids and numbers become `#`, but a status
/// at the start, such as `404 Not Found` or `HTTP 500`, does not change. The expressions are
/// simple, because the server tries them at every character of every line.
pub fn kind(line: &str) -> String {
    let status = format!(r"coalesce(pg_catalog.substring({line}, '^(?:HTTP )?[1-5][0-9][0-9]\M'), '')");
    let rest = format!("pg_catalog.substr({line}, pg_catalog.length({status}) + 1)");
    let own = r"[a-z]+://\S+|[0-9a-f]{8}[0-9a-f-]*|[0-9]+";
    format!("pg_catalog.left({status} || pg_catalog.regexp_replace({rest}, '{own}', '#', 'g'), 200)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_fields_leave_all_letters_and_empty_error_is_kept() {
        let empty = || Some(String::new());
        let sieve = Sieve { text: empty(), key: empty(), from: empty(), ..Sieve::default() }.tidied();
        assert!(sieve.is_all() && sieve.conditions("$1") == "$1::text is not null", "{sieve:?}");
        let group = Sieve { error: empty(), ..Sieve::default() }.tidied();
        assert_eq!(
            (group.in_words().as_str(), group.query().as_str()),
            ("the dead letters with errors like \"\"", "error=")
        );
    }

    #[test]
    fn words_tell_every_field() {
        let some = |text: &str| Some(text.to_owned());
        let sieve = Sieve { text: some("host"), key: some("a&b"), until: some("2026-11-24T10:00"), ..Sieve::default() };
        let words = "the dead letters with an error that contains \"host\", with key \"a&b\", that died before 2026-11-24T10:00 UTC";
        assert_eq!(sieve.in_words(), words);
        assert_eq!(sieve.query(), "text=host&key=a%26b&until=2026%2D11%2D24T10%3A00");
        assert_eq!(Sieve { id: Some(7), ..Sieve::default() }.in_words(), "dead letter 7");
    }
}
