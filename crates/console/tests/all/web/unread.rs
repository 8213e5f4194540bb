//! A console that cannot read the queues does not look like a console without problems.

use std::time::{Duration, Instant};

use trunkline::{Db, Settings};

use super::{SAMPLE, Site, connect};
use crate::browser::get;

const SOON: Duration = Duration::from_secs(60);
const UNKNOWN: &str = r#"<section class="verdict unknown" aria-labelledby="verdict">"#;

/// Waits until the overview shows queue `q`, and its summary is unknown, or is known if
/// `is_unknown` is false. Returns the page.
async fn until_unknown(site: &Site, is_unknown: bool) -> String {
    let deadline = Instant::now() + SOON;
    loop {
        let page = get(site.address, "/").await;
        let has_queue = page.status == 200 && page.body.contains("data-queue=\"q\"");
        if has_queue && page.body.contains(UNKNOWN) == is_unknown {
            return page.body;
        }
        assert!(Instant::now() < deadline, "{}: {}", page.status, page.body);
        crate::until_next_poll().await;
    }
}

/// Returns the first event of the live numbers.
async fn first_event(site: &Site) -> serde_json::Value {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let mut stream = tokio::net::TcpStream::connect(site.address).await.expect("connected");
    let request = format!("GET /live HTTP/1.1\r\nhost: {}\r\n\r\n", site.address);
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut lines = BufReader::new(stream).lines();
    loop {
        let line = lines.next_line().await.expect("read").expect("an event");
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str(data).expect("JSON");
        }
    }
}

fn looks_healthy(body: &str) -> bool {
    body.contains("All is well") || body.contains("0 queues") || body.contains("There are no queues yet")
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_that_were_never_read_do_not_look_well() {
    let site = Site::new().await;
    site.db.create_queue("q", &Settings::new("text")).await.expect("created");
    let role = format!("unread_{}", std::process::id());
    site.sql.batch_execute(&format!("create role {role}")).await.expect("created");
    for (schema, lacks) in [("trunkline", "permission denied"), ("absent", "schema")] {
        let url = format!("{} schema={schema} options='-c role={role}'", site.url);
        let db = Db::connect(&url).await.expect("connected");
        let blind = Site::of(url, db, connect(&site.url).await, |console| console).await;
        let body = get(blind.address, "/").await.body;
        assert!(body.contains(UNKNOWN) && !looks_healthy(&body), "{schema}: {body}");
        assert!(body.contains("The numbers are not being updated: ") && body.contains(lacks), "{schema}: {body}");
        assert!(!body.contains("the database does not answer"), "it answers: {body}");
        let event = first_event(&blind).await;
        assert_eq!(event["verdict"]["state"], "unknown", "{event}");
        let health = get(blind.address, "/healthz").await;
        assert!(health.status == 503 && health.body.contains("cannot be read"), "{health:?}");
        blind.end().await;
    }
    site.sql.batch_execute(&format!("drop role {role}")).await.expect("dropped");
    site.end().await;
}

#[tokio::test]
async fn old_numbers_do_not_look_well() {
    let site = Site::new().await;
    site.db.create_queue("q", &Settings::new("text")).await.expect("created");
    crate::pass(SAMPLE).await;
    let well = until_unknown(&site, false).await;
    assert!(!well.contains("not known"), "{well}");
    site.sql.batch_execute("alter table trunkline.queue rename to hidden").await.expect("renamed");
    crate::pass(SAMPLE).await;
    let body = until_unknown(&site, true).await;
    assert!(!looks_healthy(&body), "{body}");
    assert!(body.contains("as of the last reading"), "{body}");
    site.sql.batch_execute("alter table trunkline.hidden rename to queue").await.expect("renamed");
    crate::pass(SAMPLE).await;
    until_unknown(&site, false).await;
    site.end().await;
}
