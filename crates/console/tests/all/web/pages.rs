//! The content of the pages.

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use trunkline::{Draft, Queue, Settings};

use super::{SAMPLE, Site};
use crate::browser::get;

const SOON: Duration = Duration::from_secs(150); // a busy machine samples its queues less often

async fn texts(site: &Site, name: &str) -> Queue<String> {
    site.db.create_queue(name, &Settings::new("text")).await.expect("created");
    site.db.queue(name).await.expect("opened")
}

#[tokio::test(flavor = "multi_thread")]
async fn row_of_overview_has_limits_schedules_and_failures() {
    let site = Site::new().await;
    texts(&site, "limited").await;
    site.sql
        .batch_execute(
            "select trunkline.limit_queue('limited', max_leased => 7);
             select trunkline.set_schedule('nightly', 'limited', '0 3 * * *', 'go');
             insert into trunkline.worker (worker, queue, process, version, started_at, ended, seconds, handled, failed, running, hands)
             values (gen_random_uuid(), 'limited', 1, '0.1.0', now(), false, 10, 50, 25, 0, 1)",
        )
        .await
        .expect("set");
    let site = site.restarted(|console| console).await;
    let deadline = Instant::now() + SOON;
    loop {
        // Simulates a worker that reports again and again. A report counts for 15 seconds.
        site.sql.batch_execute("update trunkline.worker set at = now()").await.expect("reported");
        let page = get(site.address, "/").await;
        let row = page.body.split(r#"data-queue="limited""#).nth(1).unwrap_or_default();
        let row = row.split("</tr>").next().unwrap_or_default();
        if row.contains("at most 7 leased") && row.contains("1 schedule, next tick ") && row.contains(">2.5<") {
            break;
        }
        assert!(Instant::now() < deadline, "{row}");
        crate::until_next_poll().await;
    }
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn relays_are_listed_with_their_lag_and_the_silent_first() {
    let site = Site::new().await;
    texts(&site, "orders").await;
    assert!(get(site.address, "/relays").await.body.contains("There are no relays."));
    site.sql
        .batch_execute(
            "insert into trunkline.relay (name, queue, broker, inward, confirmed, refused, held, lag, last_error, failed_at, seen_at) values
                 ('a works', 'orders', 'nats://broker/orders', false, 12345, 0, 7, 890, null, null, now()),
                 ('b silent', 'orders', 'kafka://broker/orders', true, 5, 1, 0, null, '<b>away</b>', now(), now() - interval '2 minutes')",
        )
        .await
        .expect("told");
    let page = get(site.address, "/relays").await.body;
    let rows: Vec<&str> = page.split("data-relay=").skip(1).collect();
    assert_eq!(rows.len(), 2, "{page}");
    assert!(rows[0].contains("b silent") && rows[0].contains("silent</span>"), "{}", rows[0]);
    assert!(rows[0].contains("from kafka://broker/orders") && rows[0].contains("&#60;b&#62;away"), "{}", rows[0]);
    assert!(!rows[1].contains("silent</span>") && rows[1].contains("to nats://broker/orders"), "{}", rows[1]);
    assert!([">12,345<", ">890<", ">7<"].iter().all(|number| rows[1].contains(number)), "{}", rows[1]);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn relays_of_one_queue_hide_none_of_another() {
    let site = Site::new().await;
    texts(&site, "orders").await;
    texts(&site, "mails").await;
    site.sql
        .batch_execute(
            "insert into trunkline.relay (name, queue, broker, inward, last_error, failed_at, seen_at)
             select repeat('n', 1000) || i, 'orders', repeat('b', 100000), false, repeat('e', 100000), now(), '-infinity' from generate_series(1, 600) i;
             insert into trunkline.relay (name, queue, broker, inward) values ('honest', 'mails', 'b', false)",
        )
        .await
        .expect("told");
    let page = get(site.address, "/relays").await.body;
    assert!(page.contains("honest") && page.len() < 1024 * 1024, "{}", page.len());
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_entry_has_the_role_that_wrote_it() {
    let site = Site::new().await;
    site.sql
        .batch_execute("insert into trunkline.audit (who, action, what, affected) values ('ada', 'purge', repeat('w', 5000000), 1)")
        .await
        .expect("written");
    let role: String = site.sql.query_one("select session_user::text", &[]).await.expect("asked").get(0);
    let page = get(site.address, "/audit").await.body;
    assert!(page.contains(&format!(r#"data-label="role">{role}<"#)) && page.len() < 100_000, "{}", page.len());
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_says_what_sql_says() {
    let site = Site::new().await;
    // Uses a lease that lasts longer than the test.
    let settings = Settings::new("text").lease(Duration::from_secs(3600));
    site.db.create_queue("mails", &settings).await.expect("created");
    let queue: Queue<String> = site.db.queue("mails").await.expect("opened");
    for _ in 0..3 {
        queue.enqueue(&"now".to_owned()).await.expect("enqueued");
    }
    queue.enqueue(Draft::new("later".to_owned()).after(Duration::from_secs(3600))).await.expect("enqueued");
    let leased = queue.lease(1).await.expect("leased");
    let site = site.restarted(|console| console).await;
    let deadline = Instant::now() + SOON;
    let shown = loop {
        let page = get(site.address, "/").await;
        assert_eq!(page.status, 200);
        if page.body.contains(r#"data-queue="mails""#) && page.text_after(r#"data-cell="due">"#) == "2" {
            break page;
        }
        assert!(Instant::now() < deadline, "{}", page.body);
        crate::until_next_poll().await;
    };
    assert_eq!(shown.text_after(r#"data-cell="leased">"#), "1");
    assert_eq!(shown.text_after(r#"data-cell="delayed">"#), "1");
    assert_eq!(shown.text_after(r#"data-cell="dead">"#), "0");
    assert_eq!(shown.text_after(r#"<h1 id="verdict">"#), "All is well");
    assert_eq!(shown.text_after(r#"<p id="held">"#), "1 queue, 4 messages");
    assert_eq!(site.number("select due + leased + delayed from trunkline.stats('mails')").await, 4);
    assert!(shown.body.len() < 100_000, "{} bytes", shown.body.len());
    drop(leased);
    site.end().await;
}

#[tokio::test]
async fn numbers_go_on_after_the_server_ended_all_sessions() {
    let site = Site::new().await;
    let queue = texts(&site, "broken").await;
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    assert!(site.number(end).await > 0);
    let deadline = Instant::now() + SOON;
    while queue.enqueue(&"after".to_owned()).await.is_err() {
        assert!(Instant::now() < deadline, "not enqueued");
    }
    crate::pass(SAMPLE).await;
    loop {
        let page = get(site.address, "/").await;
        if page.body.contains(r#"data-queue="broken""#) && page.text_after(r#"data-cell="due">"#) == "1" {
            assert!(!page.body.contains("The numbers are not being updated"), "{}", page.body);
            break;
        }
        assert!(Instant::now() < deadline, "{}", page.body);
        crate::until_next_poll().await;
    }
    site.end().await;
}

#[tokio::test]
async fn numbers_move_without_a_new_page() {
    let site = Site::new().await;
    let queue = texts(&site, "moves").await;
    let mut stream = TcpStream::connect(site.address).await.expect("connected");
    let request = format!("GET /live HTTP/1.1\r\nhost: {}\r\n\r\n", site.address);
    stream.write_all(request.as_bytes()).await.expect("sent");
    queue.enqueue(&"one more".to_owned()).await.expect("enqueued");
    crate::pass(SAMPLE).await;
    let (mut told, mut part) = (String::new(), [0; 4096]);
    let read = tokio::time::timeout(SOON, async {
        while !(told.contains(r#""moves":{"#) && told.contains(r#""due":"1""#)) {
            let count = stream.read(&mut part).await.expect("read");
            assert!(count > 0, "it ended after {told}");
            told += &String::from_utf8_lossy(&part[..count]);
        }
    });
    read.await.expect("the number in time");
    site.end().await; // ends the console while a visitor still has the page open
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_payloads_are_shown_and_do_nothing() {
    let site = Site::new().await;
    let queue = texts(&site, "hostile").await;
    let hostile = "<script>alert(1)</script><img src=x onerror=alert(2)>\u{1b}[31m\u{202e}\"'&";
    let id = queue.enqueue(&hostile.to_owned()).await.expect("enqueued").id();
    let long = queue.enqueue(&"x".repeat(8 * 1024 * 1024)).await.expect("enqueued").id();
    for path in ["/queues/hostile/messages".to_owned(), format!("/queues/hostile/messages/{id}")] {
        let page = get(site.address, &path).await;
        assert_eq!(page.status, 200, "{path}");
        assert!(!page.body.contains("<script>alert") && !page.body.contains("<img src=x"), "{}", page.body);
        assert!(!page.body.contains('\u{1b}') && page.body.contains("alert(1)"), "{}", page.body);
    }
    let page = get(site.address, &format!("/queues/hostile/messages/{long}")).await;
    assert!(
        page.body.len() < 100_000 && page.body.contains("Only the first 64 KiB are shown"),
        "{} bytes",
        page.body.len()
    );
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(
        policy.contains("script-src 'self'") && policy.contains("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_and_json_are_shown_as_they_are() {
    let site = Site::new().await;
    site.db.create_queue("bytes", &Settings::new("bytea")).await.expect("created");
    site.db.create_queue("objects", &Settings::new("jsonb")).await.expect("created");
    let bytes = site.number(r"select trunkline.enqueue('bytes', '\x00ff13'::text)").await;
    let object = site.number(r#"select trunkline.enqueue('objects', '{"a": {"b": [1]}}'::text)"#).await;
    let page = get(site.address, &format!("/queues/bytes/messages/{bytes}")).await;
    assert!(page.body.contains(r"\x00ff13"), "{}", page.body);
    let page = get(site.address, &format!("/queues/objects/messages/{object}")).await;
    let key = |name: &str| format!(r#"<span class="json-key">&#34;{name}&#34;</span>: "#);
    assert!(page.body.contains(&format!("{}{{\n    {}[\n", key("a"), key("b"))), "{}", page.body);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_found_by_id_key_metadata_and_state() {
    let site = Site::new().await;
    site.db.create_queue("keyed", &Settings::new("text").partitions(4)).await.expect("created");
    let enqueue = |payload: &str, key: &str, metadata: &str| {
        format!("select trunkline.enqueue('keyed', '{payload}'::text, metadata => '{metadata}', key => '{key}')")
    };
    let first = site.number(&enqueue("payload of ada", "ada", r#"{"tenant": "acme"}"#)).await;
    site.number(&enqueue("payload of bob", "bob", r#"{"tenant": "globex"}"#)).await;
    for (query, found, other) in [
        ("?key=ada", "payload of ada", "payload of bob"),
        ("?metadata=globex", "payload of bob", "payload of ada"),
        ("?state=delayed", "No message matches", "payload of ada"),
    ] {
        let page = get(site.address, &format!("/queues/keyed/messages{query}")).await;
        assert!(page.body.contains(found) && !page.body.contains(other), "{query}: {}", page.body);
    }
    let page = get(site.address, &format!("/queues/keyed/messages?id={first}")).await;
    assert_eq!((page.status, page.header("location")), (303, Some(&*format!("/queues/keyed/messages/{first}"))));
    site.end().await;
}

/// Follows the links to the next page. Returns the ids on all pages and the number of pages.
async fn walk(site: &Site, path: &str, query: &str) -> (Vec<i64>, usize) {
    let (mut ids, mut pages, mut query) = (Vec::new(), 0, query.to_owned());
    loop {
        let page = get(site.address, &format!("{path}{query}")).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let link = format!(r#"<a href="{path}/"#);
        let links = page.body.split(&link).skip(1);
        ids.extend(links.map(|rest| rest.split('"').next().unwrap_or_default().parse::<i64>().expect("an id")));
        pages += 1;
        match page.body.split(r#"rel="next" href=""#).nth(1) {
            Some(rest) => query = rest.split('"').next().unwrap_or_default().replace("&#38;", "&"),
            None => return (ids, pages),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_have_each_message_once_whatever_rows_they_are_in() {
    let site = Site::new().await;
    let queue = texts(&site, "many").await;
    let mut all = Vec::new();
    for size in [1, 700, 1, 1, 49, 51, 2] {
        let drafts = (0..size).map(|n| Draft::new(format!("payload {n}")).with("size", size.to_string()));
        all.extend(queue.enqueue_many(drafts).await.expect("enqueued").iter().map(|new| new.id()).collect::<Vec<_>>());
    }
    let path = "/queues/many/messages";
    assert_eq!(walk(&site, path, "").await.0, all);
    let of_51 = all[752..803].to_vec();
    assert_eq!(walk(&site, path, "?metadata=%2251%22").await, (of_51, 2));
    // A search among many messages: pages without a match link to the next page.
    queue.enqueue_many((0..12_000).map(|n| format!("{n}"))).await.expect("enqueued");
    let last = queue.enqueue(Draft::new("here".to_owned()).with("size", "none")).await.expect("enqueued").id();
    let (found, pages) = walk(&site, path, "?metadata=none").await;
    assert!(found == [last] && pages == 3, "{found:?} on {pages} pages");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_page_says_so() {
    let site = Site::new().await;
    texts(&site, "here").await;
    for (path, status) in [
        ("/queues/absent", 404),
        ("/queues/absent/dead", 404),
        ("/queues/here%27%3b%20drop%20table/messages", 404),
        ("/queues/here/messages/17", 404),
        ("/queues/here/messages/no-number", 400),
        ("/nothing", 404),
    ] {
        let page = get(site.address, path).await;
        assert_eq!(page.status, status, "{path}: {}", page.body);
        assert!(page.body.contains("<h1"), "{path}");
    }
    for path in [
        "/",
        "/queues/here",
        "/queues/here/messages",
        "/queues/here/dead",
        "/schedules",
        "/relays",
        "/doctor",
        "/audit",
    ] {
        assert_eq!(get(site.address, path).await.status, 200, "{path}");
    }
    let health = get(site.address, "/healthz").await;
    assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
    site.end().await;
}

/// The overview of 200 queues, each with a line of the last hour, as transferred to a browser.
#[tokio::test(flavor = "multi_thread")]
async fn overview_of_two_hundred_queues_stays_below_hundred_kilobytes() {
    let site = Site::new().await;
    let create =
        "select trunkline.create_queue('queue-of-a-longer-name-' || i, 'jsonb') from generate_series(1, 200) i";
    site.sql.batch_execute(create).await.expect("created");
    let site = site.restarted(|console| console).await;
    let deadline = Instant::now() + SOON;
    let whole = loop {
        let page = get(site.address, "/").await;
        if page.body.matches("<tr data-queue=").count() == 200 {
            break page;
        }
        assert!(Instant::now() < deadline, "{}", page.body.len());
        crate::until_next_poll().await;
    };
    let mut stream = TcpStream::connect(site.address).await.expect("connected");
    let request =
        format!("GET / HTTP/1.1\r\nhost: {}\r\naccept-encoding: gzip, br\r\nconnection: close\r\n\r\n", site.address);
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("read");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    assert!(head.contains("content-encoding: gzip") && head.contains("vary: accept-encoding"), "{head}");
    let mut unpacked = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&answer[end..]), &mut unpacked).expect("unpacked");
    assert_eq!(unpacked.matches("<tr data-queue=").count(), 200);
    // Reserves room for a line of the last hour in each row: about 200 bytes, which compress as
    // well as digits do.
    assert!(answer.len() + 200 * 100 < 100_000, "{} bytes, {} of them packed", whole.body.len(), answer.len());
    println!("overview of 200 queues: {} bytes, {} as sent", whole.body.len(), answer.len());
    site.end().await;
}
