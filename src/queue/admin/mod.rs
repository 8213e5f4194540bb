//! Creates, describes, limits, pauses and grants queues, and installs the schema.

pub(crate) mod limits;
pub(crate) mod description;
pub(crate) mod settings;
pub(crate) mod rights;
pub(crate) mod migrate;
mod version;
