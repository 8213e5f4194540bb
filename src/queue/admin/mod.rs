//! Queues are made, described, limited, paused and granted; the schema is installed.

pub(crate) mod limits;
pub(crate) mod settings;
pub(crate) mod rights;
pub(crate) mod migrate;
