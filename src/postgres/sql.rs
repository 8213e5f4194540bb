//! The library's SQL: one statement per file in `sql/statements`, prepared once per connection.
//!
//! A file runs in psql once its placeholders are filled. Only quoted names fill placeholders;
//! values are always parameters.

use std::{borrow::Cow, sync::Arc};

use crate::error::{Error, Result};

/// A statement whose placeholders are filled. Its name in traces and in errors is the name of the
/// file.
#[derive(Debug, Clone)]
pub(crate) struct Sql {
    pub name: &'static str,
    pub text: Arc<str>,
    /// True if the statement changes nothing. A reply that is too large can then be requested again
    /// in parts.
    pub only_reads: bool,
}

impl Sql {
    pub fn new(name: &'static str, text: &str) -> Self {
        Self { name, text: text.into(), only_reads: false }
    }

    /// Fills each placeholder with a name that consists of the placeholder's text and `ending`:
    /// `{do_take_}` becomes `"do_take_emails"`.
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

    /// Marks the statement as one that changes nothing.
    pub fn reading(self) -> Self {
        Self { only_reads: true, ..self }
    }

    /// Makes the statement's text specific to a queue that was created at `since`, in microseconds
    /// by the server's clock.
    pub fn since(self, since: u128) -> Self {
        Self { text: format!("{}-- created at {since}", self.text).into(), ..self }
    }
}

/// The schema that contains all of the library's objects. The texts of statements use `trunkline.`,
/// so that they run in psql unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Schema(Arc<str>);

impl Schema {
    pub const DEFAULT: &str = "trunkline";
    /// The maximum length of a schema's name. A channel's name has at most 63 bytes: the schema, a
    /// dot, and a queue's name of up to 48.
    const LONGEST: usize = 14;

    /// Creates a schema from its name, after checking the name.
    ///
    /// # Errors
    /// The name is not valid. It is used without quotes in statements, and together with a queue's
    /// name in the names of channels.
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

    /// Replaces the schema `trunkline` in a text with this schema's name.
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
