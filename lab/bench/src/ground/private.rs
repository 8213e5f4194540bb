//! Starts a private server to measure.

use std::path::Path;

use trunkline_embedded::{Binaries, Cluster};

use crate::{
    Failure,
    disk::{self, SlowDisk},
};

/// Starts a cluster on that disk, with default durability and these settings.
pub fn private(settings: &[String], programs: Option<&Path>, disk: &SlowDisk) -> Result<Cluster, Failure> {
    let binaries = match programs {
        Some(folder) => Binaries::inspect(folder)?,
        None => Binaries::find_or_fetch(|_, _| {})?,
    };
    let counts = binaries.dir().parent().is_some_and(has_statements);
    let mut builder = Cluster::temporary().binaries(binaries).setting("max_connections", "600");
    if counts {
        // Preloads the module, which costs nothing until a database enables it.
        builder = builder
            .setting("shared_preload_libraries", "pg_stat_statements")
            .setting("pg_stat_statements.track", "none");
    }
    for setting in settings {
        let (name, value) = setting.split_once('=').ok_or_else(|| format!("{setting:?} is not NAME=VALUE"))?;
        builder = builder.setting(name, value);
    }
    Ok(disk::under(disk, builder).start()?)
}

fn has_statements(home: &Path) -> bool {
    ["lib", "lib64", "lib/postgresql"].iter().any(|lib| home.join(lib).join("pg_stat_statements.so").exists())
}
