//! Tests the limits and the pause of a queue: they are exact over all consumers, effective
//! immediately, and removed completely.

mod paused;
mod room;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{sync::Notify, task::JoinSet, time::timeout};
use tokio_postgres::error::SqlState;
use trunkline::{Db, Dequeue, Draft, Limits, Queue, Settings, Wait};

use crate::fixture::{Place, SOON, connect, enqueued, grows_to, place};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread")]
async fn paused_queue_gives_no_messages_until_it_is_resumed() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    enqueued(&queue, 3).await;
    let held = queue.lease(1).await.expect("leased");
    db.pause_queue("q").await.expect("paused");
    db.pause_queue("q").await.expect("paused still");
    assert!(db.describe_queue("q").await.expect("described").is_paused);
    assert!(queue.lease(9).await.expect("leased").is_empty() && queue.take(9).await.expect("taken").is_empty());
    let transaction = db.begin().await.expect("begun");
    assert!(queue.take_in(&transaction, 9).await.expect("taken").is_empty());
    transaction.rollback().await.expect("rolled back");
    assert_eq!(sql.query("select * from trunkline.take('q', 9)", &[]).await.expect("taken").len(), 0);
    // A paused queue still accepts enqueues, acknowledgements and reads.
    queue.enqueue(9).await.expect("enqueued");
    queue.ack(&held).await.expect("held");
    assert_eq!(queue.stats().await.expect("counted").due, 3);

    for wait in [Wait::Notify, Wait::Adaptive, Wait::Poll(Duration::from_millis(5))] {
        db.pause_queue("q").await.expect("paused");
        let mut consumer = queue.consumer(wait);
        let asleep = Arc::new(Notify::new());
        let sleeps = asleep.clone();
        if !matches!(wait, Wait::Poll(_)) {
            consumer = consumer.before_wait(move || sleeps.notify_one());
        }
        let waiting = tokio::spawn(async move { consumer.take(1).await });
        if !matches!(wait, Wait::Poll(_)) {
            timeout(SOON, asleep.notified()).await.expect("it waits");
        }
        assert!(!waiting.is_finished());
        db.resume_queue("q").await.expect("resumed");
        let taken = timeout(SOON, waiting).await.expect("in time").expect("no panic").expect("taken");
        assert_eq!(taken.len(), 1, "{wait:?}");
    }
    let gone = db.pause_queue("nowhere").await.expect_err("none");
    assert!(gone.is_no_queue(), "{gone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_kept_by_migrations_and_settings() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    enqueued(&queue, 1).await;
    db.pause_queue("q").await.expect("paused");
    sql.batch_execute("select trunkline.alter_queue('q', max_batch => 5)").await.expect("altered");
    sql.batch_execute("select trunkline.install_queue('q')").await.expect("made again");
    assert!(queue.take(1).await.expect("taken").is_empty());
    db.resume_queue("q").await.expect("resumed");
    assert_eq!(queue.take(1).await.expect("taken").len(), 1);
}

/// Leases one message at a time in several consumers until all are acknowledged. Returns the
/// maximum number that were leased at the same time.
async fn worked_on(queues: &[Queue<i64>], messages: usize) -> u64 {
    let mut consumers = JoinSet::new();
    let done = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicU64::new(0));
    for queue in queues.iter().cycle().take(12) {
        let (queue, done, most) = (queue.clone(), done.clone(), most.clone());
        consumers.spawn(async move {
            let mut consumer = queue.consumer(Wait::Notify);
            loop {
                let leased = consumer.lease(1).await.expect("leased");
                let leased_now = queue.stats().await.expect("counted").leased;
                most.fetch_max(leased_now, Ordering::Relaxed);
                queue.ack(&leased).await.expect("held");
                done.fetch_add(leased.len(), Ordering::Relaxed);
            }
        });
    }
    grows_to("all are worked on", messages, || done.load(Ordering::Relaxed)).await;
    consumers.abort_all();
    assert_eq!(done.load(Ordering::Relaxed), messages, "none twice");
    most.load(Ordering::Relaxed)
}

#[tokio::test(flavor = "multi_thread")]
async fn leased_messages_never_exceed_the_limit_across_processes() {
    let Place { db, queue, url, .. } = place::<i64>(Settings::new("int8")).await;
    db.limit_queue("q", &Limits::none().max_leased(3)).await.expect("limited");
    enqueued(&queue, 200).await;
    let mut queues = Vec::new();
    for _ in 0..3 {
        queues.push(Db::connect(&url).await.expect("connected").queue("q").await.expect("opened"));
    }
    let most = worked_on(&queues, 200).await;
    assert!((1..=3).contains(&most), "{most} were leased at a time");
}

