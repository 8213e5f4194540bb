//! Random histories are compared with a simple model in memory, whose order is `(due_at, id)`. The
//! model predicts which due times a step may change, and to what.

mod state;

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tokio_postgres::Client;
use trunkline::{Db, Dequeue, Draft, Lease, Message, Metadata, Queue, Settings};

use self::state::{End, Known, MAX_ATTEMPTS, Model, Step, beside, steps};
use crate::fixture::{Ids, connect, database, drafts};

const HOUR: Duration = Duration::from_secs(3600);

fn check_messages(got: &[Message<i64>], model: &Model, expected: &[i64], more: i32) {
    assert!(got.iter().all(|message| message.metadata == beside(message.payload)), "metadata stays with its message");
    let got: Vec<_> = got.iter().map(|message| (message.id, message.payload, message.attempt)).collect();
    let known = |id: &i64| &model.messages[id];
    let expected: Vec<_> = expected.iter().map(|id| (*id, known(id).payload, known(id).attempt + more)).collect();
    assert_eq!(got, expected, "ids, payloads and attempts, in order");
}

async fn play(step: &Step, model: &mut Model, queue: &Queue<i64>, sql: &mut Client) {
    match *step {
        Step::Enqueue => {
            let payload = model.next_payload + 1;
            let id = queue.enqueue(Draft::new(payload).metadata(beside(payload))).await.expect("enqueued").id();
            model.enqueued(&[id], false);
        }
        Step::EnqueueMany { count, delayed } => {
            let payloads = (1..=count as i64).map(|nr| model.next_payload + nr);
            let messages: Vec<_> = payloads.map(|payload| (payload, beside(payload))).collect();
            let delay = if delayed { HOUR } else { Duration::ZERO };
            let ids = queue
                .enqueue_many(drafts(&messages).into_iter().map(|draft| draft.after(delay)))
                .await
                .expect("enqueued")
                .ids();
            assert!(ids.is_sorted() && ids.len() == count);
            model.enqueued(&ids, delayed);
        }
        Step::Take { n } => {
            let got = queue.take(n).await.expect("taken");
            let expected = model.dequeue(n);
            check_messages(&got, model, &expected, 0);
            model.messages.retain(|id, _| !expected.contains(id));
        }
        Step::ExactlyOnce { n, commit } => {
            let transaction = sql.transaction().await.expect("begun");
            let got = queue.take_in(&transaction, n).await.expect("taken");
            let expected = model.dequeue(n);
            check_messages(&got, model, &expected, 0);
            if commit {
                transaction.commit().await.expect("committed");
                model.messages.retain(|id, _| !expected.contains(id));
            } else {
                transaction.rollback().await.expect("rolled back");
            }
        }
        Step::Lease { n } => {
            let got = queue.lease(Dequeue::up_to(n).lease_for(HOUR)).await.expect("leased");
            let expected = model.lease(n);
            check_messages(&got, model, &expected, 1);
            for id in expected {
                let known = model.messages.get_mut(&id).expect("due");
                known.attempt += 1;
                (known.failed, known.is_due, known.due_at) = (false, false, None);
            }
            model.given.extend(got.iter().map(Message::lease));
        }
        Step::End { how, which, late } => end(how, &model.leases(which, late), model, queue, sql).await,
        Step::Pass { leases_only } => {
            let pass = format!(
                "do $$ declare r bigint; begin
                     for r in select id from trunkline.queue_q where due_at > clock_timestamp() and
                              ({} or attempt > 0 and error is null) order by due_at, id loop
                         update trunkline.queue_q set due_at = trunkline.clock() where id = r;
                     end loop;
                 end $$",
                !leases_only
            );
            sql.batch_execute(&pass).await.expect("passed");
            for known in model.messages.values_mut().filter(|known| !known.is_due) {
                if !leases_only || known.attempt > 0 && !known.failed {
                    (known.is_due, known.due_at) = (true, None);
                }
            }
        }
        Step::Replay { which } => {
            let ids = some(&model.dead, which);
            assert_eq!(queue.replay(&ids).await.expect("replayed"), ids.len());
            for id in ids {
                let (payload, ..) = model.dead.remove(&id).expect("dead");
                let attempt = model.last_attempt[&id]; // a replay resets the counted attempts
                let back = Known { payload, attempt, released: attempt, failed: true, is_due: true, due_at: None };
                model.messages.insert(id, back);
            }
        }
        Step::Discard { which } => {
            let ids = some(&model.dead, which);
            assert_eq!(queue.discard(&ids).await.expect("discarded"), ids.len());
            model.dead.retain(|id, _| !ids.contains(id));
        }
        Step::Cancel { which, commit } => {
            let ids = some(&model.messages, which);
            if commit {
                assert_eq!(queue.cancel(&ids).await.expect("cancelled"), ids);
                model.messages.retain(|id, _| !ids.contains(id));
            } else {
                let transaction = sql.transaction().await.expect("begun");
                assert_eq!(queue.cancel_in(&transaction, &ids).await.expect("cancelled"), ids);
                transaction.rollback().await.expect("rolled back");
            }
        }
        Step::Reschedule { which, delayed } => {
            let ids = some(&model.messages, which);
            let moved = queue.reschedule(&ids, if delayed { HOUR } else { Duration::ZERO }).await.expect("moved");
            assert_eq!(moved, model.reschedule(&ids, delayed));
        }
    }
}

