//! The last hour outlives a console, and is the same in all consoles.

use std::time::{Duration, Instant};

use trunkline::{Db, Queue, Settings};

use super::{Site, connect};
use crate::browser::get;

const SOON: Duration = Duration::from_secs(150); // a busy machine samples its queues less often

/// Reloads the queue's page until it contains a text.
async fn until_shown(site: &Site, text: &str) {
    let deadline = Instant::now() + SOON;
    loop {
        let page = get(site.address, "/queues/emails").await;
        if page.body.contains(text) {
            return;
        }
        assert!(Instant::now() < deadline, "no {text} in {}", page.body);
        crate::until_next_poll().await;
    }
}

async fn another(site: &Site, url: &str) -> Site {
    let db = Db::connect(url).await.expect("connected");
    Site::of(site.url.clone(), db, connect(&site.url).await, |console| console).await
}

#[tokio::test(flavor = "multi_thread")]
async fn last_hour_is_kept_for_the_next_console() {
    let site = Site::new().await;
    site.db.create_queue("emails", &Settings::new("text")).await.expect("created");
    let queue: Queue<String> = site.db.queue("emails").await.expect("opened");
    queue.enqueue_many((0..12).map(|n| n.to_string())).await.expect("enqueued");
    let site = site.restarted(|console| console).await;
    until_shown(&site, "at most 12").await;
    // Inserts the records of an earlier console: a peak half an hour ago, and one row that is too
    // old.
    site.sql
        .batch_execute(
            "insert into trunkline.history
             select date_trunc('minute', now()) - i * interval '1 minute', 'emails', 500, 3, 1, 1, 0 from generate_series(25, 35) i
             union all select now() - interval '25 hours', 'emails', 9999, 3, 1, 1, 0",
        )
        .await
        .expect("written");
    let (one, two) = (another(&site, &site.url).await, another(&site, &site.url).await);
    for console in [&one, &two] {
        until_shown(console, "at most 500").await;
    }
    let old = "select count(*) from trunkline.history where depth = 9999";
    let minutes = "select count(*) - count(distinct minute) from trunkline.history where queue = 'emails'";
    assert_eq!(
        (site.number(old).await, site.number(minutes).await),
        (0, 0),
        "what is old goes, and one console writes"
    );
    one.end().await;
    two.end().await;

    // If the role may not store the history, the console shows what it observed itself.
    let role = format!("looker_{}", site.address.port());
    site.sql.batch_execute(&format!("create role {role} login")).await.expect("a role");
    site.db.grant(&[(trunkline::Right::Operator, role.as_str())], Some("emails")).await.expect("granted");
    let place = "select format('host=%s port=%s dbname=%s', trim(both '\"' from split_part(current_setting('unix_socket_directories'), ',', 1)),
        current_setting('port'), current_database())";
    let place: String = site.sql.query_one(place, &[]).await.expect("asked").get(0);
    let third = another(&site, &format!("{place} user={role}")).await;
    until_shown(&third, "messages 12 now; at most 12").await;
    third.end().await;
    site.sql.batch_execute(&format!("drop owned by {role}; drop role {role}")).await.expect("dropped");
    site.end().await;
}