/// A snapshot from before another session's lease would not show it, and the limit would be
/// exceeded.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_does_not_see_the_leases_is_refused() {
    let Place { db, queue, sql, url } = place::<i64>(Settings::new("int8")).await;
    db.limit_queue("q", &Limits::none().max_leased(1)).await.expect("limited");
    enqueued(&queue, 3).await;
    for level in ["repeatable read", "serializable"] {
        sql.batch_execute(&format!("begin isolation level {level}; select count(*) from trunkline.queue_q"))
            .await
            .expect("it has a snapshot");
        let leased = queue.lease(9).await.expect("leased");
        assert_eq!(leased.len(), 1);
        let error = sql.batch_execute("select trunkline.lease('q')").await.expect_err(level);
        assert_eq!(error.code(), Some(&SqlState::INVALID_TRANSACTION_STATE), "{error:?}");
        sql.batch_execute("rollback").await.expect("ended");
        queue.release(&leased).await.expect("held");
    }
    // Checks that the library's sessions are read committed, whatever the role's default is.
    let options = "options='-c default_transaction_isolation=repeatable\\\\ read'";
    let other = Db::connect(&format!("{url} {options}")).await.expect("connected");
    let theirs = other.queue::<i64>("q").await.expect("opened");
    assert_eq!(theirs.take(1).await.expect("taken").len(), 1);
    let transaction = other.begin().await.expect("begun");
    assert_eq!(theirs.take_in(&transaction, 1).await.expect("taken").len(), 1);
    transaction.rollback().await.expect("undone");
    let plain = connect(&format!("{url} {options}")).await;
    let error = plain.batch_execute("select trunkline.take('q')").await.expect_err("by default");
    let hint = error.as_db_error().and_then(|error| error.hint()).expect("a hint");
    let (_, begin) = hint.split_once("with: ").expect("a statement to type");
    plain.batch_execute(&format!("{begin}; select trunkline.take('q'); commit")).await.expect("taken");
    assert_eq!(queue.stats().await.expect("counted").messages, 1);
    // Checks that other isolation levels are accepted without a limit on leased messages: a rate
    // does not depend on the snapshot.
    db.limit_queue("q", &Limits::none().per_second(1000.0)).await.expect("limited");
    plain.batch_execute("select trunkline.take('q')").await.expect("taken");
}

