//! A queue with several problems shows each of them. Errors that differ only in a number are one
//! group. The doctor's page does not block.

use std::time::{Duration, Instant};

use trunkline::{Failure, Message, Queue, Settings, Worker};
use trunkline_console::doctor::Doctor;

use super::{Site, connect, deeds::act};
use crate::browser::get;

const SOON: Duration = Duration::from_secs(150); // a busy machine samples its queues less often

async fn dead(site: &Site, name: &str, errors: &[&str]) {
    site.db.create_queue(name, &Settings::new("text")).await.expect("created");
    let queue: Queue<String> = site.db.queue(name).await.expect("opened");
    queue.enqueue_many(errors.iter().map(|error| (*error).to_owned())).await.expect("enqueued");
    let dies = |message: Message<String>| async move { Err::<(), _>(Failure::dead(message.payload)) };
    Worker::new(queue, dies).drain().await.expect("it works");
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_with_several_troubles_shows_and_counts_all() {
    let site = Site::new().await;
    dead(&site, "both", &["e", "e"]).await;
    dead(&site, "late", &["e"]).await;
    site.db.pause_queue("both").await.expect("paused");
    let late: Queue<String> = site.db.queue("late").await.expect("opened");
    late.enqueue(&"waits".to_owned()).await.expect("enqueued");
    site.sql.batch_execute("update trunkline.queue_late set due_at = now() - interval '1 hour'").await.expect("moved");
    let site = site.restarted(|console| console).await;
    let page = overview(&site, "Needs attention: 1 behind, 2 with dead letters, 1 paused").await;
    let badges = |queue: &str| {
        let row = page.split(&format!("data-queue=\"{queue}\"")).nth(1).expect("a row");
        let cell = row.split("data-states>").nth(1).expect("states").split("</td>").next().unwrap_or_default();
        cell.split("<span class=\"state ")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap_or_default())
            .collect::<Vec<_>>()
    };
    assert_eq!((badges("both"), badges("late")), (vec!["dead", "paused"], vec!["behind", "dead"]));
    assert!(page.contains("2 dead; paused"), "{page}");
    let page = get(site.address, "/queues/both").await;
    assert!(page.body.contains(">Resume …<"), "a queue that is paused can be resumed, whatever else it is");
    site.end().await;
}

