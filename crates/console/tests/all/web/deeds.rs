//! Every action: the console asks first, acts, and writes the audit.

use std::time::Duration;

use trunkline::{Draft, Failure, Message, Queue, Settings, Worker};

use super::{Site, connect};
use crate::browser::{Answer, get, post, send};

/// Requests an action and confirms it. Returns the confirmation page and the page that follows.
pub async fn act(site: &Site, fields: &[(&str, &str)]) -> (Answer, Answer) {
    let (asked, answer) = sent(site, fields).await;
    (asked, followed(site, answer).await)
}

/// Requests an action and confirms it. Returns the confirmation page and the answer.
pub async fn sent(site: &Site, fields: &[(&str, &str)]) -> (Answer, Answer) {
    let csrf = get(site.address, &format!("/queues/{}", field(fields, "queue"))).await.csrf();
    let all = [fields, &[("csrf", &csrf)]].concat();
    let asked = post(site.address, "/act/ask", &all).await;
    if asked.status != 200 {
        let refused = post(site.address, "/act", &all).await;
        return (asked, refused);
    }
    let token = asked.hidden("token");
    let confirm = field(fields, "queue");
    let all = [&*all, &[("token", &token), ("confirm", confirm)]].concat();
    let answer = post(site.address, "/act", &all).await;
    (asked, answer)
}

/// Returns the page to which an action leads, with its notice.
pub async fn followed(site: &Site, answer: Answer) -> Answer {
    let (303, Some(place)) = (answer.status, answer.header("location")) else { return answer };
    let cookie = answer.header("set-cookie").and_then(|cookie| cookie.split(';').next()).expect("a notice");
    let page = send(site.address, "GET", place, &[("cookie", cookie)], "").await;
    assert!(page.header("set-cookie").is_some_and(|cookie| cookie.contains("Max-Age=0")), "it is said once");
    page
}

/// Returns the notice on a page.
fn notice(page: &Answer) -> String {
    page.text_after(r#"<p class="notice" role="status" id="notice">"#)
}

fn field<'a>(fields: &[(&str, &'a str)], name: &str) -> &'a str {
    fields.iter().find(|(is, _)| *is == name).map(|(_, value)| *value).expect(name)
}

pub async fn dead(site: &Site, name: &str, errors: &[&str]) -> Queue<String> {
    site.db.create_queue(name, &Settings::new("text")).await.expect("created");
    let queue: Queue<String> = site.db.queue(name).await.expect("opened");
    for error in errors {
        queue.enqueue(&format!("of {error}")).await.expect("enqueued");
        let leases = queue.lease(1).await.expect("leased");
        queue.bury(&leases, *error).await.expect("buried");
    }
    queue
}

async fn audit(site: &Site) -> Vec<(String, String, Option<String>, i64)> {
    let rows = site
        .sql
        .query("select who, action, queue, affected from trunkline.audit order by id", &[])
        .await
        .expect("read");
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect()
}

