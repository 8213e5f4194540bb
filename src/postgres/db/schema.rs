//! Finds the schema that a connection string names, without connecting.

use super::Db;
use crate::{error::Result, postgres::target::Target};

impl Db {
    /// Returns the schema that [`Db::connect`] would use for a connection string.
    #[doc(hidden)]
    pub fn schema_of(url: &str) -> Result<String> {
        Ok(Target::schema_of(url)?.name().to_owned())
    }
}
