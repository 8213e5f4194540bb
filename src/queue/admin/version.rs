//! The version of the installed schema.

use std::sync::Arc;

use super::migrate::SCHEMA_VERSION as WANTED;
use crate::{
    error::{Error, Kind, Result},
    postgres::{
        db::{Class, Db, Session},
        wire::only,
    },
};

/// The version of an installed schema.
pub(super) struct Installed {
    pub version: i32,
    /// The oldest version whose programs work with the schema.
    pub oldest: i32,
}

impl Installed {
    /// Returns true if programs of this version work with the schema.
    pub fn supports_this(&self) -> bool {
        self.version == WANTED || (self.version > WANTED && self.oldest <= WANTED)
    }
}

impl Db {
    /// Returns the version of the schema in the database, or 0 if there is none.
    pub async fn schema_version(&self) -> Result<i32> {
        Ok(self.found_here().await?.version)
    }

    /// Returns an error, with advice, unless the schema has this library's version or a newer one
    /// that supports it.
    pub(crate) async fn check_schema(&self, verb: &'static str) -> Result<()> {
        let found = self.found_here().await.map_err(|error| error.during(verb))?;
        if found.supports_this() { Ok(()) } else { Err(self.mismatch(found.version)) }
    }

    /// Returns the version of the installed schema, or 0.
    async fn found_here(&self) -> Result<Installed> {
        let found = |session: Arc<Session>| async move { self.found(&session).await };
        match self.with_lock_waits(Class::Main, found).await {
            // The connection broke, for example because its runtime has ended. Reads again.
            Err(error) if error.is_outcome_unknown() => self.with_lock_waits(Class::Main, found).await,
            outcome => outcome,
        }
    }

    pub(super) async fn found(&self, session: &Session) -> Result<Installed> {
        let exists = self.statement("schema_exists", include_str!("../../../sql/statements/schema_exists.sql"));
        let exists = session.query(&exists, &[]).await?;
        let (newer, first) = (only(&exists)?.read::<bool>(0)?, only(&exists)?.read::<bool>(1)?);
        if newer {
            let version = self.statement("schema_version", include_str!("../../../sql/statements/schema_version.sql"));
            return match session.query(&version, &[]).await?.first() {
                Some(row) => Ok(Installed { version: row.read(0)?, oldest: row.read(1)? }),
                None => Ok(Installed { version: 0, oldest: 0 }),
            };
        }
        let version = match first {
            true => {
                let version = self.statement(
                    "schema_version_first",
                    include_str!("../../../sql/statements/schema_version_first.sql"),
                );
                only(&session.query(&version, &[]).await?)?.read(0)?
            }
            false => 0,
        };
        Ok(Installed { version, oldest: version })
    }

    pub(super) fn mismatch(&self, found: i32) -> Error {
        Error::new(Kind::Schema { schema: self.schema_name().to_owned(), found, wanted: WANTED })
    }
}