/// Returns the overview once it has this text.
async fn overview(site: &Site, text: &str) -> String {
    let deadline = Instant::now() + SOON;
    loop {
        let page = get(site.address, "/").await;
        if page.body.contains(text) {
            return page.body;
        }
        assert!(Instant::now() < deadline, "{}", page.body);
        crate::until_next_poll().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn overview_does_not_stay_green_until_a_slow_count() {
    let site = Site::new().await;
    site.db.create_queue("q", &Settings::new("text")).await.expect("created");
    // A count that takes a second is repeated after five minutes.
    let slow = "alter table trunkline.archive_q rename to quick;
        create view trunkline.archive_q as select pg_sleep(1) is null as slept offset 0";
    site.sql.batch_execute(slow).await.expect("changed");
    let site = site.restarted(|console| console).await;
    overview(&site, "All is well").await;
    let late = "insert into trunkline.queue_q (size, payload, due_at) values (1, '{x}', now() - interval '1 hour');
        insert into trunkline.dead_q (id, enqueued_at, attempt, error, payload) values (1, now(), 1, 'e', 'x')";
    site.sql.batch_execute(late).await.expect("enqueued");
    let page = overview(&site, "Needs attention: 1 behind, 1 with dead letters").await;
    assert!(page.contains("a message due for 1 h; ≥ 1 dead"), "{page}");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn purged_queue_is_counted_at_once_although_it_is_counted_rarely() {
    let site = Site::new().await;
    site.db.create_queue("q", &Settings::new("text")).await.expect("created");
    // A count that takes 0.3 s is repeated after a minute and a half.
    let slow = "select trunkline.enqueue('q', 'waits'::text);
        alter table trunkline.archive_q rename to quick;
        create view trunkline.archive_q as select pg_sleep(0.3) is null as slept offset 0";
    site.sql.batch_execute(slow).await.expect("changed");
    let site = site.restarted(|console| console).await;
    let shown = "<dd data-cell=\"due\">";
    let deadline = Instant::now() + SOON;
    while get(site.address, "/queues/q").await.text_after(shown) != "1" {
        assert!(Instant::now() < deadline, "it is not counted");
        crate::until_next_poll().await;
    }
    let page = act(&site, &[("verb", "purge"), ("queue", "q")]).await.1;
    assert_eq!(page.text_after(shown), "0", "{}", page.body);
    let metrics = get(site.address, "/metrics").await.body;
    assert!(metrics.contains("trunkline_queue_messages{queue=\"q\",state=\"due\"} 0\n"), "{metrics}");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_that_differ_by_ids_are_one_group() {
    let site = Site::new().await;
    let traceback = |n: u8, kind: &str| {
        format!(
            "Traceback (most recent call last):\n  File \"/app/tasks.py\", line {n}, in run\n    work({n})\n{kind}: bad number {n}\n"
        )
    };
    let errors = [
        "HTTP 500 from https://hooks.example.com/1".to_owned(),
        "HTTP 500 from https://hooks.example.com/5?a=b\nits body: 17".to_owned(),
        "HTTP 404 from https://hooks.example.com/5".to_owned(),
        "no order 40001 of customer 7".to_owned(),
        "no order 40999 of customer 12".to_owned(),
        "job 2f1c9a52-6b0e-4c39-9f7e-7ed1c2a4b6d0 is lost".to_owned(),
        "job 00000000-6b0e-4c39-9f7e-7ed1c2a4b6d1 is lost".to_owned(),
        traceback(3, "ValueError"),
        traceback(9, "ValueError"),
        traceback(3, "KeyError"),
    ];
    dead(&site, "g", &errors.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let page = get(site.address, "/queues/g/dead").await;
    let groups =
        page.body.split("aria-label=\"Errors\"").nth(1).expect("groups").split("</table>").next().unwrap_or_default();
    for (kind, count) in [
        ("HTTP 500 from #", 2),
        ("HTTP 404 from #", 1),
        ("no order # of customer #", 2),
        ("job # is lost", 2),
        ("ValueError: bad number #", 2),
        ("KeyError: bad number #", 1),
    ] {
        let row = groups.split("<tr>").find(|row| row.contains(&format!(">{kind}</a>")));
        let row = row.unwrap_or_else(|| panic!("no {kind} in {groups}"));
        assert!(row.contains(&format!("data-label=\"messages\">{count}<")), "{kind}: {row}");
    }
    // The action affects the whole group, and no other dead letters.
    let (asked, _) = act(&site, &[("verb", "discard"), ("queue", "g"), ("error", "ValueError: bad number #")]).await;
    assert_eq!(asked.text_after(r#"<b id="count">"#), "2");
    let left = "select count(*) from trunkline.dead_letters('g') where error like '%ValueError%'";
    assert_eq!((site.number(left).await, site.number("select dead from trunkline.stats('g')").await), (0, 8));
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn group_of_empty_errors_has_a_link_with_a_text() {
    let site = Site::new().await;
    dead(&site, "g", &["e"]).await;
    let empty = "insert into trunkline.dead_g (id, enqueued_at, attempt, error, payload) values (1, now(), 1, '', 'x'), (2, now(), 1, E' \\n', 'x')";
    site.sql.batch_execute(empty).await.expect("inserted");
    let page = get(site.address, "/queues/g/dead").await;
    assert!(page.body.contains(r#"<a href="?error=">(no text)</a>"#), "{}", page.body);
    let page = get(site.address, "/queues/g/dead?error=").await;
    assert!(
        page.body.contains("/queues/g/messages/1\"") && page.body.contains("/queues/g/messages/2\""),
        "{}",
        page.body
    );
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_the_doctor_comes_before_a_slow_look_ends() {
    let site = Site::with(|console| console.doctor(Doctor::new().skip_check("settings").skip_queue("left_*"))).await;
    for name in ["left_out", "seen"] {
        dead(&site, name, &["e"]).await;
    }
    // Creates queues whose checks each wait for some time, and then give up.
    let names: Vec<String> = (0..40).map(|n| format!("held_{n}")).collect();
    for name in &names {
        site.db.create_queue(name, &Settings::new("text")).await.expect("created");
    }
    let tables: Vec<String> = names.iter().map(|name| format!("trunkline.queue_{name}")).collect();
    let holder = connect(&site.url).await;
    let lock = format!("begin; lock table {} in access exclusive mode", tables.join(", "));
    holder.batch_execute(&lock).await.expect("locked");
    let page = get(site.address, "/doctor").await;
    assert!(page.status == 200 && page.body.contains("The doctor has been running for"), "{}", page.body);
    assert!(page.body.contains(r#"<meta http-equiv="refresh""#), "{}", page.body);
    holder.batch_execute("rollback").await.expect("let go");
    let deadline = Instant::now() + SOON;
    loop {
        let page = get(site.address, "/doctor").await;
        if page.body.contains("seen: 1 dead letter, ") {
            assert!(!page.body.contains("left_out") && !page.body.contains("fsync"), "{}", page.body);
            break;
        }
        assert!(Instant::now() < deadline, "{}", page.body);
        crate::until_next_poll().await;
    }
    site.end().await;
}
