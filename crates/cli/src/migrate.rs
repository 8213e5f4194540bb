//! `trunkline migrate`

use trunkline::SCHEMA_VERSION;

use crate::{
    database::Database,
    deed,
    error::{Error, Result},
    print,
};

pub async fn run(database: &Database) -> Result<()> {
    let mut written = Ok(()); // a failed write does not keep the other servers from being migrated
    for (place, db) in database.connect_each().await? {
        let steps = deed::on(&db, db.migrate()).await.map_err(|error| error.at(&place))?;
        let found = db.schema_version().await.map_err(|error| Error::from(error).at(&place))?;
        let told = match steps {
            _ if found > SCHEMA_VERSION => format!(
                "the schema is at version {found}, newer than this program's {SCHEMA_VERSION}, but compatible with it; \
                 nothing was changed"
            ),
            0 => format!("the schema is at version {SCHEMA_VERSION} already"),
            _ => format!("the schema is at version {SCHEMA_VERSION} now"),
        };
        let line = if place.is_empty() { told } else { format!("{place}: {told}") };
        written = written.and(print::done([line].iter()));
    }
    written
}
