//! A standby's console shows the pages and findings that exist on a standby, and allows no action.

use std::{fs, time::Duration};

use trunkline::Db;
use trunkline_console::doctor::{Doctor, Severity};

use super::{Site, connect};
use crate::{browser::get, standby::standby};

#[tokio::test(flavor = "multi_thread")]
async fn standby_is_no_fault_and_nothing_is_done_on_it() {
    let folder = std::env::temp_dir().join(format!("trunkline-console-standby-{}", std::process::id()));
    let schedule = "select trunkline.set_schedule('nightly', 'q', '0 3 * * *', 'go')";
    let server = standby(&folder, schedule).await;
    let url = server.url("postgres");
    let db = Db::connect(&url).await.expect("connected");

    // skips the settings, because the server runs without fsync
    let doctor = Doctor::new().patience(Duration::from_secs(60)).skip_check("settings");
    let found = doctor.examine(&db).await.expect("examined");
    let of: Vec<(&str, Severity)> = found.iter().map(|one| (one.check, one.severity)).collect();
    assert_eq!(of, [("standby", Severity::Advice)], "{found:#?}");

    let site = Site::of(url.clone(), db, connect(&url).await, |console| console).await;
    for path in [
        "/",
        "/queues/q",
        "/queues/q/messages",
        "/queues/q/dead",
        "/schedules",
        "/relays",
        "/audit",
        "/doctor",
        "/metrics",
    ] {
        let page = get(site.address, path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.body);
        assert!(!page.body.contains("unlogged"), "{path}: {}", page.body);
    }
    let page = get(site.address, "/queues/q").await;
    assert!(page.body.contains("The server is a standby: workers' reports are only on the primary."), "{}", page.body);
    assert!(page.body.contains("<button disabled>Pause") && page.body.contains("make changes on the primary"));
    assert!(get(site.address, "/").await.body.contains("1 schedule, next tick "), "schedules are known all the same");
    site.end().await;
    drop(server);
    fs::remove_dir_all(&folder).expect("removed");
}
