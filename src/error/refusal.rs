//! Refusals: if the server answers a statement with an error, the statement has had no effect,
//! whatever the error's code. Only this file contains that rule.

use std::time::{Duration, Instant};

use tokio_postgres::error::SqlState;

use super::{Described, Error, Kind, advice::is_collision};

/// Error classes that concern the server, its schema or the role's rights, not the data sent to it.
/// Users' triggers can raise any code, so this list must never decide whether a message was stored.
const OF_THE_SERVER: [&str; 14] =
    ["08", "25", "26", "28", "3D", "3F", "40", "42", "53", "55P03", "57", "58", "F0", "XX"];

impl Error {
    /// Returns true if the server refused one of the library's statements, so that no part of it
    /// has taken effect. Requests that were refused together can then be tried separately.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(&*self.0, Kind::Server { .. } | Kind::NotStored { stored: 0, .. })
    }

    /// Returns true if the refusal is probably temporary, or would affect every request to this
    /// server. It then proves nothing about a single message.
    pub(crate) fn is_of_the_server(&self) -> bool {
        self.sqlstate().is_some_and(|code| OF_THE_SERVER.iter().any(|class| code.code().starts_with(class)))
    }

    /// Returns true if the server refused a statement because the role lacks a right.
    pub(crate) fn lacks_right(&self) -> bool {
        self.sqlstate() == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
    }

    /// Returns true if the payload itself was refused: by its encoder, because of its size, or by
    /// the server (a check, an invalid character, an error that a trigger raises). Returns false if
    /// the server would refuse every payload: it accepts no writes, has no room, or the role lacks
    /// a right. Also returns false if a queue's sequence is behind its table, so that every payload
    /// collides with an existing message.
    #[must_use]
    pub fn is_bad_payload(&self) -> bool {
        match &*self.0 {
            Kind::Encode { .. } | Kind::TooLarge { .. } => true,
            Kind::Shards(parts) => parts.iter().any(|(_, error)| error.is_bad_payload()),
            Kind::Server { .. } if self.is_drained() => false,
            Kind::Server { error, .. } if is_collision(error.table.as_deref(), error.constraint.as_deref()) => false,
            Kind::Postgres(Described(error))
                if error.as_db_error().is_some_and(|db| is_collision(db.table(), db.constraint())) =>
            {
                false
            }
            Kind::Postgres(_) | Kind::Server { .. } => {
                self.sqlstate().is_some() && !self.is_of_the_server() && !self.is_of_other_lanes()
            }
            _ => false,
        }
    }

    /// Returns true if a row was built for a number of partitions that has increased since.
    pub(crate) fn is_of_other_lanes(&self) -> bool {
        self.sqlstate().is_some_and(|code| code.code() == "TL002")
    }

    /// Returns true if the server's encoding lacks a character.
    pub(crate) fn is_of_encoding(&self) -> bool {
        self.sqlstate().is_some_and(|code| {
            [SqlState::UNTRANSLATABLE_CHARACTER, SqlState::CHARACTER_NOT_IN_REPERTOIRE].contains(code)
        })
    }
}

/// The maximum duration of a search in which no part succeeds. Most refusals take a fraction of a
/// millisecond. Refusals that each wait for a lock or a timeout must not be repeated a thousand
/// times.
const FUTILE: Duration = Duration::from_secs(2);

/// A search for the messages that the server refuses, one part of a row at a time.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// The time of the first refusal after the last success.
    since: Option<Instant>,
}

impl Search {
    pub fn found_good(&mut self) {
        self.since = None;
    }

    /// Returns true if the search should continue after another refusal.
    pub fn goes_on(&mut self) -> bool {
        self.goes_on_at(Instant::now())
    }

    fn goes_on_at(&mut self, now: Instant) -> bool {
        now.duration_since(*self.since.get_or_insert(now)) < FUTILE
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::error::server::ServerError;

    fn refused(code: &str) -> Error {
        let body = format!("VERROR\0C{code}\0Mno\0\0");
        let error = Arc::new(ServerError::parse(body.as_bytes()));
        Error::of_server("enqueue", error)
    }

    #[test]
    fn every_answer_by_an_error_is_a_refusal() {
        for code in ["UE001", "XX000", "0A000", "55000", "38000", "42501", "55P03", "P0001", "23514", "53100", "ZZ999"]
        {
            assert!(refused(code).is_refusal() && !refused(code).is_outcome_unknown(), "{code}");
        }
    }

    #[test]
    fn only_error_codes_of_users_blame_the_payload() {
        for code in ["UE001", "0A000", "55000", "38000", "P0001", "22000", "23514", "54000", "ZZ999", "21000"] {
            assert!(refused(code).is_bad_payload() && !refused(code).is_for_another(), "{code}");
        }
        for code in ["25006", "53100", "53300", "42501", "57014", "55P03", "40P01", "58030", "XX001"] {
            assert!(!refused(code).is_bad_payload() && refused(code).is_for_another(), "{code}");
        }
        assert!(!refused("TL002").is_bad_payload(), "lanes were added");
    }

    #[test]
    fn a_search_without_a_success_ends() {
        let (mut search, began) = (Search::default(), Instant::now());
        assert!(search.goes_on_at(began) && search.goes_on_at(began + FUTILE / 2));
        search.found_good();
        assert!(search.goes_on_at(began + FUTILE));
        assert!(!search.goes_on_at(began + FUTILE * 2));
    }
}
