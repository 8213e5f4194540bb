//! The doctor on a standby.

use std::fs;

use trunkline::Db;
use trunkline_console::doctor::Doctor;

use crate::standby::standby;

#[tokio::test(flavor = "multi_thread")]
async fn remedies_that_write_have_to_run_on_the_primary() {
    let folder = std::env::temp_dir().join(format!("trunkline-doctor-standby-{}", std::process::id()));
    let damage = "update pg_index set indisvalid = false where indexrelid = 'trunkline.due_q'::regclass";
    let server = standby(&folder, damage).await;
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
