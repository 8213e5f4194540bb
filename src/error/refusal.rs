//! The rule for rejected statements: if the server replies to a statement with an error, the
//! statement had no effect, whatever the error's code. Only this file contains the rule.

use std::time::{Duration, Instant};

use tokio_postgres::error::{DbError, SqlState};

use super::{Described, Error, Kind, Result, advice::is_collision};

/// Error classes that concern the server, its schema or the role's rights, and not the data that
/// was sent. A user's trigger can raise any code, so these classes must not be used to decide
/// whether a message was stored.
const OF_THE_SERVER: [&str; 14] =
    ["08", "25", "26", "28", "3D", "3F", "40", "42", "53", "55P03", "57", "58", "F0", "XX"];

impl Error {
    /// Returns true if the server rejected one of the library's statements, so that no part of it
    /// took effect. If the statement contained several requests, they can then be sent separately.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(&*self.0, Kind::Server { .. } | Kind::NotStored { stored: 0, .. })
    }

    /// Returns true if the error is probably temporary, or would affect every request to this
    /// server. The cause is then not a particular message.
    pub(crate) fn is_of_the_server(&self) -> bool {
        self.sqlstate().is_some_and(|code| OF_THE_SERVER.iter().any(|class| code.code().starts_with(class)))
            || self.is_of_wraparound()
    }

    /// Returns true if the server assigns no transaction ids any more, because old ones must be
    /// vacuumed first. The error's code is that of a value that is too large.
    fn is_of_wraparound(&self) -> bool {
        self.routine().is_some_and(|routine| ["GetNewTransactionId", "GetNewMultiXactId"].contains(&routine))
    }

    /// Returns the function of the server's source code that reported the error.
    fn routine(&self) -> Option<&str> {
        match &*self.0 {
            Kind::Server { error, .. } | Kind::Statement { error, .. } => error.routine.as_deref(),
            Kind::Postgres(Described(error)) => error.as_db_error().and_then(DbError::routine),
            _ => None,
        }
    }

    /// Returns true if the server did not get a lock in time.
    pub(crate) fn is_of_a_lock(&self) -> bool {
        self.sqlstate() == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }

    /// Returns true if `lock_timeout` ended a statement that waited for a lock. Functions raise the
    /// same code after longer waits.
    pub(crate) fn is_of_lock_timeout(&self) -> bool {
        self.is_of_a_lock() && self.routine() == Some("ProcessInterrupts")
    }

    pub(crate) fn lacks_right(&self) -> bool {
        self.sqlstate() == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
    }

    /// Returns true if the payload itself was rejected. The payload could not be encoded, was too
    /// large, or was rejected by the server (a check, an invalid character, an error that a trigger
    /// raises).
    ///
    /// Returns false if the server would reject every payload: it accepts no writes, it is out of
    /// space, or the role lacks a right. Also returns false if the queue's sequence is behind its
    /// table, because then every new message collides with an existing one.
    #[must_use]
    pub fn is_bad_payload(&self) -> bool {
        match &*self.0 {
            Kind::Encode { .. } | Kind::TooLarge { .. } => true,
            Kind::Shards(parts) => parts.iter().any(|(_, error)| error.is_bad_payload()),
            Kind::Server { .. } | Kind::Statement { .. } if self.is_drained() => false,
            // The payload is not the cause: the queue's sequence is used up, so no message gets an
            // id.
            _ if self.sqlstate() == Some(&SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED) => false,
            Kind::Server { error, .. } | Kind::Statement { error, .. }
                if is_collision(error.table.as_deref(), error.constraint.as_deref()) =>
            {
                false
            }
            Kind::Postgres(Described(error))
                if error.as_db_error().is_some_and(|db| is_collision(db.table(), db.constraint())) =>
            {
                false
            }
            Kind::Postgres(_) | Kind::Server { .. } | Kind::Statement { .. } => {
                self.sqlstate().is_some() && !self.is_of_the_server() && !self.is_of_other_lanes()
            }
            _ => false,
        }
    }

    /// Returns true if the queue's partitions changed after the row was built.
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

