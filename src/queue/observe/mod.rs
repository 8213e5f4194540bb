//! Every span and every metric, by its name.

pub(crate) mod span;
pub(crate) mod metric;
pub mod observability;
