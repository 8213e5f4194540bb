//! Messages are found by id in every state, cancelled, and rescheduled. No other message changes.

mod at_once;
mod dropped;
mod in_transaction;
mod many;

use std::{
    collections::BTreeSet,
    convert::Infallible,
    time::{Duration, Instant, SystemTime},
};

use tokio::{sync::mpsc, time::timeout};
use tokio_postgres::Client;
use trunkline::{Draft, Error, Found, Lease, Metadata, Queue, Settings, State, Wait, Worker};

use crate::fixture::{Place, Runs, SOON, connect, enqueued, eventually, one_waits, place, run_out, until_asleep};

const HOUR: Duration = Duration::from_secs(3600);
const NOW: Duration = Duration::ZERO;

async fn found(queue: &Queue<i64>, id: i64) -> Found<i64> {
    let found = queue.find(id).await.expect("looked for").expect("it is there");
    // Checks that `peek` returns the same state and time as `find`.
    let peeked = queue.peek(usize::MAX).await.expect("looked at").into_iter().find(|peeked| peeked.id == id);
    assert!(peeked.is_none_or(|peeked| (peeked.state, Some(peeked.due_at)) == (found.state, found.due_at)));
    found
}

/// Returns all data of every waiting message, except the messages with these ids.
async fn all_but(sql: &Client, ids: &[i64]) -> Vec<String> {
    let all = "select (m.*)::text from trunkline.messages_q m where not m.id = any ($1) order by m.id";
    let rows = sql.query(all, &[&ids]).await.expect("read");
    rows.iter().map(|row| row.get(0)).collect()
}

