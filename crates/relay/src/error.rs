//! What went wrong, and what to do.

use std::fmt;

/// Why a relay cannot begin, or ended.
#[derive(Debug)]
pub struct Error(Kind);

#[derive(Debug)]
enum Kind {
    Usage(String),
    Broker { broker: String, said: String },
    Gap { broker: String, said: String },
    Database(trunkline::Error),
}

/// A result of the relay's.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// What was asked for makes no sense.
    pub fn usage(why: impl Into<String>) -> Self {
        Self(Kind::Usage(why.into()))
    }

    /// A broker's words.
    pub fn broker(broker: impl Into<String>, said: impl fmt::Display) -> Self {
        Self(Kind::Broker { broker: broker.into(), said: said.to_string() })
    }

    /// A broker has not what comes behind a position any more, or another stream by that name.
    pub fn gap(broker: impl Into<String>, said: impl fmt::Display) -> Self {
        Self(Kind::Gap { broker: broker.into(), said: said.to_string() })
    }

    /// Whether a broker has lost what was to be read: going on would leave it out in silence.
    #[must_use]
    pub fn is_gap(&self) -> bool {
        matches!(self.0, Kind::Gap { .. })
    }

    /// Whether what was asked for makes no sense.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self.0, Kind::Usage(_))
    }

    /// Whether it came from a broker.
    #[must_use]
    pub fn is_broker(&self) -> bool {
        matches!(self.0, Kind::Broker { .. })
    }

    /// The database's, if it is one.
    #[must_use]
    pub fn database(&self) -> Option<&trunkline::Error> {
        match &self.0 {
            Kind::Database(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Usage(why) => out.write_str(why),
            Kind::Broker { broker, said } | Kind::Gap { broker, said } => write!(out, "{broker}: {said}"),
            Kind::Database(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.database().map(|error| error as _)
    }
}

impl From<trunkline::Error> for Error {
    fn from(error: trunkline::Error) -> Self {
        Self(Kind::Database(error))
    }
}
