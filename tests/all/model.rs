//! Random histories against a simple model in memory. The order is what `(due_at, id)` says; the model knows which of
//! the due times a step may change, and to what.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use proptest::{
    prelude::{Just, Strategy, any, prop_oneof},
    test_runner::{Config, TestCaseError, TestRunner},
};
use tokio_postgres::Client;
use trunkline::{Db, Lease, Message, Queue, Settings};

use crate::fixture::{connect, database};

const MAX_ATTEMPTS: i32 = 3;
const HOUR: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone)]
enum Step {
    Enqueue,
    EnqueueMany {
        count: usize,
        delayed: bool,
    },
    Take {
        n: usize,
    },
    ExactlyOnce {
        n: usize,
        commit: bool,
    },
    Lease {
        n: usize,
    },
    /// Ends some of the leases that are held, or of all that were ever given.
    End {
        how: End,
        which: u16,
        late: bool,
    },
    /// An hour or so passes: leases run out, or everything becomes due.
    Pass {
        leases_only: bool,
    },
    Replay {
        which: u16,
    },
    Discard {
        which: u16,
    },
}

#[derive(Debug, Clone, Copy)]
enum End {
    Ack,
    AckIn { commit: bool },
    Archive,
    Release,
    Retry { delayed: bool },
    Extend,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let n = 1..8_usize;
    let end = prop_oneof![
        4 => Just(End::Ack),
        2 => any::<bool>().prop_map(|commit| End::AckIn { commit }),
        1 => Just(End::Archive),
        1 => Just(End::Release),
        3 => any::<bool>().prop_map(|delayed| End::Retry { delayed }),
        1 => Just(End::Extend),
    ];
    let step = prop_oneof![
        1 => Just(Step::Enqueue),
        4 => (0..12_usize, proptest::bool::weighted(0.2)).prop_map(|(count, delayed)| Step::EnqueueMany { count, delayed }),
        2 => n.clone().prop_map(|n| Step::Take { n }),
        2 => (n.clone(), any::<bool>()).prop_map(|(n, commit)| Step::ExactlyOnce { n, commit }),
        5 => n.prop_map(|n| Step::Lease { n }),
        7 => (end, any::<u16>(), proptest::bool::weighted(0.3)).prop_map(|(how, which, late)| Step::End { how, which, late }),
        3 => any::<bool>().prop_map(|leases_only| Step::Pass { leases_only }),
        1 => any::<u16>().prop_map(|which| Step::Replay { which }),
        1 => any::<u16>().prop_map(|which| Step::Discard { which }),
    ];
    proptest::collection::vec(step, 1..30)
}

/// A message as the model has it.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    payload: i64,
    attempt: i32,
    /// Attempts that were given back.
    released: i32,
    failed: bool,
    /// Due now, or in an hour or so.
    is_due: bool,
    /// As read back after the step that set it; `None` while that step runs.
    due_at: Option<SystemTime>,
}

impl Known {
    fn charged(&self) -> i32 {
        self.attempt - self.released
    }
}

#[derive(Debug, Default)]
struct Model {
    messages: BTreeMap<i64, Known>,
    dead: BTreeMap<i64, (i64, i32, String)>,
    archived: BTreeMap<i64, (i64, i32)>,
    given: BTreeSet<Lease>,
    next_payload: i64,
}

impl Model {
    fn enqueued(&mut self, ids: &[i64], delayed: bool) {
        for id in ids {
            self.next_payload += 1;
            let known = Known {
                payload: self.next_payload,
                attempt: 0,
                released: 0,
                failed: false,
                is_due: !delayed,
                due_at: None,
            };
            assert_eq!(self.messages.insert(*id, known), None, "ids are unique");
        }
    }

    /// The next `n` due messages in order. What used up its attempts and stands before or between them is dead.
    fn dequeue(&mut self, n: usize) -> Vec<i64> {
        let mut due: Vec<_> = self.messages.iter().filter(|(_, known)| known.is_due).collect();
        due.sort_by_key(|(id, known)| (known.due_at, **id));
        let mut ids = Vec::new();
        let mut spent = Vec::new();
        for (id, known) in due {
            if ids.len() == n {
                break;
            }
            if known.charged() >= MAX_ATTEMPTS { spent.push(*id) } else { ids.push(*id) }
        }
        for id in spent {
            self.bury(id, "the lease of the last attempt ran out");
        }
        ids
    }

    fn bury(&mut self, id: i64, reason: &str) {
        let known = self.messages.remove(&id).expect("known");
        self.dead.insert(id, (known.payload, known.charged(), reason.to_owned()));
    }

    fn is_held(&self, lease: &Lease) -> bool {
        let held =
            |known: &Known| known.attempt == lease.attempt && lease.attempt > 0 && !known.failed && !known.is_due;
        self.messages.get(&lease.id).is_some_and(held)
    }

    fn leases(&self, which: u16, late: bool) -> Vec<Lease> {
        let some = self.given.iter().filter(|lease| late || self.is_held(lease)).enumerate();
        some.filter(|(nr, _)| which >> (nr % 16) & 1 == 1).map(|(_, lease)| *lease).collect()
    }