fn some<T>(all: &BTreeMap<i64, T>, which: u16) -> Vec<i64> {
    all.keys().enumerate().filter(|(nr, _)| which >> (nr % 16) & 1 == 1).map(|(_, id)| *id).collect()
}

async fn end(how: End, leases: &[Lease], model: &mut Model, queue: &Queue<i64>, sql: &mut Client) {
    let outcome = match how {
        End::Ack => queue.ack(leases).await,
        End::Archive => queue.archive(leases).await,
        End::Release => queue.release(leases).await,
        End::Retry { delayed } => queue.retry(leases, if delayed { HOUR } else { Duration::ZERO }, "no").await,
        End::Extend => queue.extend(leases, HOUR * 2).await,
        End::AckIn { commit } => {
            let transaction = sql.transaction().await.expect("begun");
            let outcome = queue.ack_in(&transaction, leases).await;
            if commit { transaction.commit().await } else { transaction.rollback().await }.expect("ended");
            outcome
        }
    };
    let (held, lost): (Vec<Lease>, Vec<Lease>) = leases.iter().partition(|lease| model.is_held(lease));
    let lost: Vec<i64> = lost.iter().map(|lease| lease.id).collect();
    match outcome {
        Ok(()) => assert!(lost.is_empty(), "{lost:?}: what is lost is said to be"),
        Err(error) => assert_eq!(error.lost_ids(), lost, "{error}"),
    }
    if !matches!(how, End::AckIn { commit: false }) {
        for lease in held {
            model.end(how, lease);
        }
    }
}

