//! Actions that wait for a lock stop no page and no sample.

use std::time::{Duration, Instant};

use tokio::{task::JoinSet, time::timeout};
use trunkline::{Queue, Settings};

use super::{Site, connect};
use crate::browser::{get, post};

const SOON: Duration = Duration::from_secs(60);

/// Waits until this many sessions wait for a lock.
async fn until_waiting(site: &Site, sessions: i64) {
    let waiting =
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let deadline = Instant::now() + SOON;
    while site.number(waiting).await < sessions {
        assert!(Instant::now() < deadline, "no action waits");
        crate::until_next_poll().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_that_wait_for_a_row_stop_no_page() {
    let site = Site::new().await;
    site.db.create_queue("q", &Settings::new("text")).await.expect("created");
    let queue: Queue<String> = site.db.queue("q").await.expect("opened");
    queue.enqueue(&"held".to_owned()).await.expect("enqueued");
    let (address, csrf) = (site.address, get(site.address, "/queues/q").await.csrf());
    let holder = connect(&site.url).await;
    holder.batch_execute("begin; select from trunkline.queue_q for update").await.expect("locked");
    let purge = move |token: u32| {
        let (csrf, token) = (csrf.clone(), format!("{token:032x}"));
        let form = [("verb", "purge"), ("queue", "q"), ("confirm", "q")];
        async move { post(address, "/act", &[&form[..], &[("csrf", &csrf), ("token", &token)]].concat()).await }
    };
    let mut purges = JoinSet::new();
    for token in 1..=3 {
        purges.spawn(purge(token));
    }
    until_waiting(&site, 2).await;
    for path in ["/", "/queues/q", "/queues/q/dead", "/audit", "/metrics"] {
        let page = timeout(Duration::from_secs(8), get(address, path)).await.expect(path);
        assert_eq!(page.status, 200, "{path}: {}", page.body);
        assert!(path != "/metrics" || page.body.contains("\ntrunkline_up 1\n"), "{}", page.body);
    }
    // The actions end although the row stays locked.
    while let Some(answer) = timeout(SOON, purges.join_next()).await.expect("it is given up") {
        let answer = answer.expect("no panic");
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert!(
            answer.body.contains("another session") && answer.body.contains("Nothing was done."),
            "{}",
            answer.body
        );
    }
    assert_eq!(site.number("select count(*) from trunkline.audit").await, 0);
    holder.batch_execute("rollback").await.expect("let go");
    assert_eq!(purge(4).await.status, 303);
    assert_eq!(site.number("select due from trunkline.stats('q')").await, 0);
    site.end().await;
}
