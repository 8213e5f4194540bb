//! What a relay says to Postgres: a statement a file.

use trunkline::{Db, postgres::Statement};

/// A statement in the schema that the queues are in.
pub(crate) fn of<P, R>(db: &Db, text: &str) -> Statement<P, R> {
    Statement::of(text.replace("trunkline.", &format!("{}.", db.schema_name())))
}
