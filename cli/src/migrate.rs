//! `trunkline migrate`

use trunkline::SCHEMA_VERSION;

use crate::{database::Database, error::Result, print};

pub async fn run(database: &Database) -> Result<()> {
    let steps = database.connect().await?.migrate().await?;
    print::done(
        [match steps {
            0 => format!("the schema is at version {SCHEMA_VERSION} already"),
            _ => format!("the schema is at version {SCHEMA_VERSION} now"),
        }]
        .iter(),
    )
}
