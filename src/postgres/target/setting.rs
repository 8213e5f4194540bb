//! A setting of a connection, and the source of the setting.

use std::{fmt, path::PathBuf};

use tokio_postgres::Config;

use crate::error::{Error, Result};

/// Settings that only other clients use. This library ignores them, and refuses the values that
/// [`Setting::instead`] lists. Kerberos is not supported, and the encoding is always UTF-8.
const OF_OTHERS: [&str; 12] = [
    "client_encoding",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "krbsrvname",
    "max_protocol_version",
    "min_protocol_version",
    "require_auth",
    "requirepeer",
    "requiressl",
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

    /// Returns the setting under the name that `tokio_postgres` uses. A setting that only other
    /// clients use becomes empty. It still counts as given, so it replaces that of another source.
    /// Returns an error if the setting demands what this library does not support.
    pub fn translated(mut self) -> Result<Self> {
        if let Some(instead) = self.instead() {
            let text = format!("{}={} is not supported: {instead}", self.name, self.value);
            return Err(self.origin.blamed(Error::invalid(text)));
        }
        if self.name == "keepalives_count" {
            "keepalives_retries".clone_into(&mut self.name);
        }
        if self.name == "requiressl" && self.value.starts_with('1') {
            "sslmode".clone_into(&mut self.name);
            "require".clone_into(&mut self.value);
        }
        if self.is_of_others() {
            self.value.clear();
        }
        Ok(self)
    }

    /// Returns true if only other clients use the setting.
    pub fn is_of_others(&self) -> bool {
        OF_OTHERS.contains(&self.name.as_str())
    }

    /// Returns what to use instead, if the setting demands what this library does not support.
    fn instead(&self) -> Option<&'static str> {
        let Self { name, value, .. } = self;
        Some(match name.as_str() {
            _ if value.is_empty() => return None,
            "gssencmode" if value != "disable" && value != "prefer" => "sslmode=require encrypts with TLS",
            "min_protocol_version" if value != "3.0" => "this library uses version 3.0 of the protocol",
            "require_auth" => "channel_binding=require accepts only SCRAM over TLS",
            "requirepeer" => "sslmode=verify-full checks the server's certificate",
            _ => return None,
        })
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