fn entry(action: &str, queue: &str, affected: i64) -> (String, String, Option<String>, i64) {
    ("local".to_owned(), action.to_owned(), Some(queue.to_owned()), affected)
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_are_confirmed_first_and_written_down() {
    let site = Site::new().await;
    let queue = dead(&site, "q", &[]).await;
    let (asked, done) =
        act(&site, &[("verb", "enqueue"), ("queue", "q"), ("payload", "by hand"), ("delay", "1h")]).await;
    assert!(asked.body.contains("a message of 7 bytes is enqueued, due in 3600 s"), "{}", asked.body);
    assert_eq!(notice(&done), "Enqueued a message into q.");
    let delayed = "select id from trunkline.messages('q') where due_at between now() + interval '59 minutes' and now() + interval '1 hour'";
    let id = site.number(delayed).await.to_string();

    act(&site, &[("verb", "reschedule"), ("queue", "q"), ("id", &id), ("delay", "0s")]).await;
    assert_eq!(site.number("select due from trunkline.stats('q')").await, 1);
    act(&site, &[("verb", "pause"), ("queue", "q")]).await;
    assert!(queue.lease(1).await.expect("asked").is_empty());
    act(&site, &[("verb", "resume"), ("queue", "q")]).await;
    act(&site, &[("verb", "cancel"), ("queue", "q"), ("id", &id)]).await;
    assert!(queue.lease(1).await.expect("asked").is_empty());
    queue.enqueue(&"one".to_owned()).await.expect("enqueued");
    let (asked, _) = act(&site, &[("verb", "purge"), ("queue", "q")]).await;
    assert_eq!(asked.text_after(r#"<b id="count">"#), "1");
    assert_eq!(site.number("select due from trunkline.stats('q')").await, 0);

    let expected = ["enqueue", "reschedule", "pause", "resume", "cancel", "purge"].map(|action| entry(action, "q", 1));
    assert_eq!(audit(&site).await, expected);
    assert!(
        get(site.address, "/audit").await.body.contains("message")
            && !get(site.address, "/audit").await.body.contains("by hand")
    );
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn letter_that_dies_after_the_question_is_not_affected() {
    let site = Site::new().await;
    let queue = dead(&site, "d", &["seen", "seen"]).await;
    let csrf = get(site.address, "/queues/d").await.csrf();
    let all = [("csrf", csrf.as_str()), ("verb", "discard"), ("queue", "d")];
    let asked = post(site.address, "/act/ask", &all).await;
    assert_eq!(asked.text_after(r#"<b id="count">"#), "2");
    queue.enqueue(&"late".to_owned()).await.expect("enqueued");
    queue.bury(&queue.lease(1).await.expect("leased"), "unseen").await.expect("buried");
    let (token, counted) = (asked.hidden("token"), asked.hidden("counted"));
    let answer = post(site.address, "/act", &[&all[..], &[("token", &token), ("counted", &counted)]].concat()).await;
    assert_eq!(notice(&followed(&site, answer).await), "Discarded 2 dead letters.");
    assert_eq!(site.number("select count(*) from trunkline.dead_letters('d') where error = 'unseen'").await, 1);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_replayed_or_discarded_singly_grouped_or_all() {
    let site = Site::new().await;
    dead(&site, "d", &["no such host", "no such host", "too <b>large</b>", "odd", "last"]).await;
    let page = get(site.address, "/queues/d/dead").await;
    assert!(page.body.contains("no such host") && page.body.contains("too &#60;b&#62;large"), "{}", page.body);
    let (asked, done) = act(&site, &[("verb", "replay"), ("queue", "d"), ("error", "no such host")]).await;
    assert_eq!(asked.text_after(r#"<b id="count">"#), "2");
    assert_eq!(notice(&done), "Replayed 2 dead letters.");
    assert_eq!(site.number("select due from trunkline.stats('d')").await, 2);
    let odd = site.number("select id from trunkline.dead_letters('d') where error = 'odd'").await.to_string();
    act(&site, &[("verb", "discard"), ("queue", "d"), ("id", &odd)]).await;
    assert_eq!(site.number("select dead from trunkline.stats('d')").await, 2);
    act(&site, &[("verb", "discard"), ("queue", "d")]).await;
    assert_eq!(site.number("select dead from trunkline.stats('d')").await, 0);
    let (_, again) = act(&site, &[("verb", "discard"), ("queue", "d")]).await;
    assert_eq!(notice(&again), "Nothing was done: nothing was left to change.");
    assert_eq!(
        audit(&site).await,
        [entry("replay", "d", 2), entry("discard", "d", 1), entry("discard", "d", 2), entry("discard", "d", 0)]
    );
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_found_and_moved_by_what_they_have() {
    let site = Site::new().await;
    site.db.create_queue("k", &Settings::new("text").partitions(4)).await.expect("created");
    let queue: Queue<String> = site.db.queue("k").await.expect("opened");
    for (key, tenant, error) in [
        ("ada", "acme", "no such HOST: a"),
        ("ada", "globex", "no such host: b"),
        ("bob", "acme", "refused"),
        ("cid", "acme", ""),
        ("dan", "initech", "refused"),
    ] {
        queue.enqueue(Draft::new(error.to_owned()).key(key).with("tenant", tenant)).await.expect("enqueued");
    }
    let dies = |message: Message<String>| async move { Err::<(), _>(Failure::dead(message.payload)) };
    Worker::new(queue, dies).drain().await.expect("it works");
    let old = "with old as (update trunkline.dead_k set dead_at = now() - interval '2 days' where error = 'refused' and metadata ->> 'tenant' = 'initech' returning 1) select count(*) from old";
    assert_eq!(site.number(old).await, 1);
    let yesterday = site
        .sql
        .query_one("select to_char((now() - interval '1 day') at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI')", &[])
        .await;
    let yesterday: String = yesterday.expect("a time").get(0);
    for (query, count) in [
        ("text=no+such+host".to_owned(), 2),
        ("key=ada".to_owned(), 2),
        ("metadata=acme".to_owned(), 3),
        ("metadata=acme&text=host".to_owned(), 1),
        (format!("until={yesterday}"), 1),
        (format!("from={yesterday}&text=refused"), 1),
        ("error=".to_owned(), 1),
        ("text=&key=&from=".to_owned(), 5),
    ] {
        let page = get(site.address, &format!("/queues/k/dead?{query}")).await;
        let found = page.body.matches("<a href=\"/queues/k/messages/").count();
        assert_eq!((page.status, found), (200, count), "{query}: {}", page.body);
    }
    assert_eq!(get(site.address, "/queues/k/dead?from=soon").await.status, 400);
    let (asked, done) = act(&site, &[("verb", "replay"), ("queue", "k"), ("metadata", "acme"), ("text", "host")]).await;
    assert_eq!(asked.text_after(r#"<b id="count">"#), "1");
    assert!(
        asked.body.contains("the dead letters with an error that contains &#34;host&#34;, with metadata"),
        "{}",
        asked.body
    );
    assert_eq!(notice(&done), "Replayed 1 dead letter.");
    // Dead letters without an error are a separate group, and do not stand for all dead letters.
    let (_, done) = act(&site, &[("verb", "discard"), ("queue", "k"), ("error", "")]).await;
    assert_eq!(notice(&done), "Discarded 1 dead letter.");
    act(&site, &[("verb", "discard"), ("queue", "k"), ("until", &yesterday)]).await;
    let left = "select count(*) from trunkline.dead_letters('k') where error in ('no such host: b', 'refused')";
    assert_eq!((site.number(left).await, site.number("select dead from trunkline.stats('k')").await), (2, 2));
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_at_a_rate_spreads_the_letters() {
    let site = Site::new().await;
    dead(&site, "slow", &["e", "e", "e", "e"]).await;
    let (_, done) = act(&site, &[("verb", "replay"), ("queue", "slow"), ("error", "e"), ("rate", "0.1")]).await;
    assert_eq!(notice(&done), "Replayed 4 dead letters.");
    let spread = "select count(distinct round(extract(epoch from due_at - now()) / 10)) from trunkline.messages('slow') where due_at > now()";
    assert_eq!(site.number(spread).await, 4);
    assert_eq!(site.number("select due + dead from trunkline.stats('slow')").await, 0);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_at_a_rate_holds_up_no_partition() {
    let site = Site::new().await;
    site.db.create_queue("k", &Settings::new("text").partitions(1)).await.expect("created");
    let queue: Queue<String> = site.db.queue("k").await.expect("opened");
    for key in ["a", "b", "c"] {
        queue.enqueue(Draft::new("dies".to_owned()).key(key)).await.expect("enqueued");
    }
    let dies = |_: Message<String>| async move { Err::<(), _>(Failure::dead("e")) };
    Worker::new(queue.clone(), dies).drain().await.expect("it works");
    queue.enqueue(Draft::new("lives".to_owned()).key("d")).await.expect("enqueued");
    // The replay waits after an update of its messages.
    let gate = connect(&site.url).await;
    gate.batch_execute(
        "create function public.pass() returns trigger language plpgsql as
             'begin perform pg_advisory_xact_lock_shared(7); return null; end';
         create trigger pass after update on trunkline.queue_k
             when (current_setting('application_name') = 'trunkline') execute function public.pass();
         select pg_advisory_lock(7)",
    )
    .await
    .expect("closed");
    let replay = act(&site, &[("verb", "replay"), ("queue", "k"), ("error", "e"), ("rate", "0.1")]);
    let others = async {
        let waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted
                     and database = (select oid from pg_database where datname = current_database())";
        while site.number(waits).await == 0 {
            tokio::task::yield_now().await;
        }
        let leased = site.number("select count(*) from trunkline.lease_partition('k', 9)").await;
        gate.batch_execute("select pg_advisory_unlock(7)").await.expect("opened");
        leased
    };
    let ((_, done), leased) = tokio::join!(replay, others);
    assert_eq!((notice(&done).as_str(), leased), ("Replayed 3 dead letters.", 1));
    let spread = "select count(distinct round(extract(epoch from due_at - now()) / 10)) from trunkline.messages('k') where payload = 'dies'";
    assert_eq!(site.number(spread).await, 3);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_is_edited_or_stays() {
    let site = Site::new().await;
    site.db.create_queue("numbers", &Settings::new("int8")).await.expect("created");
    let queue: Queue<i64> = site.db.queue("numbers").await.expect("opened");
    queue.enqueue(&1).await.expect("enqueued");
    let leases = queue.lease(1).await.expect("leased");
    queue.bury(&leases, "wrong number").await.expect("buried");
    let id = site.number("select id from trunkline.dead_letters('numbers')").await.to_string();
    let edit = |payload| [("verb", "edit"), ("queue", "numbers"), ("id", id.as_str()), ("payload", payload)];
    let (_, refused) = act(&site, &edit("two")).await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert_eq!(site.number("select dead from trunkline.stats('numbers')").await, 1);
    assert_eq!(audit(&site).await, []);
    act(&site, &edit("2")).await;
    assert_eq!(queue.take(1).await.expect("taken").first().map(|taken| taken.payload), Some(2));
    assert_eq!(site.number("select dead from trunkline.stats('numbers')").await, 0);
    site.end().await;
}

/// A browser ignores a line break at the beginning of the element.
#[tokio::test(flavor = "multi_thread")]
async fn form_of_a_payload_keeps_its_first_line_breaks() {
    let site = Site::new().await;
    let queue = dead(&site, "broken", &[]).await;
    let id = queue.enqueue(&"\n\nthird".to_owned()).await.expect("enqueued").id();
    let leases = queue.lease(1).await.expect("leased");
    queue.bury(&leases, "e").await.expect("buried");
    let page = get(site.address, &format!("/queues/broken/messages/{id}")).await;
    let typed = page.body.split("<textarea").nth(1).and_then(|rest| rest.split('>').nth(1)).expect("a form");
    assert_eq!(typed.trim_end_matches("</textarea"), "\n\n\nthird");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_is_edited_keeps_its_priority_metadata_and_columns() {
    let site = Site::new().await;
    site.db.create_queue("laned", &Settings::new("text").priorities(3)).await.expect("created");
    let columns = "alter table trunkline.queue_laned add column of text, add column double text generated always as (of || of) stored";
    site.sql.batch_execute(columns).await.expect("altered");
    let queue: Queue<String> = site.db.queue("laned").await.expect("opened");
    let draft = Draft::new("old".to_owned()).priority(2).with("tenant", "acme").column("of", "a");
    queue.enqueue(draft).await.expect("enqueued");
    let leases = queue.lease(1).await.expect("leased");
    queue.bury(&leases, "odd").await.expect("buried");
    let id = leases[0].id.to_string();
    act(&site, &[("verb", "edit"), ("queue", "laned"), ("id", &id), ("payload", "new")]).await;
    let again = queue.peek(1).await.expect("looked");
    let tenant = again[0].metadata.get("tenant");
    assert_eq!((again[0].payload.as_str(), again[0].priority, tenant), ("new", 2, Some("acme")));
    let of = site.sql.query_one("select of || double from trunkline.queue_laned", &[]).await.expect("one");
    assert_eq!(of.get::<_, String>(0), "aaa");
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_pause_resume_and_run_now() {
    let site = Site::new().await;
    dead(&site, "nightly", &[]).await;
    site.sql.execute("select trunkline.set_schedule('report', 'nightly', '0 3 * * *', 'go')", &[]).await.expect("set");
    let of = |verb| [("verb", verb), ("queue", "nightly"), ("schedule", "report")];
    act(&site, &of("pause-schedule")).await;
    assert!(get(site.address, "/schedules").await.body.contains("resume-schedule"));
    act(&site, &of("resume-schedule")).await;
    act(&site, &of("fire-schedule")).await;
    assert_eq!(site.number("select due from trunkline.stats('nightly')").await, 1);
    assert_eq!(audit(&site).await.len(), 3);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_makes_no_sense_does_nothing() {
    let site = Site::new().await;
    dead(&site, "f", &["e"]).await;
    let csrf = get(site.address, "/queues/f").await.csrf();
    for (fields, status) in [
        (vec![("verb", "explode"), ("queue", "f")], 400),
        (vec![("verb", "cancel"), ("queue", "f"), ("id", "one")], 400),
        (vec![("verb", "replay"), ("queue", "f"), ("rate", "-1")], 400),
        (vec![("verb", "reschedule"), ("queue", "f"), ("id", "1"), ("delay", "soon")], 400),
        (vec![("verb", "pause"), ("queue", "stranger's")], 404),
        (vec![("verb", "enqueue"), ("queue", "f"), ("payload", "x"), ("metadata", "no object")], 400),
    ] {
        let fields = [fields, vec![("csrf", csrf.as_str())]].concat();
        let answer = post(site.address, "/act", &fields).await;
        assert_eq!(answer.status, status, "{fields:?}: {}", answer.body);
    }
    assert_eq!(audit(&site).await, []);
    assert_eq!(site.number("select dead from trunkline.stats('f')").await, 1);
    tokio::time::timeout(Duration::from_secs(20), site.end()).await.expect("it ends");
}
