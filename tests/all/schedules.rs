//! Tests schedules: they are declared, listed and changed, each tick happens once across many
//! processes, and missed ticks and errors are handled.

mod bad_input;
mod failing;
mod once;
mod panics;
mod settings;
mod unplaced;

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use tokio::{sync::oneshot, task::JoinHandle, time::timeout};
use tokio_postgres::Client;
use trunkline::{Db, Message, Metadata, Missed, Result, Schedule, Scheduled, Settings, Worker};

use crate::fixture::{Place, Runs, SOON, eventually, place};

/// A task that runs schedules until the test stops it.
pub struct Ticks {
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<()>>,
}

impl Ticks {
    pub fn start(db: &Db) -> Self {
        let ((stop, stopped), db) = (oneshot::channel(), db.clone());
        let ended = tokio::spawn(async move { db.run_schedules(async { stopped.await.unwrap_or(()) }).await });
        Self { stop, ended }
    }

    pub async fn stop(self) {
        self.stop.send(()).expect("it runs still");
        timeout(SOON, self.ended).await.expect("in time").expect("no panic").expect("no error");
    }
}

async fn one(db: &Db, name: &str) -> Scheduled {
    let all = db.schedules().await.expect("listed");
    all.into_iter().find(|schedule| schedule.name == name).expect("it is there")
}

/// Sets the schedule's next tick as if no process had made ticks since `when`.
pub async fn not_since(sql: &Client, name: &str, when: &str) {
    let moved = format!("update trunkline.schedule set next_at = {when}, placed = true where name = '{name}'");
    assert_eq!(sql.execute(&moved, &[]).await.expect("moved"), 1);
    sql.batch_execute("notify \"trunkline._schedules\"").await.expect("told");
}

/// Returns the ticks in the messages' metadata, in order.
fn ticks(messages: &[Message<i64>]) -> Vec<String> {
    let mut all: Vec<String> =
        messages.iter().map(|message| message.metadata.get("tick").expect("a tick").to_owned()).collect();
    all.sort();
    all
}

pub const YEARLY: &str = "0 0 1 1 *";