/// The maximum duration of a search in which no part succeeds. Most rejections take a fraction of a
/// millisecond. If each rejection waits for a lock or a timeout, the search must stop early.
const FUTILE: Duration = Duration::from_secs(2);

/// A search for the messages that the server rejects. The search sends smaller and smaller parts of
/// a request until it has found them.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// The time of the first rejection since the last success.
    since: Option<Instant>,
}

impl Search {
    pub fn found_good(&mut self) {
        self.since = None;
    }

    /// Returns true if the search should continue after another rejection.
    pub fn goes_on(&mut self) -> bool {
        self.goes_on_for(FUTILE)
    }

    /// Returns true if the search has had no success for less than `limit`.
    pub fn goes_on_for(&mut self, limit: Duration) -> bool {
        self.goes_on_at(Instant::now(), limit)
    }

    fn goes_on_at(&mut self, now: Instant, limit: Duration) -> bool {
        now.duration_since(*self.since.get_or_insert(now)) < limit
    }
}

/// A search that sends the requests of a rejected statement one by one. Once it is futile, the
/// remaining requests fail with the last error.
#[derive(Debug, Default)]
pub(crate) struct OneByOne {
    search: Search,
    futile: Option<Error>,
}

impl OneByOne {
    /// Sends a request, unless the search is futile. If `locked` is set, the search continues for
    /// that long while requests fail because of locks.
    pub async fn send<T>(&mut self, request: impl Future<Output = Result<T>>, locked: Option<Duration>) -> Result<T> {
        if let Some(error) = &self.futile {
            return Err(error.clone());
        }
        let outcome = request.await;
        match &outcome {
            Ok(_) => self.search.found_good(),
            Err(error) if error.is_of_a_lock() && locked.is_some_and(|limit| self.search.goes_on_for(limit)) => {}
            Err(error) if !self.search.goes_on() => self.futile = Some(error.clone()),
            Err(_) => {}
        }
        outcome
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

    /// Returns the error that a statement of a transaction fails with, with this code.
    fn in_transaction(code: &str) -> Error {
        let Kind::Server { error, .. } = &*refused(code).0 else { panic!("the server's error") };
        Error::new(Kind::Statement { place: 0, text: None, error: error.clone() })
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
        for code in
            ["UE001", "0A000", "55000", "38000", "P0001", "22000", "22P05", "23514", "54000", "54001", "ZZ999", "21000"]
        {
            assert!(refused(code).is_bad_payload() && !refused(code).is_for_another(), "{code}");
            assert!(in_transaction(code).is_bad_payload(), "{code}");
        }
        for code in ["25006", "53100", "53300", "42501", "57014", "55P03", "40P01", "58030", "XX001"] {
            assert!(!refused(code).is_bad_payload() && refused(code).is_for_another(), "{code}");
        }
        assert!(!refused("TL002").is_bad_payload(), "lanes were added");
        for code in ["57P01", "40001", "08006", "XX000"] {
            assert!(!refused(code).is_bad_payload(), "{code}");
        }
        assert!(!refused("2200H").is_bad_payload(), "no message gets an id");
        let wraparound = refused("54000\0RGetNewTransactionId");
        assert!(!wraparound.is_bad_payload() && wraparound.is_for_another(), "every payload would be refused");
    }

    #[test]
    fn a_search_without_a_success_ends() {
        let (mut search, began) = (Search::default(), Instant::now());
        assert!(search.goes_on_at(began, FUTILE) && search.goes_on_at(began + FUTILE / 2, FUTILE));
        search.found_good();
        assert!(search.goes_on_at(began + FUTILE, FUTILE));
        assert!(!search.goes_on_at(began + FUTILE * 2, FUTILE));
    }
}
