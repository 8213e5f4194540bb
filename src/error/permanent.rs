//! Predicates that separate temporary errors from permanent ones.

use std::io;

use tokio_postgres::error::SqlState;

use super::{Error, Kind, advice::is_other_type};

/// Texts that, in a pooler's error, show that the error is permanent.
const OF_POOLER: [&str; 7] =
    ["no such", "authentication failed", "rejected", "required", "unsupported", "not allowed", "bad startup"];
/// A text that shows that a pooler's error is about its own login to the server.
const BEHIND_POOLER: &str = "server login";

impl Error {
    /// Returns true if a connection failed for a reason that may be temporary. For example, a wrong
    /// password and a missing database are permanent.
    pub(crate) fn may_pass(&self) -> bool {
        use io::ErrorKind::{InvalidData, InvalidInput, PermissionDenied, Unsupported};
        if let Kind::Unreachable(cause) = &*self.0 {
            // Only a missing permission, an invalid address and an invalid certificate are
            // permanent.
            return ![InvalidData, InvalidInput, PermissionDenied, Unsupported].contains(&cause.kind());
        }
        if let Kind::Nowhere(refusals) | Kind::Shards(refusals) = &*self.0 {
            return refusals.iter().any(|(_, error)| error.may_pass());
        }
        // The database exists, but accepts no connections at the moment.
        if let Kind::Refused(error) = &*self.0
            && error.code == SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE
        {
            return true;
        }
        // Looks at the text, because PgBouncer uses one code for all errors.
        if let Kind::Refused(error) = &*self.0
            && error.code == SqlState::PROTOCOL_VIOLATION
        {
            return !OF_POOLER.iter().any(|text| error.message.contains(text)) || error.message.contains(BEHIND_POOLER);
        }
        // Retries can help against these error classes: a lack of resources, a shutdown or a system
        // failure.
        self.sqlstate().is_none_or(|code| {
            ["53", "57", "58"].iter().any(|class| code.code().starts_with(class)) && *code != SqlState::DATABASE_DROPPED
        })
    }

    /// Returns true if no retry can succeed until the queue, the program or the credentials change.
    pub(crate) fn is_final(&self) -> bool {
        match &*self.0 {
            Kind::Refused(_) | Kind::Unreachable(_) | Kind::Nowhere(_) => !self.may_pass(),
            Kind::NoQueue(_) | Kind::WrongType { .. } | Kind::Schema { .. } | Kind::Invalid(_) | Kind::Tls(_) => true,
            Kind::Server { error, .. } => is_other_type(error),
            Kind::Shards(parts) => parts.iter().all(|(_, error)| error.is_final()),
            _ => false,
        }
    }
}
