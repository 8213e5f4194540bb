//! Servers that are standbys.

use std::{
    fs,
    os::unix::fs::{MetadataExt, chown},
    path::Path,
};

use trunkline::{Db, Settings};
use trunkline_embedded::{Cluster, Stop};

use crate::web::connect;

/// Starts a server in the folder, and creates the queue `q`. Runs the SQL, and starts the server
/// again as a standby.
pub async fn standby(folder: &Path, before: &str) -> Cluster {
    let server = Cluster::at(folder).setting("fsync", "off").start().expect("a server");
    let db = Db::connect(&server.url("postgres")).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("text")).await.expect("created");
    let sql = connect(&server.url("postgres")).await;
    sql.batch_execute(before).await.expect("run");
    drop((db, sql));
    server.stop(Stop::Fast).expect("stopped");
    let signal = folder.join("data/standby.signal");
    fs::write(&signal, "").expect("written");
    let owner = folder.join("data").metadata().expect("it is there");
    chown(&signal, Some(owner.uid()), Some(owner.gid())).expect("given");
    server.start_again().expect("started");
    server
}
