//! Calls gather while a statement runs, and the next statement serves all of them: pure state,
//! tested apart from the tasks around it.

pub(super) mod give_way;
pub(super) mod coalesce;
pub(super) mod settle;
pub(crate) mod share;
mod notify;
pub(super) mod ownerless;
