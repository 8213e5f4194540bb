//! The identity of a database, which is checked on each new connection. The address may lead to
//! another database than before.

use std::{io, sync::Weak};

use super::{Db, Session, channels::ListenedChannels, proof::in_time};
use crate::{
    error::{Error, Kind, Result},
    postgres::sql::Sql,
};

impl Db {
    /// Makes new connections check that `sql` still returns `number`.
    pub(crate) fn identify(&self, sql: Sql, number: i32) {
        let _ = self.0.listener.channels.identity.set((sql, number)); // the first number stays
    }

    /// Returns the error for an address that leads to another database, whose number is `found`.
    pub(crate) fn another_database(&self, number: i32, found: i32) -> Error {
        let text =
            format!("{} leads to the database {found:08x} now, and not to {number:08x} as before", self.address());
        Error::new(Kind::Unreachable(io::Error::new(io::ErrorKind::ConnectionRefused, text)))
    }

    /// Fails if a new connection has reached another database than the earlier ones.
    pub(super) async fn recognize(&self, session: &Session) -> Result<()> {
        let Some((sql, number)) = self.0.listener.channels.identity.get() else { return Ok(()) };
        let found = match self.0.target.in_time(1, session.query(sql, &[])).await {
            Ok(rows) => rows.first().and_then(|row| row.read::<i32>(0).ok()),
            Err(error) if error.is_closed() => {
                return Err(error.without_effect("the connection broke before its database was checked".into()));
            }
            Err(_) => None, // the next statement reports a missing table or right
        };
        match found {
            Some(found) if found != *number => Err(self.another_database(*number, found)),
            _ => Ok(()),
        }
    }
}

/// Returns false if a new listener has reached another database than the earlier connections.
pub(super) async fn is_same_database(session: &Session, channels: &Weak<ListenedChannels>) -> bool {
    let Some(all) = channels.upgrade() else { return true };
    let Some((sql, number)) = all.identity.get() else { return true };
    match in_time(session.query(sql, &[])).await {
        Ok(rows) => rows.first().and_then(|row| row.read(0).ok()).is_none_or(|found: i32| found == *number),
        Err(_) => true, // the listener's next statement meets the same error
    }
}