fn is_refused<T: std::fmt::Debug>(outcome: Result<T, Error>, word: &str) {
    let error = outcome.expect_err("refused");
    assert!(error.to_string().contains(word), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_found_in_every_state() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8").max_attempts(9)).await;
    let metadata = Metadata::new().with("who", "me");
    let id = queue.enqueue(Draft::new(7).metadata(metadata.clone()).after(HOUR)).await.expect("enqueued").id();
    let delayed = found(&queue, id).await;
    assert_eq!((delayed.state, delayed.attempt, delayed.payload, &delayed.error), (State::Delayed, 0, 7, &None));
    assert!(delayed.due_at.is_some_and(|due| due > delayed.enqueued_at + HOUR / 2) && delayed.ended_at.is_none());
    assert_eq!((delayed.id, &delayed.metadata), (id, &metadata));

    run_out(&sql).await;
    assert_eq!(found(&queue, id).await.state, State::Due);
    let message = queue.lease(1).await.expect("leased").remove(0);
    let leased = found(&queue, id).await;
    assert_eq!((leased.state, leased.attempt), (State::Leased, 1));
    assert!(leased.due_at > Some(SystemTime::now()), "when the lease ends");
    run_out(&sql).await;
    assert_eq!(found(&queue, id).await.state, State::Due, "its lease expired");

    let message = queue.lease(1).await.expect("leased").pop().unwrap_or(message);
    queue.retry([&message], HOUR, "no such street").await.expect("held");
    let retrying = found(&queue, id).await;
    assert_eq!((retrying.state, retrying.error.as_deref()), (State::Retrying, Some("no such street")));
    run_out(&sql).await;
    assert_eq!(found(&queue, id).await.state, State::Due);

    let message = queue.lease(1).await.expect("leased").remove(0);
    queue.bury([&message], "hopeless").await.expect("held");
    let dead = found(&queue, id).await;
    assert_eq!((dead.state, dead.attempt, dead.error.as_deref()), (State::Dead, 3, Some("hopeless")));
    assert!(dead.due_at.is_none() && dead.ended_at > Some(dead.enqueued_at));
    assert_eq!((dead.payload, &dead.metadata), (7, &metadata));

    queue.replay(&[id]).await.expect("replayed");
    let message = queue.lease(1).await.expect("leased").remove(0);
    queue.archive([&message]).await.expect("held");
    let archived = found(&queue, id).await;
    assert_eq!((archived.state, archived.payload, &archived.metadata), (State::Archived, 7, &metadata));
    assert!(archived.ended_at > Some(archived.enqueued_at) && archived.due_at.is_none());

    let told = "select state || ' ' || payload || ' ' || (metadata ->> 'who') from trunkline.find('q', $1)";
    assert_eq!(sql.query_one(told, &[&id]).await.expect("found").get::<_, String>(0), "archived 7 me");
    queue.prune(NOW).await.expect("pruned");
    assert!(queue.find(id).await.expect("looked for").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_message_leaves_its_batch_neighbours_unchanged() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8")).await;
    let beside: Vec<_> =
        (0..1024).map(|nr| (nr, Metadata::new().with("nr", nr.to_string()))).filter(|(nr, _)| nr % 3 > 0).collect();
    let with = "select trunkline.enqueue_many('q', array(select generate_series(0, 1023)::bigint), '1 hour',
                array(select case when nr % 3 > 0 then jsonb_build_object('nr', nr::text) end from generate_series(0, 1023) nr))";
    let ids: Vec<i64> = sql.query(with, &[]).await.expect("enqueued").iter().map(|row| row.get(0)).collect();
    for (nr, metadata) in beside.iter().step_by(100) {
        let message = found(&queue, ids[*nr as usize]).await;
        assert_eq!((message.payload, &message.metadata), (*nr, metadata));
    }
    let named = [ids[500], ids[501], ids[700], ids[1023], ids[0]];
    let before = all_but(&sql, &named).await;
    let gone = queue.cancel(&named).await.expect("cancelled");
    assert_eq!(gone, [ids[0], ids[500], ids[501], ids[700], ids[1023]]);
    assert_eq!(all_but(&sql, &named).await, before);
    assert_eq!(all_but(&sql, &[]).await, before, "those are gone");
    assert!(queue.find(ids[500]).await.expect("looked for").is_none());

    let moved = queue.reschedule(&[ids[600], ids[601]], HOUR * 24).await.expect("moved");
    assert_eq!(moved, ids[600..602]);
    let but: Vec<i64> = named.into_iter().chain(moved).collect();
    let expected: Vec<String> = all_but(&sql, &but).await;
    assert_eq!(expected.len(), 1024 - 7);
    assert!(expected.iter().all(|message| before.contains(message)), "the others are as they were");
    let far = found(&queue, ids[600]).await;
    assert!(far.state == State::Delayed && far.due_at > Some(SystemTime::now() + HOUR * 23));
    let stats = queue.stats().await.expect("counted");
    assert_eq!((stats.messages, stats.delayed), (1019, 1019));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_message_is_lost_to_its_lease_holder() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8")).await;
    let ids = enqueued(&queue, 1024).await;
    let leased = queue.lease(1024).await.expect("leased");
    assert_eq!(queue.cancel(&[ids[9], ids[3], ids[10]]).await.expect("cancelled"), [ids[3], ids[9], ids[10]]);
    let renewed = queue.extend(&leased[..5], HOUR).await.expect_err("one is lost");
    assert_eq!(renewed.lost_ids(), [ids[3]]);
    let one = [leased[9].lease()];
    for refused in [
        queue.ack(one).await,
        queue.retry(one, NOW, "again").await,
        queue.release(one).await,
        queue.bury(one, "dead").await,
        queue.archive(one).await,
    ] {
        assert!(refused.expect_err("there is no lease").is_lease_lost());
    }
    let call = format!("select trunkline.ack('q', {}, 1)", ids[3]);
    let error = sql.batch_execute(&call).await.expect_err("lost");
    assert_eq!(error.code().map(tokio_postgres::error::SqlState::code), Some("TL001"), "{error:?}");
    let lost = queue.ack(&leased).await.expect_err("three are lost");
    assert!(lost.is_lease_lost() && lost.lost_ids() == [ids[3], ids[9], ids[10]], "{lost}");
    let stats = queue.stats().await.expect("counted");
    assert_eq!((stats.messages, stats.dead, stats.archived), (0, 0, 0));
}

/// The test tolerates a late notification in a minority of cases, because the machine may be busy.
#[tokio::test(flavor = "multi_thread")]
async fn handler_of_a_cancelled_message_is_notified_within_a_second() {
    const SECOND: Duration = Duration::from_secs(1);
    let Place { queue, db: _db, .. } = place(Settings::new("int8").lease(HOUR)).await;
    let ids = enqueued(&queue, 6).await;
    let (told, mut tells) = mpsc::unbounded_channel();
    let runs = Runs::start(
        Worker::with_attempt(queue.clone(), move |message, attempt| {
            let told = told.clone();
            async move {
                told.send((message.id, false)).expect("the test goes on");
                attempt.lost().cancelled().await;
                told.send((message.id, true)).expect("the test goes on");
                Ok::<(), Infallible>(())
            }
        })
        .concurrency(6)
        .shutdown_after(NOW),
    );
    for _ in 0..6 {
        timeout(SOON, tells.recv()).await.expect("in time").expect("it runs");
    }
    // Measures how long a handler runs on after its message is cancelled. The first cancel follows
    // soon after the start of the handlers. Each later cancel follows right after the worker has
    // checked its leases, which is the slowest case.
    let mut took = Vec::new();
    for cancelled in &ids[1..] {
        assert_eq!(queue.cancel(&[*cancelled]).await.expect("cancelled"), [*cancelled]);
        let began = Instant::now();
        let (id, lost) = timeout(SOON, tells.recv()).await.expect("in time").expect("it is told");
        assert!(lost && id == *cancelled, "that one alone");
        took.push(began.elapsed());
    }
    took.sort_unstable();
    assert!(took[2] < SECOND, "most of them within a second: {took:?}");
    assert_eq!(runs.stop().await.lost, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_no_message_that_waits_are_passed_over() {
    let Place { queue, sql, db: _db, .. } = place(Settings::new("int8")).await;
    let ids = enqueued(&queue, 5).await;
    let leased = queue.lease(2).await.expect("leased");
    queue.bury(&leased[..1], "dead").await.expect("held");
    queue.archive(&leased[1..]).await.expect("held");
    let held = queue.lease(1).await.expect("leased");
    let strangers = [i64::MIN, -1025, -1, 0, 1, 1023, ids[0] - 1, ids[4] + 1, i64::MAX, ids[0], ids[1]];
    assert_eq!(queue.cancel(&strangers).await.expect("none"), [0; 0], "dead and archived ones among them");
    assert_eq!(queue.cancel(&[]).await.expect("none"), [0; 0]);
    let with_leased: Vec<i64> = strangers.into_iter().chain([ids[2], ids[3], ids[3]]).collect();
    assert_eq!(queue.reschedule(&with_leased, HOUR).await.expect("moved"), [ids[3]], "once, and not the leased one");
    for id in strangers.into_iter().take(9) {
        assert!(queue.find(id).await.expect("looked for").is_none(), "{id}");
    }
    queue.ack(&held).await.expect("held still");
    let stats = queue.stats().await.expect("counted");
    assert_eq!((stats.messages, stats.dead, stats.archived, stats.delayed), (2, 1, 1, 1));

    is_refused(queue.reschedule(&ids, HOUR * 24 * 36_501).await, "36,500");
    is_refused(queue.reschedule(&ids, SystemTime::now() + HOUR * 24 * 36_501).await, "36,500");
    for (call, word) in [
        ("cancel('q', null)", "the message ids must not be null"),
        ("reschedule('q', null, now())", "the message ids must not be null"),
        ("reschedule('q', '{}', null)", "out of bounds"),
        ("reschedule('q', '{}', 'infinity')", "out of bounds"),
        ("reschedule('q', '{}', now() + '36501 days')", "out of bounds"),
        ("find('nowhere', 1)", "there is no queue"),
        ("cancel('nowhere', '{1}')", "there is no queue"),
        ("reschedule('nowhere', '{1}', now())", "there is no queue"),
    ] {
        let error = sql.batch_execute(&format!("select * from trunkline.{call}")).await.expect_err(call);
        let told = error.as_db_error().expect("the server says so");
        assert!(told.message().contains(word) && told.hint().is_some(), "{call}: {error:?}");
    }
    let nulls = "select count(*) from trunkline.cancel('q', '{null,7}'), trunkline.find('q', null)";
    assert_eq!(sql.query_one(nulls, &[]).await.expect("none").get::<_, i64>(0), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn message_moved_earlier_wakes_consumers_and_moved_later_it_waits() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    for wait in [Wait::Notify, Wait::Adaptive] {
        let id = queue.enqueue(Draft::new(7).after(HOUR)).await.expect("enqueued").id();
        let later = queue.enqueue(Draft::new(8).after(HOUR)).await.expect("enqueued").id();
        let mut consumer = queue.consumer(wait);
        let waits = tokio::spawn(async move { consumer.take(10).await });
        until_asleep(&sql).await;
        // A past time makes the message due now, because the time itself is below the floor of the
        // waiting consumer.
        let moved = queue.reschedule(&[id], SystemTime::UNIX_EPOCH).await.expect("moved");
        assert_eq!(moved, [id]);
        let got = timeout(SOON, waits).await.expect("it is woken").expect("no panic").expect("taken");
        assert_eq!(got.iter().map(|message| message.id).collect::<Vec<_>>(), [id]);
        assert_eq!(queue.cancel(&[later]).await.expect("cancelled"), [later]);
    }
    let ids = enqueued(&queue, 3).await;
    let moved = "select array_agg(id) from trunkline.reschedule('q', $1, now() + '1 hour') id";
    assert_eq!(sql.query_one(moved, &[&&ids[1..2]]).await.expect("moved").get::<_, Vec<i64>>(0), ids[1..2]);
    // A message that is already due keeps its position in the order.
    assert_eq!(queue.reschedule(&ids[..1], NOW).await.expect("moved"), ids[..1]);
    let taken = queue.take(9).await.expect("taken");
    assert_eq!(taken.iter().map(|message| message.id).collect::<Vec<_>>(), [ids[0], ids[2]]);
    let soon = Duration::from_millis(20);
    assert_eq!(queue.reschedule(&ids[1..2], soon).await.expect("moved"), ids[1..2]);
    let mut consumer = queue.consumer(Wait::Notify);
    let last = timeout(SOON, consumer.take(9)).await.expect("in time").expect("taken");
    assert_eq!(last[0].id, ids[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_lease_stays_expired_after_a_reschedule() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let ids = enqueued(&queue, 2).await;
    let late: Vec<Lease> = queue.lease(2).await.expect("leased").iter().map(Lease::from).collect();
    run_out(&sql).await;
    assert_eq!(queue.reschedule(&ids[..1], HOUR).await.expect("moved"), ids[..1]);
    let moved = found(&queue, ids[0]).await;
    assert_eq!((moved.state, moved.error.as_deref()), (State::Retrying, Some("the lease expired")));
    assert_eq!(queue.ack(late).await.expect_err("both are lost").lost_ids(), ids);
    assert_eq!(queue.reschedule(&ids, NOW).await.expect("moved"), ids);
    let states: BTreeSet<_> =
        [found(&queue, ids[0]).await.state.name(), found(&queue, ids[1]).await.state.name()].into();
    assert_eq!(states, BTreeSet::from(["due"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn message_view_uses_the_index_of_due_times() {
    let Place { sql, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute(
        "insert into trunkline.queue_q (size, payload, due_at) select 1, '{1}', now() + n * interval '1 s' from generate_series(1, 20000) n;
         analyze trunkline.queue_q",
    )
    .await
    .expect("filled");
    let asked = "explain select * from trunkline.messages_q where due_at between now() + '1 min' and now() + '2 min'";
    let plan = sql.query(asked, &[]).await.expect("explained");
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    assert!(plan.iter().any(|line| line.contains("due_q")), "{plan:#?}");
}

/// A message moves between tables while it is looked for.
#[tokio::test(flavor = "multi_thread")]
async fn message_that_is_being_replayed_is_found() {
    let Place { queue, sql, url, db: _db } = place::<i64>(Settings::new("int8")).await;
    let leased = {
        enqueued(&queue, 1).await;
        queue.lease(1).await.expect("leased")
    };
    queue.bury(&leased, "no").await.expect("held");
    let (id, holder) = (leased[0].id, connect(&url).await);
    queue.find(id).await.expect("looked for").expect("planned, and the catalog read");
    holder.batch_execute("begin; lock table trunkline.dead_q in access exclusive mode").await.expect("locked");
    let finding = tokio::spawn({
        let queue = queue.clone();
        async move { queue.find(id).await }
    });
    eventually("it waits for the table of dead letters", || one_waits(&sql)).await;
    holder
        .batch_execute(&format!("select trunkline.replay('q', array[{id}::bigint]); commit"))
        .await
        .expect("replayed");
    let found = timeout(SOON, finding).await.expect("in time").expect("no panic").expect("looked for");
    assert_eq!(found.map(|found| found.payload), leased.first().map(|message| message.payload));
}
