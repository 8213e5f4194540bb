//! The schema and its versions.

use tracing::info;

use crate::{
    db::{Db, Lane},
    error::{Error, Kind, Result},
    sql::Sql,
};

/// A numbered step of the schema. Steps are only ever added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Migration {
    pub version: i32,
    pub name: &'static str,
    pub sql: &'static str,
}

pub(crate) const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "queue", sql: include_str!("../migrations/0001_queue.sql") },
    Migration { version: 2, name: "functions", sql: include_str!("../migrations/0002_functions.sql") },
    Migration { version: 3, name: "settle_ranges", sql: include_str!("../migrations/0003_settle_ranges.sql") },
    Migration { version: 4, name: "bury", sql: include_str!("../migrations/0004_bury.sql") },
    Migration { version: 5, name: "lease_apart", sql: include_str!("../migrations/0005_lease_apart.sql") },
    Migration { version: 6, name: "metadata", sql: include_str!("../migrations/0006_metadata.sql") },
];

/// The version that this library works with.
pub const SCHEMA_VERSION: i32 = 6;

impl Db {
    /// Brings the schema `trunkline` to this library's version, in one transaction. Safe to run again and from many
    /// processes at once: they queue up behind an advisory lock. Returns how many steps were applied.
    ///
    /// # Errors
    /// The schema is newer than this library, or the role may not create it.
    pub async fn migrate(&self) -> Result<usize> {
        let session = self.own_session().await?;
        if found_version(&session).await? == SCHEMA_VERSION {
            self.give_back(session); // nothing that a role without rights would stumble over
            return Ok(0);
        }
        session.batch("migrate", concat!("begin; ", include_str!("../sql/migrate_begin.sql"))).await?;
        let found = found_version(&session).await?;
        if found > SCHEMA_VERSION {
            return Err(mismatch(found)); // dropping the session rolls back
        }
        let pending: Vec<_> = MIGRATIONS.iter().filter(|migration| migration.version > found).collect();
        for migration in &pending {
            session.batch(migration.name, migration.sql).await?;
            let record = Sql::new("migrate_record", include_str!("../sql/migrate_record.sql"));
            session.query(&record, &[&migration.version, &migration.name]).await?;
            info!(version = migration.version, name = migration.name, "migrated");
        }
        session.batch("migrate", "commit").await?;
        self.give_back(session);
        Ok(pending.len())
    }

    /// The version of the schema in the database; 0 where there is none.
    pub async fn schema_version(&self) -> Result<i32> {
        found_version(&*self.session(Lane::Dequeue).await?).await
    }

    /// Errs, and says what to do, unless the schema is exactly this library's.
    pub(crate) async fn check_schema(&self) -> Result<()> {
        match self.schema_version().await? {
            SCHEMA_VERSION => Ok(()),
            found => Err(mismatch(found)),
        }
    }
}

async fn found_version(session: &crate::db::Session) -> Result<i32> {
    let exists = Sql::new("schema_exists", include_str!("../sql/schema_exists.sql"));
    if !session.query(&exists, &[]).await?[0].get::<bool>(0) {
        return Ok(0);
    }
    let version = Sql::new("schema_version", include_str!("../sql/schema_version.sql"));
    Ok(session.query(&version, &[]).await?[0].get(0))
}

fn mismatch(found: i32) -> Error {
    let todo =
        if found > SCHEMA_VERSION { "use a newer trunkline" } else { "run `trunkline migrate` or Db::migrate first" };
    Error::new(Kind::Schema { found, wanted: SCHEMA_VERSION, todo })
}

#[cfg(test)]
mod tests {
    use super::{MIGRATIONS, SCHEMA_VERSION};

    #[test]
    fn versions_count_up_to_the_librarys() {
        assert!((1..).zip(MIGRATIONS).all(|(version, migration)| migration.version == version));
        assert_eq!(MIGRATIONS.last().map(|migration| migration.version), Some(SCHEMA_VERSION));
    }
}
