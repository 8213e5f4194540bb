//! The console while the database is away, or does not answer.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use trunkline::{Db, Settings};
use trunkline_embedded::{Cluster, Stop};

use super::{SAMPLE, Site, connect};
use crate::browser::get;

/// The library waits half a minute for a lost server, once for each query of a page.
#[tokio::test]
async fn page_is_given_up_while_the_database_is_away() {
    let server = Cluster::temporary().start().expect("a server");
    let url = server.url("postgres");
    let db = Db::connect(&url).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("text")).await.expect("created");
    let site = Site::of(url.clone(), db, connect(&url).await, |console| console).await;
    assert_eq!(get(site.address, "/").await.status, 200);
    server.stop(Stop::Fast).expect("stopped");
    // Nothing happens meanwhile but that the library tries to connect.
    let page = crate::hurried(20, timeout(Duration::from_secs(50), get(site.address, "/"))).await;
    let page = page.expect("it is given up");
    assert_eq!(page.status, 503, "{}", page.body);
    site.end().await;
}

const SOON: Duration = Duration::from_secs(60);
const OLD: &str = "The numbers are not being updated: the database does not answer";

/// Waits until the overview reports, or no longer reports, that its numbers are old.
async fn until_old(site: &Site, is_old: bool) {
    until(site, OLD, is_old).await;
}

/// Waits until the overview contains, or no longer contains, a text.
async fn until(site: &Site, text: &str, is_there: bool) {
    let deadline = Instant::now() + SOON;
    loop {
        let page = get(site.address, "/").await;
        if page.status == 200 && page.body.contains(text) == is_there {
            return;
        }
        assert!(Instant::now() < deadline, "{}: {}", page.status, page.body);
        crate::until_next_poll().await;
    }
}

#[tokio::test]
async fn numbers_that_stop_because_of_a_lock_are_reported() {
    let site = Site::new().await;
    let holder = connect(&site.url).await;
    holder.batch_execute("begin; lock table trunkline.queue in access exclusive mode").await.expect("locked");
    let late = Db::connect(&site.url).await.expect("connected");
    let late = Site::of(site.url.clone(), late, connect(&site.url).await, |console| console).await;
    tokio::join!(until_old(&site, true), until_old(&late, true));
    timeout(SOON, late.end()).await.expect("it ends all the same");
    holder.batch_execute("rollback").await.expect("let go");
    crate::pass(SAMPLE).await;
    until_old(&site, false).await;
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn console_ends_before_its_first_numbers() {
    let site = Site::new().await;
    let holder = connect(&site.url).await;
    // Locks the table of versions, which a new handle reads before the list of queues.
    holder.batch_execute("begin; lock table trunkline.version in access exclusive mode").await.expect("locked");
    let late = || async {
        let db = Db::connect(&site.url).await.expect("connected");
        Site::of(site.url.clone(), db, connect(&site.url).await, |console| console).await
    };
    let (one, other) = (late().await, late().await);
    let began = Instant::now();
    one.end().await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    until(&other, "The numbers are not being updated: the database does not answer", true).await;
    timeout(SOON, other.end()).await.expect("it ends all the same");
    drop(holder);
    site.end().await;
}