    fn end(&mut self, how: End, lease: Lease) {
        let known = self.messages.get_mut(&lease.id).expect("held");
        known.due_at = None;
        match how {
            End::Ack | End::AckIn { commit: true } => drop(self.messages.remove(&lease.id)),
            End::AckIn { commit: false } => unreachable!("nothing ends"),
            End::Archive => {
                let known = self.messages.remove(&lease.id).expect("held");
                self.archived.insert(lease.id, (known.payload, known.charged()));
            }
            End::Release => {
                known.released += 1;
                (known.failed, known.is_due) = (true, true);
            }
            End::Retry { .. } if known.charged() >= MAX_ATTEMPTS => self.bury(lease.id, "no"),
            End::Retry { delayed } => (known.failed, known.is_due) = (true, !delayed),
            End::Extend => {}
        }
    }
}

fn check_messages(got: &[Message<i64>], model: &Model, expected: &[i64], more: i32) {
    let got: Vec<_> = got.iter().map(|message| (message.id, message.payload, message.attempt)).collect();
    let known = |id: &i64| &model.messages[id];
    let expected: Vec<_> = expected.iter().map(|id| (*id, known(id).payload, known(id).attempt + more)).collect();
    assert_eq!(got, expected, "ids, payloads and attempts, in order");
}

async fn play(step: &Step, model: &mut Model, queue: &Queue<i64>, sql: &mut Client) {
    match *step {
        Step::Enqueue => {
            let id = queue.enqueue(model.next_payload + 1).await.expect("enqueued");
            model.enqueued(&[id], false);
        }
        Step::EnqueueMany { count, delayed } => {
            let payloads: Vec<i64> = (1..=count as i64).map(|nr| model.next_payload + nr).collect();
            let delay = if delayed { HOUR } else { Duration::ZERO };
            let ids = queue.enqueue_many_after(&payloads, delay).await.expect("enqueued");
            assert!(ids.is_sorted() && ids.len() == count);
            model.enqueued(&ids, delayed);
        }
        Step::Take { n } => {
            let got = queue.at_most_once(n).await.expect("taken");
            let expected = model.dequeue(n);
            check_messages(&got, model, &expected, 0);
            model.messages.retain(|id, _| !expected.contains(id));
        }
        Step::ExactlyOnce { n, commit } => {
            let transaction = sql.transaction().await.expect("begun");
            let got = queue.exactly_once(&transaction, n).await.expect("taken");
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
            let got = queue.at_least_once_for(n, HOUR).await.expect("leased");
            let expected = model.dequeue(n);
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
                model
                    .messages
                    .insert(id, Known { payload, attempt: 0, released: 0, failed: false, is_due: true, due_at: None });
            }
        }
        Step::Discard { which } => {
            let ids = some(&model.dead, which);
            assert_eq!(queue.discard(&ids).await.expect("discarded"), ids.len());
            model.dead.retain(|id, _| !ids.contains(id));
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
        held.into_iter().for_each(|lease| model.end(how, lease));
    }
}

/// Compares all that is stored with the model, and learns the new due times.
async fn compare(model: &mut Model, queue: &Queue<i64>, sql: &Client, max_batch: i32, before: SystemTime) {
    let lines = "select m.id, m.due_at, m.attempt, m.error is not null, m.payload, m.due_at <= t, t, q.released
                 from trunkline.queue_q q, (select clock_timestamp() as t) now, trunkline.messages_q m
                 where m.id >= q.id and m.id < q.id + q.size order by m.id";
    let lines = sql.query(lines, &[]).await.expect("read");
    let mut stored = BTreeMap::new();
    for line in &lines {
        let id: i64 = line.get(0);
        let (due_at, is_due): (SystemTime, bool) = (line.get(1), line.get(5));
        let (attempt, released, failed) = (line.get(2), line.get(7), line.get(3));
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
    let dead: BTreeMap<_, _> =
        dead.into_iter().map(|dead| (dead.id, (dead.payload, dead.attempt, dead.error))).collect();
    assert_eq!(dead, model.dead, "dead letters");
    let archived = queue.archived(0, 1000).await.expect("listed");
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
        sql.batch_execute("set jit = off").await.expect("set"); // for what compares, many small queries
        (Db::connect(&url).await.expect("connected"), tokio::sync::Mutex::new(sql))
    });
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 500, ..Config::default() };
    let strategy = (1..=5_u32, steps());
    let outcome = TestRunner::new(config).run(&strategy, |(max_batch, history)| {
        let case = async {
            let mut sql = sql.try_lock().expect("one case at a time");
            db.create_queue("q", &Settings::new("int8").max_batch(max_batch).max_attempts(3)).await.expect("created");
            let queue = db.queue::<i64>("q").await.expect("opened");
            let mut model = Model::default();
            for step in &history {
                let before = sql.query_one("select clock_timestamp()", &[]).await.expect("told").get(0);
                play(step, &mut model, &queue, &mut sql).await;
                compare(&mut model, &queue, &sql, max_batch.cast_signed(), before).await;
            }
        };
        // A failed assertion is a failed case, and the queue goes in any case.
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
