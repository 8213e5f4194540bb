//! A schema with another name, and queues that are named like the default schema.

use trunkline::{Db, Queue, Settings};
use trunkline_console::doctor::Doctor;
use trunkline_embedded::test_database;

use super::{Site, connect, deeds::sent};
use crate::browser::get;

const QUEUES: [&str; 4] = ["trunkline.x", "other.x", "trunkline", "my-trunkline.y"];

#[tokio::test(flavor = "multi_thread")]
async fn queue_named_like_schema_shows_and_moves_its_own_letters() {
    let url = tokio::task::spawn_blocking(test_database).await.expect("no panic").expect("a database");
    let url = format!("{url} schema=other");
    let db = Db::connect(&url).await.expect("connected");
    db.migrate().await.expect("migrated");
    for name in QUEUES {
        db.create_queue(name, &Settings::new("text")).await.expect("created");
        let queue: Queue<String> = db.queue(name).await.expect("opened");
        queue.enqueue(&"dies".to_owned()).await.expect("enqueued");
        let leases = queue.lease(1).await.expect("leased");
        queue.bury(&leases, format!("error of {name}")).await.expect("buried");
        queue.enqueue(&format!("payload of {name}")).await.expect("enqueued");
    }
    let found = Doctor::new().skip_check("dead_letters").skip_check("settings").examine(&db).await.expect("examined");
    assert_eq!(found, [], "plans and the rest are those of the queues");
    let sql = connect(url.trim_end_matches(" schema=other")).await;
    let site = Site::of(url, db, sql, |console| console).await;
    for name in QUEUES {
        for path in ["", "/messages", "/dead"] {
            let page = get(site.address, &format!("/queues/{name}{path}")).await;
            assert_eq!(page.status, 200, "{name}{path}: {}", page.body);
            let of_another = QUEUES.iter().any(|other| {
                *other != name
                    && ["error", "payload"].iter().any(|what| page.body.contains(&format!("{what} of {other}<")))
            });
            assert!(!of_another, "{name}{path}: {}", page.body);
        }
        assert!(get(site.address, &format!("/queues/{name}/dead")).await.body.contains(&format!("error of {name}")));
    }
    let left = "select count(*) from other.dead_letters($1)";
    for (done, name) in QUEUES.into_iter().enumerate() {
        assert_eq!(sent(&site, &[("verb", "discard"), ("queue", name)]).await.1.status, 303, "{name}");
        for (at, name) in QUEUES.into_iter().enumerate() {
            let count: i64 = site.sql.query_one(left, &[&name]).await.expect("counted").get(0);
            assert_eq!(count, i64::from(at > done), "{name}");
        }
    }
    site.end().await;
}
