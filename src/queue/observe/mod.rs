//! The names of all spans and metrics.

pub(crate) mod span;
pub(crate) mod worker_gauges;
pub(crate) mod metric;
pub mod observability;
