//! The page of a queue: charts of the last hour, its workers, and the messages that block its keys.

use std::time::{Duration, Instant};

use trunkline::{Draft, Failure, Message, Queue, RetryPolicy, Settings, Worker};

use super::{Site, connect, deeds::act};
use crate::browser::get;

const SOON: Duration = Duration::from_secs(150); // a busy machine samples its queues less often

async fn queue(site: &Site, name: &str, settings: Settings) -> Queue<String> {
    site.db.create_queue(name, &settings).await.expect("created");
    site.db.queue(name).await.expect("opened")
}

/// Returns the cells of the table with this id, row by row.
fn rows(page: &str, id: &str) -> Vec<Vec<String>> {
    let at = page.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no table {id} in {page}"));
    let table = page[at..].split("</table>").next().unwrap_or_default();
    let body = table.split("<tbody>").nth(1).unwrap_or_default();
    let rows = body.split("<tr>").skip(1);
    rows.map(|row| row.split("</t").map(text).collect()).collect()
}

/// Returns the text of a cell without its tags.
fn text(cell: &str) -> String {
    let parts = cell.split('<').map(|part| part.rsplit('>').next().unwrap_or_default());
    parts.collect::<String>().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_key_is_shown_with_its_cause_and_end() {
    let site = Site::new().await;
    let bookings = queue(&site, "bookings", Settings::new("text").partitions(4)).await;
    for (key, payload) in [("ada", "fails"), ("ada", "waits"), ("bob", "passes")] {
        bookings.enqueue(Draft::new(payload.to_owned()).key(key)).await.expect("enqueued");
    }
    let worker = Worker::new(bookings.clone(), |message: Message<String>| async move {
        if message.payload == "fails" { Err(Failure::retry("no <room> left")) } else { Ok(()) }
    });
    let worker = worker.retry(RetryPolicy::fixed(Duration::from_secs(3600)));
    tokio::time::timeout(SOON, worker.drain()).await.expect("it ends").expect("it works");
    let blocked = site.number("select id from trunkline.messages('bookings') where error <> ''").await;
    let page = get(site.address, "/queues/bookings").await;
    assert_eq!(page.status, 200, "{}", page.body);
    let keys = rows(&page.body, "keys");
    assert_eq!(keys.len(), 1, "{keys:?}");
    let [key, _, why, first, waiting, error] = &keys[0][..6] else { panic!("{keys:?}") };
    assert_eq!((key.as_str(), first.as_str(), waiting.as_str()), ("ada", &*blocked.to_string(), "2"));
    assert!(why.contains("failed at attempt 1 and is due again in 59 min"), "{why}");
    assert_eq!(error, "no &#60;room&#62; left");
    assert!(page.body.contains(&format!("/queues/bookings/messages/{blocked}")), "{}", page.body);
    // Once the blocking message is cancelled, nothing blocks the messages behind it.
    site.number(&format!("select count(*) from trunkline.cancel('bookings', array[{blocked}]::bigint[])")).await;
    let lease = "select count(*) from trunkline.lease_partition('bookings', 10) where payload = 'waits'";
    let deadline = Instant::now() + SOON;
    while site.number(lease).await == 0 {
        assert!(Instant::now() < deadline, "it still waits");
        crate::until_next_poll().await;
    }
    let site = site.restarted(|console| console).await; // the other console shares what it has read
    let page = get(site.address, "/queues/bookings").await;
    let partitions = rows(&page.body, "partitions");
    assert!(
        partitions.iter().any(|partition| partition[1].contains("a worker, whose lease ends in ")),
        "{partitions:?}"
    );
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_that_report_are_shown_with_their_times_and_failures() {
    let site = Site::new().await;
    let jobs = queue(&site, "jobs", Settings::new("text")).await;
    let before = get(site.address, "/queues/jobs").await;
    assert!(before.body.contains("No worker reports"), "{}", before.body);
    jobs.enqueue_many((0..40).map(|n| format!("{n}"))).await.expect("enqueued");
    let worker = Worker::new(jobs.clone(), |message: Message<String>| async move {
        if message.payload == "7" { Err(Failure::dead("seven")) } else { Ok(()) }
    });
    tokio::time::timeout(SOON, worker.concurrency(3).reports(true).drain()).await.expect("it ends").expect("it works");
    let site = site.restarted(|console| console).await;
    let page = get(site.address, "/queues/jobs").await;
    let workers = rows(&page.body, "workers");
    let told = "select sum(handled)::int8 from trunkline.worker where queue = 'jobs' and failed <= 1";
    assert_eq!((workers.len(), site.number(told).await), (1, 40), "{workers:?}");
    let worker = &workers[0];
    assert!(worker[0].starts_with("trunkline on ") && worker[1] == "ended" && worker[2] == "0 of 3", "{worker:?}");
    assert_eq!((worker[6].as_str(), worker[7].as_str()), ("40", "1"), "{worker:?}");
    assert_eq!(worker[10], env!("CARGO_PKG_VERSION"));
    assert!(page.body.contains("Handler time, last hour: p50 "), "{}", page.body);
    // Simulates a worker that has not reported for a while, and does not count as working.
    let silent = "update trunkline.worker set ended = false, at = at - interval '1 minute'";
    site.sql.batch_execute(silent).await.expect("updated");
    let site = site.restarted(|console| console).await;
    let page = get(site.address, "/queues/jobs").await;
    assert_eq!(rows(&page.body, "workers")[0][1], "silent");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_the_last_hour_and_the_sessions_are_there() {
    let site = Site::new().await;
    let lines = queue(&site, "lines.of-it", Settings::new("text").max_batch(5)).await;
    lines.enqueue_many((0..12).map(|n| format!("{n}"))).await.expect("enqueued");
    let site = site.restarted(|console| console).await;
    let deadline = Instant::now() + SOON;
    let page = loop {
        let page = get(site.address, "/queues/lines.of-it").await;
        if page.body.contains("Depth, last hour: messages 12 now; at most 12") {
            break page;
        }
        assert!(Instant::now() < deadline, "{}", page.body);
        crate::until_next_poll().await;
    };
    for title in ["Oldest due", "Messages per second"] {
        assert!(page.body.contains(title), "{title}");
    }
    let named = "set application_name = 'a consumer'; select trunkline.lease('lines.of-it', 1)";
    let consumer = connect(&site.url).await;
    consumer.batch_execute(named).await.expect("leased");
    let site = site.restarted(|console| console).await;
    let page = get(site.address, "/queues/lines.of-it").await;
    assert!(page.body.contains("<li>a consumer on"), "{}", page.body);
    let shard =
        site.sql.query_one("select lpad(to_hex(number), 8, '0') from trunkline.stripe", &[]).await.expect("one");
    assert!(page.body.contains(shard.get::<_, &str>(0)), "{}", page.body);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_queue_share_what_was_read() {
    let site = Site::new().await;
    let bookings = queue(&site, "bookings", Settings::new("text").partitions(4)).await;
    let (none, began) = ("No worker owns a partition, and no message waits in one.", Instant::now());
    let page = get(site.address, "/queues/bookings").await;
    assert!(page.body.contains(none), "{}", page.body);
    bookings.enqueue(Draft::new("one".to_owned()).key("ada")).await.expect("enqueued");
    let again = get(site.address, "/queues/bookings").await;
    let is_shared = again.body.contains(none);
    assert!(is_shared || began.elapsed() >= Duration::from_secs(10), "{}", again.body);
    let site = site.restarted(|console| console).await;
    assert_eq!(rows(&get(site.address, "/queues/bookings").await.body, "partitions").len(), 1);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_after_a_purge_shows_no_purged_message() {
    let site = Site::new().await;
    let bookings = queue(&site, "bookings", Settings::new("text").partitions(4)).await;
    bookings.enqueue(Draft::new("one".to_owned()).key("ada")).await.expect("enqueued");
    assert_eq!(rows(&get(site.address, "/queues/bookings").await.body, "partitions").len(), 1);
    let (_, done) = act(&site, &[("verb", "purge"), ("queue", "bookings")]).await;
    assert!(done.body.contains("Purged 1 message of bookings."), "{}", done.body);
    assert!(done.body.contains("No worker owns a partition, and no message waits in one."), "{}", done.body);
    site.end().await;
}

#[tokio::test]
async fn reports_that_were_locked_are_shown_soon_after() {
    let site = Site::new().await;
    queue(&site, "jobs", Settings::new("text")).await;
    let holder = connect(&site.url).await;
    holder.batch_execute("begin; lock table trunkline.worker in access exclusive mode").await.expect("locked");
    let page = tokio::time::timeout(SOON, get(site.address, "/queues/jobs")).await.expect("in time");
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(page.body.contains("Not visible: workers"), "{}", page.body);
    holder.batch_execute("rollback").await.expect("let go");
    crate::pass(SOON).await;
    let deadline = Instant::now() + SOON;
    loop {
        let page = get(site.address, "/queues/jobs").await;
        if page.body.contains("No worker reports.") && !page.body.contains("Not visible") {
            break;
        }
        assert!(Instant::now() < deadline, "{}", page.body);
        crate::until_next_poll().await;
    }
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_queue_is_shown_without_counts_before_its_first_sample() {
    let site = Site::new().await;
    let holder = connect(&site.url).await;
    for number in 0.. {
        let name = format!("q{number}");
        site.db.create_queue(&name, &Settings::new("text")).await.expect("created");
        let lock = format!("begin; lock table trunkline.queue_{name} in access exclusive mode");
        holder.batch_execute(&lock).await.expect("locked");
        let page = tokio::time::timeout(SOON, get(site.address, &format!("/queues/{name}"))).await.expect("in time");
        assert_eq!(page.status, 200, "{}", page.body);
        holder.batch_execute("rollback").await.expect("let go");
        if page.text_after(r#"<dd data-cell="due">"#) == "–" {
            break;
        }
        assert!(number < 10, "every queue was counted before it was locked: {}", page.body);
    }
    site.end().await;
}
