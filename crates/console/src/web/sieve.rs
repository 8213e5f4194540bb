//! Which dead letters: of a page, of an action, by the same fields.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

/// What letters have to have. Without a field, all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Sieve {
    pub id: Option<i64>,
    /// What all errors of a group have: see [`kind`].
    pub error: Option<String>,
    /// Somewhere in the error, in large letters or small.
    pub text: Option<String>,
    pub key: Option<String>,
    /// Somewhere in the metadata, as JSON.
    pub metadata: Option<String>,
    /// Died then or later, in UTC: `2026-11-24T10:00`.
    pub from: Option<String>,
    /// Died before.
    pub until: Option<String>,
}

impl Sieve {
    /// Fields that say nothing are none; but a group may be that of letters without an error.
    pub fn tidied(mut self) -> Self {
        for field in [&mut self.text, &mut self.key, &mut self.metadata, &mut self.from, &mut self.until] {
            *field = field.take().filter(|text| !text.trim().is_empty());
        }
        self
    }

    /// The same, of all groups.
    pub fn of_all_groups(&self) -> Self {
        Self { error: None, ..self.clone() }
    }

    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Conditions on a dead letter `d`. The parameter, such as `$1`, gets what [`Sieve::values`]
    /// returns.
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

    /// Names and values, for forms and links.
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

    /// For a link: `error=no%20such%20host&key=ada`.
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
            of("of errors like", &self.error),
            of("with an error that contains", &self.text),
            of("of key", &self.key),
            of("with metadata that contain", &self.metadata),
            self.from.as_ref().map(|from| format!("that died from {from} UTC on")),
            self.until.as_ref().map(|until| format!("that died before {until} UTC")),
        ];
        format!("the dead letters {}", said.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// The line of an error by which it is known: the first one, or of a traceback of Python the last
/// that is not indented, which names the exception.
pub fn line(error: &str) -> String {
    let first = format!("pg_catalog.split_part(pg_catalog.ltrim({error}, E' \\n\\r\\t'), E'\\n', 1)");
    let last = format!(r"pg_catalog.substring({error}, '\n(\S[^\n]*)\s*$')");
    format!(
        "pg_catalog.left(case when {error} like 'Traceback %' then coalesce({last}, {first}) else {first} end, 500)"
    )
}

/// What is the same in lines that differ by an address, an id or a number alone: these are `#`. A
/// status at the beginning, such as `404 Not Found` or `HTTP 500`, stays. The expressions are
/// plain, as they are tried at each letter of each line.
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
    fn fields_that_say_nothing_leave_all_letters_and_a_group_may_have_no_error() {
        let empty = || Some(String::new());
        let sieve = Sieve { text: empty(), key: empty(), from: empty(), ..Sieve::default() }.tidied();
        assert!(sieve.is_all() && sieve.conditions("$1") == "$1::text is not null", "{sieve:?}");
        let group = Sieve { error: empty(), ..Sieve::default() }.tidied();
        assert_eq!(
            (group.in_words().as_str(), group.query().as_str()),
            ("the dead letters of errors like \"\"", "error=")
        );
    }

    #[test]
    fn words_tell_every_field() {
        let some = |text: &str| Some(text.to_owned());
        let sieve = Sieve { text: some("host"), key: some("a&b"), until: some("2026-11-24T10:00"), ..Sieve::default() };
        let words = "the dead letters with an error that contains \"host\", of key \"a&b\", that died before 2026-11-24T10:00 UTC";
        assert_eq!(sieve.in_words(), words);
        assert_eq!(sieve.query(), "text=host&key=a%26b&until=2026%2D11%2D24T10%3A00");
        assert_eq!(Sieve { id: Some(7), ..Sieve::default() }.in_words(), "dead letter 7");
    }
}
