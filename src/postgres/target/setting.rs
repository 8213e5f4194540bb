//! A setting of a connection, and the source of the setting.

use std::{fmt, path::PathBuf};

use tokio_postgres::Config;

use crate::error::{Error, Result};

/// Settings that only other clients use, and that this library ignores. Kerberos is not supported,
/// and the encoding is always UTF-8.
const OF_OTHERS: [&str; 7] = [
    "client_encoding",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "krbsrvname",
    "sslcompression",
];

/// A setting. Its name is the one that libpq uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub name: String,
    pub value: String,
    pub origin: Origin,
}

/// The source of a setting. Sources with higher precedence come first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    Text,
    Service { file: PathBuf, line: usize },
    Variable(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => write!(out, "the connection string"),
            Self::Service { file, line } => write!(out, "line {line} of {}", file.display()),
            Self::Variable(name) => write!(out, "{name}"),
        }
    }
}

impl Origin {
    /// Adds the source to the text of an error, unless the source is the connection string. The
    /// caller knows the connection string.
    pub fn blamed(&self, error: Error) -> Error {
        if *self == Self::Text { error } else { Error::invalid(format!("{self}: {error}")) }
    }

    /// Returns true if this source takes precedence over the other source.
    pub fn outdoes(&self, other: &Self) -> bool {
        std::mem::discriminant(self) != std::mem::discriminant(other) && self < other
    }
}

impl Setting {
    pub fn in_text(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), origin: Origin::Text }
    }

    /// Returns the setting under the name that `tokio_postgres` uses. Returns `None` if only other
    /// clients use the setting. Returns an error if it demands encryption by Kerberos.
    pub fn translated(mut self) -> Result<Option<Self>> {
        if self.name == "gssencmode" && self.value == "require" {
            let why = "gssencmode=require is not supported: sslmode=require encrypts with TLS";
            return Err(self.origin.blamed(Error::invalid(why)));
        }
        if self.name == "keepalives_count" {
            "keepalives_retries".clone_into(&mut self.name);
        }
        let is_of_others = OF_OTHERS.contains(&self.name.as_str());
        Ok((!is_of_others).then_some(self))
    }

    /// Formats the setting as part of a connection string.
    pub fn words(&self) -> Result<String> {
        let Self { name, value, origin } = self;
        if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
            return Err(Error::invalid(format!("{origin} is not valid: unknown option `{}`", name.escape_debug())));
        }
        let words = format!("{name}='{}' ", value.replace('\\', "\\\\").replace('\'', "\\'"));
        let invalid = |error| Error::invalid(format!("{origin} is not valid: {}", cause(&error)));
        words.parse::<Config>().map_err(invalid)?;
        Ok(words)
    }
}

/// Returns the part of an error's text that describes the cause.
pub(super) fn cause(error: &tokio_postgres::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
