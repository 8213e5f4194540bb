//! The doctor on a standby.

use std::{
    fs,
    os::unix::fs::{MetadataExt, chown},
};

use trunkline::{Db, Settings};
use trunkline_console::doctor::Doctor;
use trunkline_embedded::{Cluster, Stop};

use super::connect;

#[tokio::test(flavor = "multi_thread")]
async fn remedies_that_write_have_to_run_on_the_primary() {
    let folder = std::env::temp_dir().join(format!("trunkline-doctor-standby-{}", std::process::id()));
    let start = || Cluster::at(&folder).setting("fsync", "off").start().expect("a server");
    let server = start();
    let db = Db::connect(&server.url("postgres")).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let sql = connect(&server.url("postgres")).await;
    let damage = "update pg_index set indisvalid = false where indexrelid = 'trunkline.due_q'::regclass";
    sql.batch_execute(damage).await.expect("damaged");
    drop((db, sql));
    server.stop(Stop::Fast).expect("stopped");
    let signal = folder.join("data/standby.signal");
    fs::write(&signal, "").expect("written");
    let owner = folder.join("data").metadata().expect("it is there");
    chown(&signal, Some(owner.uid()), Some(owner.gid())).expect("given");
    let server = start();
    let db = Db::connect(&server.url("postgres")).await.expect("connected");
    let found = Doctor::new().examine(&db).await.expect("examined");
    let mend = |check: &str| {
        let of = found.iter().find(|one| one.check == check);
        of.unwrap_or_else(|| panic!("no {check} in {found:#?}")).mend.as_str()
    };
    let reindex = mend("indexes");
    assert!(reindex.starts_with("reindex index ") && reindex.ends_with(" -- on the primary"), "{reindex}");
    for check in ["standby", "settings"] {
        assert!(!mend(check).ends_with("on the primary"), "{}", mend(check));
    }
    drop(db);
    drop(server);
    fs::remove_dir_all(&folder).expect("removed");
}
