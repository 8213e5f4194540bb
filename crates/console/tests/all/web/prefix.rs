//! The console below a path of a proxy that also serves other sites.

use trunkline::{Queue, Settings};

use super::Site;
use crate::browser::{get, post};

#[tokio::test(flavor = "multi_thread")]
async fn every_link_begins_with_the_prefix() {
    let site = Site::with(|console| console.path_prefix("/ops/queues/")).await;
    site.db.create_queue("q", &Settings::new("text")).await.expect("created");
    let queue: Queue<String> = site.db.queue("q").await.expect("opened");
    let id = queue.enqueue(&"dies".to_owned()).await.expect("enqueued").id();
    let leases = queue.lease(1).await.expect("leased");
    queue.bury(&leases, "odd").await.expect("buried");
    site.sql.execute("select trunkline.set_schedule('nightly', 'q', '0 3 * * *', 'go')", &[]).await.expect("set");
    let first = get(site.address, "/ops/queues").await;
    assert_eq!((first.status, first.header("location")), (303, Some("/ops/queues/")));
    let message = format!("/queues/q/messages/{id}");
    for path in [
        "/",
        "/queues/q",
        "/queues/q/dead",
        "/queues/q/messages",
        &message,
        "/schedules",
        "/relays",
        "/audit",
        "/nothing",
    ] {
        // Tests a proxy that forwards the prefix, and one that removes it.
        for prefix in ["/ops/queues", ""] {
            let page = get(site.address, &format!("{prefix}{path}")).await;
            let bare = ["href=\"/", "action=\"/", "src=\"/"].iter().flat_map(|link| page.body.split(link).skip(1));
            let bare: Vec<&str> = bare.filter(|rest| !rest.starts_with("ops/queues/")).collect();
            assert!(bare.is_empty(), "{prefix}{path}: {bare:?}");
            assert!(page.body.contains("href=\"/ops/queues/schedules\""), "{prefix}{path}: {}", page.body);
        }
    }
    for asset in ["/ops/queues/assets/live.js", "/ops/queues/assets/style.css", "/ops/queues/healthz"] {
        assert_eq!(get(site.address, asset).await.status, 200, "{asset}");
    }
    let csrf = get(site.address, "/ops/queues/queues/q").await.csrf();
    let form = [("verb", "pause"), ("queue", "q"), ("csrf", &*csrf), ("token", "00112233445566778899aabbccddeeff")];
    let answer = post(site.address, "/ops/queues/act", &form).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/ops/queues/queues/q")), "{}", answer.body);
    assert!(answer.header("set-cookie").is_some_and(|cookie| cookie.contains("Path=/ops/queues/;")), "{answer:?}");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prefix_that_is_none_is_refused() {
    let site = Site::new().await;
    for prefix in ["ops", "/a b", "/a\"", "/{x}"] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let console = trunkline_console::web::Console::new(site.db.clone()).path_prefix(prefix);
        let refused = console.serve(listener, std::future::ready(())).await.expect_err("refused");
        assert!(refused.to_string().contains("not a path prefix"), "{prefix}: {refused}");
    }
    site.end().await;
}