/// A dequeue that finds nothing writes nothing, so it needs no transaction id.
#[tokio::test(flavor = "multi_thread")]
async fn a_limited_queue_that_is_empty_costs_no_transaction_ids() {
    let Place { db, sql, .. } = place::<i64>(Settings::new("int8")).await;
    db.limit_queue("q", &Limits::none().max_leased(3).per_second(5.0)).await.expect("limited");
    for call in ["take('q')", "lease('q')"] {
        sql.batch_execute(&format!("begin; select * from trunkline.{call}")).await.expect("nothing is there");
        let id = "select pg_current_xact_id_if_assigned()::text";
        assert_eq!(sql.query_one(id, &[]).await.expect("asked").get::<_, Option<String>>(0), None, "{call}");
        sql.batch_execute("rollback").await.expect("ended");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_make_room_by_expiring_and_by_every_end() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8").lease(HOUR)).await;
    db.limit_queue("q", &Limits::none().max_leased(2)).await.expect("limited");
    let queue_again = db.queue::<i64>("q").await.expect("opened");
    enqueued(&queue, 40).await;
    // No call receives more messages than the limit allows, regardless of `n`. At the limit, takes
    // are refused, too.
    let leased = queue.lease(10).await.expect("leased");
    assert_eq!(leased.len(), 2);
    assert!(queue.lease(1).await.expect("leased").is_empty() && queue.take(1).await.expect("taken").is_empty());
    let mut waiting = queue_again.consumer(Wait::Notify);
    let mut next = async |queue: &Queue<i64>, end: &str, held: Vec<trunkline::Message<i64>>| {
        match end {
            "ack" => queue.ack(&held).await.expect("held"),
            "archive" => queue.archive(&held).await.expect("held"),
            "bury" => queue.bury(&held, "no").await.expect("held"),
            "release" => queue.release(&held).await.expect("held"),
            "ack in a transaction" => {
                let transaction = db.begin().await.expect("begun");
                queue.ack_in(&transaction, &held).await.expect("held");
                transaction.commit().await.expect("committed");
            }
            "ack sent in a transaction" => {
                let transaction = db.begin().await.expect("begun");
                let acked = queue.send_ack(&transaction, &held).await.expect("sent");
                acked.await.expect("held");
                transaction.commit().await.expect("committed");
            }
            "cancel" => {
                let ids: Vec<i64> = held.iter().map(|message| message.id).collect();
                assert_eq!(queue.cancel(&ids).await.expect("cancelled"), ids);
            }
            "cancel in a transaction" => {
                let (transaction, ids) =
                    (db.begin().await.expect("begun"), held.iter().map(|message| message.id).collect::<Vec<_>>());
                assert_eq!(queue.cancel_in(&transaction, &ids).await.expect("cancelled"), ids);
                transaction.commit().await.expect("committed");
            }
            _ => queue.retry(&held, HOUR, "later").await.expect("held"),
        }
        let next =
            timeout(SOON, waiting.lease(10)).await.unwrap_or_else(|_| panic!("{end} makes room")).expect("leased");
        assert_eq!(next.len(), 2, "{end}");
        next
    };
    let mut held = leased;
    let in_transactions = ["ack in a transaction", "ack sent in a transaction", "cancel", "cancel in a transaction"];
    for end in ["ack", "archive", "bury", "release", "retry"].into_iter().chain(in_transactions) {
        held = next(&queue_again, end, held).await;
    }
    // An acknowledgement in SQL also frees capacity, and so does the expiry of a lease, without a
    // notification.
    let ids: Vec<i64> = held.iter().map(|message| message.id).collect();
    let ack = "select trunkline.ack_many('q', $1, array(select 1 from unnest($1::int8[])))";
    let attempts = held.iter().all(|message| message.attempt == 1);
    assert!(attempts);
    sql.execute(ack, &[&ids]).await.expect("held");
    let held = timeout(SOON, waiting.lease(10)).await.expect("it makes room").expect("leased");
    assert_eq!(held.len(), 2);
    sql.batch_execute("update trunkline.queue_q set due_at = trunkline.clock() where attempt > 0 and due_at > now()")
        .await
        .expect("moved");
    assert_eq!(queue.lease(10).await.expect("leased").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_holds_over_all_processes_in_every_window() {
    const RATE: f64 = 200.0;
    const BURST: u32 = 20;
    let Place { db, queue, url, sql } = place::<i64>(Settings::new("int8")).await;
    db.limit_queue("q", &Limits::none().per_second(RATE).burst(BURST)).await.expect("limited");
    let limits = db.describe_queue("q").await.expect("described").limits;
    assert_eq!(limits, Limits::none().per_second(RATE).burst(BURST));
    enqueued(&queue, 500).await;
    let mut consumers = JoinSet::new();
    let began = Instant::now();
    for nr in 0..6_usize {
        let db = Db::connect(&url).await.expect("connected");
        consumers.spawn(async move {
            let queue = db.queue::<i64>("q").await.expect("opened");
            let mut consumer = queue.consumer(Wait::default());
            let (mut times, mut asks) = (Vec::new(), [1, 7, 100].into_iter().cycle().skip(nr));
            loop {
                let called = began.elapsed();
                let request = Dequeue::up_to(asks.next().unwrap_or(1)).within(Duration::from_secs(2));
                let Ok(taken) = consumer.take(request).await else { break };
                if taken.is_empty() && queue.stats().await.expect("counted").messages == 0 {
                    break;
                }
                times.extend(vec![(called, began.elapsed()); taken.len()]);
            }
            times
        });
    }
    let times: Vec<(Duration, Duration)> =
        timeout(SOON * 4, consumers.join_all()).await.expect("all are taken").concat();
    assert_eq!(times.len(), 500);
    // Counts only the calls that lie completely within a second, because a message was dequeued at
    // an unknown time during its call. On a busy machine this may be long before the end of the
    // call.
    for (from, _) in &times {
        let until = *from + Duration::from_secs(1);
        let within = times.iter().filter(|(called, received)| called >= from && *received <= until).count();
        assert!(within as f64 <= (RATE + f64::from(BURST)) * 1.25, "{within} in a second from {from:?}");
    }
    let first = times.iter().map(|(called, _)| *called).min().expect("calls");
    let last = times.iter().map(|(_, received)| *received).max().expect("calls");
    assert!(last >= first + Duration::from_millis(2400), "480 at 200/s take 2.4 s: {first:?} to {last:?}");
    let tokens: f64 = sql.query_one("select tokens from trunkline.bucket", &[]).await.expect("read").get(0);
    assert!(tokens >= 0.0, "{tokens}");
}

#[tokio::test(flavor = "multi_thread")]
async fn take_in_a_transaction_obeys_limits_and_rollback_returns_tokens() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    db.limit_queue("q", &Limits::none().per_second(1e-6).burst(3)).await.expect("limited");
    enqueued(&queue, 100).await; // all in one row
    for commits in [false, true, true] {
        let transaction = db.begin().await.expect("begun");
        let taken = timeout(SOON, queue.take_in(&transaction, 50)).await.expect("in time").expect("taken");
        let left: f64 = sql.query_one("select tokens from trunkline.bucket", &[]).await.expect("read").get(0);
        match commits {
            true => transaction.commit().await.expect("committed"),
            false => transaction.rollback().await.expect("rolled back"),
        }
        assert!(taken.len() == 3 || taken.is_empty() && left < 1.0, "{} with {left} left", taken.len());
    }
    assert_eq!(queue.stats().await.expect("counted").messages, 97);
    db.limit_queue("q", &Limits::none()).await.expect("none");
    assert_eq!(queue.take(200).await.expect("taken").len(), 97);
    assert_eq!(db.describe_queue("q").await.expect("described").limits, Limits::none());
}

#[tokio::test(flavor = "multi_thread")]
async fn take_in_a_transaction_is_charged_for_all_rows() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8").max_batch(3)).await;
    db.limit_queue("q", &Limits::none().per_second(1e-6).burst(5)).await.expect("limited");
    enqueued(&queue, 60).await; // rows of three
    let transaction = db.begin().await.expect("begun");
    let taken = timeout(SOON, queue.take_in(&transaction, 50)).await.expect("in time").expect("taken");
    transaction.commit().await.expect("committed");
    assert!((1..=5).contains(&taken.len()), "{}", taken.len());
    let left: f64 = sql.query_one("select tokens from trunkline.bucket", &[]).await.expect("read").get(0);
    assert!(left <= 5.5 - taken.len() as f64, "{left} left after {}", taken.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_out_of_bounds_are_refused_and_change_nothing() {
    let Place { db, queue, sql, .. } = place::<i64>(Settings::new("int8")).await;
    let none = Limits::none();
    for bad in [
        none.max_leased(0),
        none.per_second(0.0),
        none.per_second(-1.0),
        none.per_second(f64::NAN),
        none.per_second(f64::INFINITY),
        none.per_second(1.0).burst(0),
        none.burst(5),
        none.max_leased(u32::MAX),
    ] {
        let error = db.limit_queue("q", &bad).await.expect_err("out of bounds").to_string();
        assert!(error.contains("limit"), "{bad:?}: {error}");
    }
    for (limits, said) in [
        ("per_second => 5, burst => 2147483647", "burst 1 to 1000000000"),
        ("burst => 5", "burst is 5 without per_second"),
    ] {
        let call = format!("select trunkline.limit_queue('q', {limits})");
        let error = sql.batch_execute(&call).await.expect_err(limits);
        let error = error.as_db_error().expect("the server's");
        let shown = format!("{} {}", error.message(), error.hint().unwrap_or_default());
        assert!(shown.contains(said), "{limits}: {shown}");
    }
    assert_eq!(db.describe_queue("q").await.expect("described").limits, none);
    assert!(db.limit_queue("nowhere", &none).await.expect_err("none").is_no_queue());
    queue.enqueue(Draft::new(1)).await.expect("enqueued");
    assert_eq!(queue.take(1).await.expect("taken").len(), 1);
    // The limits are dropped with the queue.
    db.limit_queue("q", &none.max_leased(1)).await.expect("limited");
    sql.batch_execute("select trunkline.drop_queue('q')").await.expect("dropped");
    assert_eq!(sql.query("select * from trunkline.bucket", &[]).await.expect("read").len(), 0);
}

#[tokio::test]
async fn rate_is_exact_although_a_session_shortens_numbers() {
    let Place { sql, .. } = place::<i64>(Settings::new("int8")).await;
    let limit = "set extra_float_digits = -15; select trunkline.limit_queue('q', per_second => 260)";
    sql.batch_execute(limit).await.expect("limited");
    let exact =
        "select prosrc like '% 260,%' and prosrc not like '%3e+02%' from pg_proc where proname = 'do_allowed_q'";
    assert!(sql.query_one(exact, &[]).await.expect("read").get::<_, bool>(0));
}