#[tokio::test(flavor = "multi_thread")]
async fn schedule_declared_at_every_start_stays_unchanged() {
    let Place { db, queue, .. } = place::<i64>(Settings::new("int8")).await;
    let schedule = Schedule::new("nightly", "0 3 * * *")
        .zone("Europe/Berlin")
        .missed(Missed::Skip)
        .metadata(Metadata::new().with("tenant", "acme"));
    assert!(queue.schedule(&schedule, &7).await.expect("set"));
    let ticks = Ticks::start(&db);
    eventually("it has a next tick", async || one(&db, "nightly").await.next.is_some()).await;
    let before = one(&db, "nightly").await;
    assert!(!queue.schedule(&schedule, &7).await.expect("set"), "nothing changed");
    assert_eq!(one(&db, "nightly").await, before);
    assert_eq!((&*before.queue, &*before.expression, &*before.zone), ("q", "0 3 * * *", "Europe/Berlin"));
    assert_eq!((&*before.payload, before.missed, before.metadata.get("tenant")), ("7", Missed::Skip, Some("acme")));
    assert_eq!((before.next, before.last), (schedule.next_after(SystemTime::now()).expect("valid"), None));
    assert!(!before.is_paused && before.problem.is_none());

    // A change of the payload keeps the time of the next tick, while a change of the expression
    // computes a new time.
    assert!(queue.schedule(&schedule, &8).await.expect("set"));
    assert_eq!((one(&db, "nightly").await.payload, one(&db, "nightly").await.next), ("8".to_owned(), before.next));
    let schedule = Schedule::new("nightly", "0 4 * * *").zone("Europe/Berlin");
    assert!(queue.schedule(&schedule, &8).await.expect("set"));
    let expected = schedule.next_after(SystemTime::now()).expect("valid");
    eventually("it has its new time", async || one(&db, "nightly").await.next == expected).await;
    assert_eq!(queue.stats().await.expect("counted").messages, 0, "a change is no tick");
    ticks.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tick_becomes_a_message_that_names_its_schedule() {
    let Place { db, queue, .. } = place::<i64>(Settings::new("int8")).await;
    let schedule = Schedule::new("pulse", "* * * * * *").metadata(Metadata::new().with("tenant", "acme"));
    let ticks = Ticks::start(&db);
    queue.schedule(&schedule, &7).await.expect("set");
    let mut consumer = queue.consumer(trunkline::Wait::Notify);
    for _ in 0..2 {
        let message = timeout(SOON, consumer.take(1)).await.expect("in time").expect("taken").remove(0);
        assert_eq!((message.payload, message.metadata.get("schedule")), (7, Some("pulse")));
        assert_eq!(message.metadata.get("tenant"), Some("acme"));
        let tick = message.metadata.get("tick").expect("a tick");
        assert!(tick.len() == 20 && tick.ends_with('Z'), "{tick}");
    }
    assert!(one(&db, "pulse").await.last.is_some());
    ticks.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_schedule_have_its_priority() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8").priorities(4)).await;
    for (name, priority) in [("low", 0), ("high", 3)] {
        assert!(
            queue.schedule(&Schedule::new(name, YEARLY).priority(priority), &i64::from(priority)).await.expect("set")
        );
        assert_eq!(one(&db, name).await.priority, priority);
        not_since(&sql, name, "now()").await;
    }
    let runs = Ticks::start(&db);
    eventually("both tick", async || queue.stats().await.expect("counted").messages == 2).await;
    runs.stop().await;
    let payloads: Vec<i64> = queue.take(10).await.expect("taken").iter().map(|message| message.payload).collect();
    assert_eq!(payloads, [3, 0], "the highest first");
    // The priority changes like the other settings, while the times stay the same.
    let mut expected = one(&db, "high").await;
    expected.priority = 1;
    let change = "select trunkline.set_schedule('high', 'q', '0 0 1 1 *', '3', priority => 1)";
    assert!(sql.query_one(change, &[]).await.expect("set").get::<_, bool>(0));
    assert_eq!(one(&db, "high").await, expected);
    let id = db.fire_schedule("high").await.expect("fired");
    assert_eq!(queue.find(id).await.expect("looked for").expect("there").priority, 1);
    let error = queue.schedule(&Schedule::new("high", YEARLY).priority(4), &3).await.expect_err("none").to_string();
    assert!(error.contains("from 0 to 3"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_schedule_have_its_key() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8").partitions(4)).await;
    for (name, key) in [("first", "a"), ("second", "b")] {
        assert!(queue.schedule(&Schedule::new(name, YEARLY).key(key), &1).await.expect("set"));
        assert!(!queue.schedule(&Schedule::new(name, YEARLY).key(key), &1).await.expect("the same"));
        assert_eq!(one(&db, name).await.key.as_deref(), Some(key));
        not_since(&sql, name, "now()").await;
    }
    let runs = Ticks::start(&db);
    eventually("both tick", async || queue.stats().await.expect("counted").messages == 2).await;
    runs.stop().await;
    assert!(queue.schedule(&Schedule::new("first", YEARLY).key("c"), &1).await.expect("changed"));
    let id = db.fire_schedule("first").await.expect("fired");
    assert_eq!(queue.find(id).await.expect("looked for").expect("there").key.as_deref(), Some("c"));
    let error = queue.schedule(&Schedule::new("none", YEARLY), &1).await.expect_err("it wants one").to_string();
    assert!(error.contains("needs a key"), "{error}");
    for (call, words) in
        [("'none', 'q', '@daily', '1'", "needs a key"), ("'none', 'q', '@daily', '1', key => ''", "empty")]
    {
        let error = sql.batch_execute(&format!("select trunkline.set_schedule({call})")).await.expect_err(call);
        assert!(error.as_db_error().expect("the server's").message().contains(words), "{call}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_ticks_are_skipped_or_made_up_once_or_each() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    // Declares an hourly schedule whose last tick was ten minutes ago. So even that tick counts as
    // missed.
    let expression: String = sql
        .query_one(
            "select format('%s * * * *', extract(minute from now() at time zone 'UTC' - interval '10 min'))",
            &[],
        )
        .await
        .expect("a minute")
        .get(0);
    let since = "date_trunc('minute', now() - interval '10 min') - interval '3 hours'";
    for (missed, count) in [(Missed::Skip, 0), (Missed::Once, 1), (Missed::Each, 4)] {
        queue.schedule(&Schedule::new("hourly", expression.as_str()).missed(missed), &1).await.expect("set");
        not_since(&sql, "hourly", since).await;
        let runs = Ticks::start(&db);
        eventually("all is made up for", async || one(&db, "hourly").await.next > Some(SystemTime::now())).await;
        runs.stop().await;
        let made = queue.take(10).await.expect("taken");
        assert_eq!(made.len(), count, "{missed:?}");
        assert_eq!(ticks(&made).iter().collect::<BTreeSet<_>>().len(), count);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_schedule_makes_no_ticks_and_makes_none_up_later() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    queue.schedule(&Schedule::new("yearly", YEARLY).missed(Missed::Each), &1).await.expect("set");
    queue.schedule(&Schedule::new("other", YEARLY), &2).await.expect("set");
    db.pause_schedule("yearly").await.expect("paused");
    db.pause_schedule("yearly").await.expect("paused still");
    assert!(one(&db, "yearly").await.is_paused && one(&db, "yearly").await.next.is_none());
    not_since(&sql, "yearly", "now() - interval '3 years'").await;
    not_since(&sql, "other", "now()").await;
    let runs = Ticks::start(&db);
    eventually("the other one ticks", async || one(&db, "other").await.last.is_some()).await;
    assert_eq!(one(&db, "yearly").await.last, None);

    db.resume_schedule("yearly").await.expect("resumed");
    let expected = Schedule::new("yearly", YEARLY).next_after(SystemTime::now()).expect("valid");
    eventually("it goes on", async || one(&db, "yearly").await.next == expected).await;
    db.resume_schedule("yearly").await.expect("nothing happens");
    assert_eq!((one(&db, "yearly").await.last, one(&db, "yearly").await.next), (None, expected));
    runs.stop().await;
    assert_eq!(queue.take(10).await.expect("taken").iter().map(|message| message.payload).collect::<Vec<_>>(), [2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn schedule_is_fired_by_hand_and_goes_with_its_queue() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    queue.schedule(&Schedule::new("yearly", YEARLY), &1).await.expect("set");
    db.pause_schedule("yearly").await.expect("paused");
    let id = db.fire_schedule("yearly").await.expect("fired");
    let message = queue.take(1).await.expect("taken").remove(0);
    assert_eq!((message.id, message.payload, message.metadata.get("schedule")), (id, 1, Some("yearly")));
    assert!(one(&db, "yearly").await.is_paused && one(&db, "yearly").await.last.is_none(), "no tick of its own");

    db.drop_schedule("yearly").await.expect("dropped");
    assert_eq!(db.schedules().await.expect("listed"), []);
    for gone in [
        db.drop_schedule("yearly").await,
        db.pause_schedule("yearly").await,
        db.resume_schedule("yearly").await,
        db.fire_schedule("yearly").await.map(drop),
    ] {
        let error = gone.expect_err("none").to_string();
        assert!(error.contains("there is no schedule 'yearly'") && error.contains("set_schedule"), "{error}");
    }
    queue.schedule(&Schedule::new("yearly", YEARLY), &1).await.expect("set");
    sql.batch_execute("select trunkline.drop_queue('q')").await.expect("dropped");
    assert_eq!(db.schedules().await.expect("listed"), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_makes_ticks_after_shifted_time_beside_its_work() {
    let Place { queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    let (seen, mut handled) = tokio::sync::mpsc::unbounded_channel();
    let worker = Worker::new(queue.clone(), move |message: Message<i64>| {
        let seen = seen.clone();
        async move {
            seen.send(message.payload).expect("heard");
            Ok::<(), std::convert::Infallible>(())
        }
    });
    let worker = Runs::start(worker);
    queue.schedule(&Schedule::new("yearly", YEARLY), &5).await.expect("set");
    eventually("the worker has seen it", async || {
        let placed = "select placed from trunkline.schedule where name = 'yearly'";
        sql.query_one(placed, &[]).await.expect("read").get(0)
    })
    .await;
    sql.batch_execute("select trunkline.shift('q', '366 days')").await.expect("a year passes");
    // A change of another schedule makes the process look for due ticks at once, instead of after
    // half a minute.
    queue.schedule(&Schedule::new("other", YEARLY), &6).await.expect("set");
    assert_eq!(timeout(SOON, handled.recv()).await.expect("in time"), Some(5));
    assert_eq!(worker.stop().await.done, 1);
}

#[tokio::test]
async fn idle_schedules_cost_nothing_to_speak_of() {
    let Place { db, queue, .. } = place::<i64>(Settings::new("int8")).await;
    queue.schedule(&Schedule::new("yearly", YEARLY), &1).await.expect("set");
    let said = crate::fixture::Said::statements();
    let _ear = said.listen();
    let runs = Ticks::start(&db);
    eventually("it has looked", async || said.contains("schedules_due_in")).await;
    eventually("its listener has proved itself", async || one(&db, "yearly").await.next.is_some()).await;
    said.take();
    for _ in 0..10 {
        crate::fixture::move_time(Duration::from_secs(60)).await;
        eventually("it looks once a minute", async || said.count() > 0).await;
        let statements = said.take();
        assert!(statements.len() <= 4, "in a minute: {statements:?}");
    }
    runs.stop().await;
}
