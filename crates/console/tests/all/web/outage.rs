//! The console while the database is away.

use std::time::Duration;

use tokio::time::timeout;
use trunkline::{Db, Settings};
use trunkline_embedded::{Cluster, Stop};

use super::{Site, connect};
use crate::browser::get;

/// The library waits half a minute for a lost server, once for each query of a page.
#[tokio::test(flavor = "multi_thread")]
async fn page_is_given_up_while_the_database_is_away() {
    let server = Cluster::temporary().start().expect("a server");
    let url = server.url("postgres");
    let db = Db::connect(&url).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("text")).await.expect("created");
    let site = Site::of(url.clone(), db, connect(&url).await, |console| console).await;
    assert_eq!(get(site.address, "/").await.status, 200);
    server.stop(Stop::Fast).expect("stopped");
    let page = timeout(Duration::from_secs(50), get(site.address, "/")).await.expect("it is given up");
    assert_eq!(page.status, 503, "{}", page.body);
    site.end().await;
}
