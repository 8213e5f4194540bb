//! The library's SQL statements. Each statement is a file in `sql/statements`, and each connection
//! prepares it once.
//!
//! A file can be run in psql after its placeholders are filled. Placeholders are filled only with
//! quoted names. Values are always parameters.

use std::{borrow::Cow, sync::Arc};

use crate::error::{Error, Result};

/// A statement whose placeholders have been filled. Traces and errors use the name of its file.
#[derive(Debug, Clone)]
pub(crate) struct Sql {
    pub name: &'static str,
    pub text: Arc<str>,
    /// True if the statement changes nothing. If its reply is too large, the library can then
    /// request the rows again in smaller parts.
    pub only_reads: bool,
    /// True if the statement limits its waits for locks itself.
    pub limits_waits: bool,
}

impl Sql {
    pub fn new(name: &'static str, text: &str) -> Self {
        Self { name, text: text.into(), only_reads: false, limits_waits: text.contains("lock_timeout") }
    }

    /// Replaces each placeholder with a quoted name: the text of the placeholder followed by
    /// `ending`. For example, `{do_take_}` becomes `"do_take_emails"`.
    pub fn filled(name: &'static str, text: &str, schema: &Schema, ending: &str) -> Self {
        let text = &*schema.fill(text);
        let mut filled = String::with_capacity(text.len() + 64);
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (hole, after) = after.split_once('}').unwrap_or((after, ""));
            filled.push_str(before);
            filled.push_str(&quote(&format!("{hole}{ending}")));
            rest = after;
        }
        filled.push_str(rest);
        Self::new(name, &filled)
    }

    pub fn reading(self) -> Self {
        Self { only_reads: true, ..self }
    }

    /// Makes the text of the statement specific to a queue that was created at `since`, in
    /// microseconds of the server's clock.
    pub fn since(self, since: u128) -> Self {
        Self { text: format!("{}-- created at {since}", self.text).into(), ..self }
    }
}

/// The schema that contains all of the library's objects. The files of the statements name the
/// schema `trunkline`, so that they run in psql unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Schema(Arc<str>);

impl Schema {
    pub const DEFAULT: &str = "trunkline";
    /// The maximum length of a schema's name. A channel's name has at most 63 bytes, and consists
    /// of the schema, a dot, and a queue's name of at most 48 bytes.
    const LONGEST: usize = 14;

    /// Checks a name, and creates a schema from it.
    ///
    /// # Errors
    /// The name is not valid. Statements use the name without quotes, and the names of channels
    /// consist of this name and a queue's name.
    pub fn new(name: &str) -> Result<Self> {
        let first = name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.starts_with("pg_");
        let rest = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !first || !rest || name.len() > Self::LONGEST {
            return Err(Error::invalid(format!(
                "a schema cannot be named {name:?}: take 1 to {} characters, a lower-case letter, then a-z, 0-9 or \"_\"; not pg_",
                Self::LONGEST
            )));
        }
        Ok(Self(name.into()))
    }

    pub fn name(&self) -> &str {
        &self.0
    }

    /// Replaces the schema name `trunkline` in a text with the name of this schema.
    pub fn fill<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &*self.0 {
            Self::DEFAULT => Cow::Borrowed(text),
            name => Cow::Owned(text.replace("trunkline.", &format!("{name}."))),
        }
    }
}

pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
