//! Errors that report what went wrong and what to do.

use std::fmt;

/// The reason why a relay cannot start, or has ended.
#[derive(Debug)]
pub struct Error(Kind);

#[derive(Debug)]
enum Kind {
    Usage(String),
    Stopped(String),
    Broker { broker: String, said: String },
    Gap { broker: String, said: String },
    Database(trunkline::Error),
}

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error for a caller's mistake: a wrong address, route, name or option.
    pub fn usage(why: impl Into<String>) -> Self {
        Self(Kind::Usage(why.into()))
    }

    /// Creates the error for a stored position that the broker's relay did not write.
    #[must_use]
    pub fn bad_position(broker: &str, position: &str) -> Self {
        Self::usage(format!(
            "{broker}: the stored position {position:?} is not valid; to start without a position, delete the relay's row in trunkline.relay"
        ))
    }

    /// Creates the error of a relay that cannot continue, because the queue cannot store a message
    /// or the position is gone.
    pub(crate) fn stopped(why: impl Into<String>) -> Self {
        Self(Kind::Stopped(why.into()))
    }

    /// Returns true if the relay cannot continue until the cause is removed.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self.0, Kind::Stopped(_))
    }

    /// Creates an error that a broker reported, or that reports that a broker cannot be reached.
    pub fn broker(broker: impl Into<String>, said: impl fmt::Display) -> Self {
        Self(Kind::Broker { broker: broker.into(), said: said.to_string() })
    }

    /// Creates an error for a gap: the broker no longer has the messages after a position, or has a
    /// different stream with that name.
    pub fn gap(broker: impl Into<String>, said: impl fmt::Display) -> Self {
        Self(Kind::Gap { broker: broker.into(), said: said.to_string() })
    }

    /// Returns true if the broker has lost messages that were not read yet. Continuing would omit
    /// them silently.
    #[must_use]
    pub fn is_gap(&self) -> bool {
        matches!(self.0, Kind::Gap { .. })
    }

    /// Returns true if the caller gave a wrong address, route, name or option.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self.0, Kind::Usage(_))
    }

    /// Returns true if the broker reported the error, did not answer, or could not be reached.
    #[must_use]
    pub fn is_broker(&self) -> bool {
        matches!(self.0, Kind::Broker { .. })
    }

    /// Returns the database's error, if the database reported it.
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
            Kind::Usage(why) | Kind::Stopped(why) => out.write_str(why),
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
