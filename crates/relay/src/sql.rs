//! The relay's statements, one per file.

use trunkline::{Db, postgres::Statement};

/// Returns a statement for the queues' schema.
pub(crate) fn of<P, R>(db: &Db, text: &str) -> Statement<P, R> {
    Statement::of(text.replace("trunkline.", &format!("{}.", db.schema_name())))
}