/// Compares the stored messages with the model, and copies the new due times into the model.
async fn compare(model: &mut Model, queue: &Queue<i64>, sql: &Client, max_batch: i32, before: SystemTime) {
    let lines =
        "select m.id, m.due_at, m.attempt, m.error is not null, m.payload, m.due_at <= t, t, q.released, m.metadata
                 from trunkline.queue_q q, (select clock_timestamp() as t) now, trunkline.messages_q m
                 where m.id >= q.id and m.id < q.id + q.size order by m.id";
    let lines = sql.query(lines, &[]).await.expect("read");
    let mut stored = BTreeMap::new();
    for line in &lines {
        let id: i64 = line.get(0);
        let (due_at, is_due): (SystemTime, bool) = (line.get(1), line.get(5));
        let (attempt, released, failed) = (line.get(2), line.get(7), line.get(3));
        let metadata = line.get::<_, Option<Metadata>>(8).unwrap_or_default();
        assert_eq!(metadata, beside(line.get(4)), "metadata stays with its message");
        let known = Known { payload: line.get(4), attempt, released, failed, is_due, due_at: Some(due_at) };
        assert_eq!(stored.insert(id, known), None, "an id is there once");
        if let Some(expected) = model.messages.get_mut(&id)
            && expected.due_at.is_none()
        {
            let earliest = if is_due { before } else { before + HOUR };
            let latest = line.get::<_, SystemTime>(6) + if is_due { Duration::ZERO } else { 2 * HOUR };
            assert!((earliest..=latest).contains(&due_at), "{id} is due at {due_at:?}, not by {latest:?}");
            expected.due_at = Some(due_at);
        }
    }
    assert_eq!(stored, model.messages, "what is stored");

    let dead = queue.dead_letters(0, 1000).await.expect("listed");
    assert!(dead.iter().all(|dead| dead.metadata == beside(dead.payload)));
    let dead: BTreeMap<_, _> =
        dead.into_iter().map(|dead| (dead.id, (dead.payload, dead.attempt, dead.error))).collect();
    assert_eq!(dead, model.dead, "dead letters");
    let archived = queue.archived(0, 1000).await.expect("listed");
    assert!(archived.iter().all(|kept| kept.metadata == beside(kept.payload)));
    let archived: BTreeMap<_, _> = archived.into_iter().map(|kept| (kept.id, (kept.payload, kept.attempt))).collect();
    assert_eq!(archived, model.archived, "archive");

    let count = |which: &dyn Fn(&Known) -> bool| model.messages.values().filter(|known| which(known)).count() as u64;
    let stats = queue.stats().await.expect("counted");
    assert_eq!(stats.due, count(&|known| known.is_due));
    assert_eq!(stats.delayed, count(&|known| !known.is_due && known.attempt == 0));
    assert_eq!(stats.leased, count(&|known| !known.is_due && known.attempt > 0 && !known.failed));
    assert_eq!(stats.to_retry, count(&|known| !known.is_due && known.failed));
    assert_eq!((stats.dead, stats.archived), (model.dead.len() as u64, model.archived.len() as u64));
    assert_eq!(stats.messages, model.messages.len() as u64);
    let sound = "select count(*) filter (where size between 1 and $1 and size = cardinality(payload)), count(*) from trunkline.queue_q";
    let sound = sql.query_one(sound, &[&max_batch]).await.expect("read");
    assert_eq!(sound.get::<_, i64>(0), sound.get::<_, i64>(1), "a row holds as many messages as it says");
    assert_eq!(sound.get::<_, i64>(1).unsigned_abs(), stats.rows);
}

#[test]
fn every_history_goes_as_the_model_says() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let (db, sql) = runtime.block_on(async {
        let url = database().await;
        let sql = connect(&url).await;
        // compiling the many small queries of the comparison would take long
        sql.batch_execute("set jit = off").await.expect("set");
        (Db::connect(&url).await.expect("connected"), tokio::sync::Mutex::new(sql))
    });
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 500, ..Config::default() };
    let strategy = (1..=5_u32, steps());
    let outcome = TestRunner::new(config).run(&strategy, |(max_batch, history)| {
        let case = async {
            let mut sql = sql.try_lock().expect("one case at a time");
            db.create_queue("q", &Settings::new("int8").max_batch(max_batch).max_attempts(MAX_ATTEMPTS.unsigned_abs()))
                .await
                .expect("created");
            let queue = db.queue::<i64>("q").await.expect("opened");
            let mut model = Model::default();
            for step in &history {
                let before = sql.query_one("select clock_timestamp()", &[]).await.expect("told").get(0);
                play(step, &mut model, &queue, &mut sql).await;
                compare(&mut model, &queue, &sql, max_batch.cast_signed(), before).await;
            }
        };
        // Panics are caught, so that a failed assertion counts as a failed case and the queue is
        // always dropped.
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(case)));
        runtime.block_on(db.drop_queue("q")).expect("dropped");
        played.map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            TestCaseError::fail(text.unwrap_or_else(|| "a panic".to_owned()))
        })
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
