//! Random calls of all verbs are compared with a model of the messages and of the owners of keys.

use std::{collections::BTreeMap, time::Duration};

use proptest::{prelude::*, test_runner::TestRunner};
use trunkline::{Dequeue, Draft, Enqueued, Message, Queue, Unique};

use super::{HOUR, held, older, settings};
use crate::fixture::{Place, place};

/// A new message: its key, if any; whether the key is kept for a time; and whether the message
/// replaces another.
type Brought = (Option<u8>, bool, bool);

#[derive(Debug, Clone)]
enum Op {
    Enqueue(Vec<Brought>),
    Take(usize),
    Lease(usize),
    /// Ends some of the leased messages.
    Ack(usize),
    Bury(usize),
    Retry(usize),
    Release(usize),
    Cancel(usize),
    /// Lets timed keys expire.
    Pass,
    Purge,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let brought = (proptest::option::weighted(0.8, 0..12_u8), any::<bool>(), any::<bool>());
    let op = prop_oneof![
        6 => proptest::collection::vec(brought, 1..12).prop_map(Op::Enqueue),
        2 => (1..6_usize).prop_map(Op::Take),
        3 => (1..6_usize).prop_map(Op::Lease),
        2 => (0..4_usize).prop_map(Op::Ack),
        1 => (0..4_usize).prop_map(Op::Bury),
        2 => (0..4_usize).prop_map(Op::Retry),
        1 => (0..4_usize).prop_map(Op::Release),
        1 => (0..40_usize).prop_map(Op::Cancel),
        1 => Just(Op::Pass),
        1 => Just(Op::Purge),
    ];
    proptest::collection::vec(op, 1..30)
}

#[derive(Debug, Default)]
struct Model {
    /// The payloads of the existing messages, by id.
    there: BTreeMap<i64, i64>,
    leased: Vec<Message<i64>>,
    /// The owner of each key, and whether the key is kept for a time.
    keys: BTreeMap<u8, (i64, bool)>,
    next: i64,
}

impl Model {
    fn ended(&mut self, id: i64) {
        self.there.remove(&id).expect("it was there");
        self.leased.retain(|message| message.id != id);
        self.keys.retain(|_, (holder, timed)| *timed || *holder != id);
    }

    fn is_leased(&self, id: i64) -> bool {
        self.leased.iter().any(|message| message.id == id)
    }

    async fn enqueue(&mut self, queue: &Queue<i64>, brought: &[Brought]) {
        let first = self.next;
        self.next += brought.len() as i64;
        let drafts: Vec<Draft<i64>> = (first..)
            .zip(brought)
            .map(|(payload, (key, timed, replaces))| {
                let Some(key) = key else { return Draft::new(payload) };
                let unique = Unique::key(format!("{key:02}"));
                let unique = if *timed { unique.within(HOUR) } else { unique };
                Draft::new(payload).unique(if *replaces { unique.replacing() } else { unique })
            })
            .collect();
        let told = match &drafts[..] {
            [one] => vec![queue.enqueue(one).await.expect("enqueued")],
            many => queue.enqueue_many(many).await.expect("enqueued"),
        };
        for ((payload, (key, timed, replaces)), one) in (first..).zip(brought).zip(told) {
            let holder = key.and_then(|key| self.keys.get(&key)).map(|(holder, _)| *holder);
            match holder {
                None => {
                    assert!(one.is_new(), "{one:?} of a key that is free");
                    self.there.insert(one.id(), payload);
                    key.map(|key| self.keys.insert(key, (one.id(), *timed)));
                }
                Some(holder) if *replaces && self.there.contains_key(&holder) && !self.is_leased(holder) => {
                    assert_eq!(one, Enqueued::Replaced(holder));
                    self.there.insert(holder, payload);
                }
                Some(holder) => assert_eq!(one, Enqueued::Duplicate(holder)),
            }
        }
    }

    async fn step(&mut self, queue: &Queue<i64>, op: &Op) {
        let some = |from: &[Message<i64>], n: usize| {
            from.iter().step_by(2).take(n).map(trunkline::Lease::from).collect::<Vec<_>>()
        };
        match op {
            Op::Enqueue(brought) => self.enqueue(queue, brought).await,
            Op::Take(n) => {
                for message in queue.take(*n).await.expect("taken") {
                    assert_eq!(self.there.get(&message.id), Some(&message.payload));
                    self.ended(message.id);
                }
            }
            Op::Lease(n) => {
                for message in queue.lease(Dequeue::up_to(*n).lease_for(HOUR)).await.expect("leased") {
                    assert_eq!(self.there.get(&message.id), Some(&message.payload));
                    self.leased.push(message);
                }
            }
            Op::Ack(n) | Op::Bury(n) => {
                let leases = some(&self.leased, *n);
                let ids: Vec<i64> = leases.iter().map(|lease| lease.id).collect();
                match op {
                    Op::Ack(_) => queue.ack(leases).await.expect("held"),
                    _ => queue.bury(leases, "no").await.expect("held"),
                }
                for id in ids {
                    self.ended(id);
                }
            }
            Op::Retry(n) | Op::Release(n) => {
                let leases = some(&self.leased, *n);
                let ids: Vec<i64> = leases.iter().map(|lease| lease.id).collect();
                match op {
                    Op::Retry(_) => queue.retry(leases, Duration::ZERO, "no").await.expect("held"),
                    _ => queue.release(leases).await.expect("held"),
                }
                self.leased.retain(|message| !ids.contains(&message.id));
            }
            Op::Cancel(at) => {
                let Some(id) = self.there.keys().nth(*at).copied() else { return };
                assert_eq!(queue.cancel(&[id]).await.expect("cancelled"), [id]);
                self.ended(id);
            }
            Op::Pass => self.keys.retain(|_, (_, timed)| !*timed),
            Op::Purge => {
                assert_eq!(queue.purge().await.expect("purged"), self.there.len() as u64);
                let ids: Vec<i64> = self.there.keys().copied().collect();
                for id in ids {
                    self.ended(id);
                }
            }
        }
    }
}

#[test]
fn key_has_one_message_after_any_calls() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let Place { queue, sql, db: _db, .. } = runtime.block_on(place::<i64>(settings().max_attempts(1000).max_batch(5)));
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() });
    let outcome = runner.run(&ops(), |ops| {
        runtime.block_on(async {
            sql.batch_execute("truncate trunkline.queue_q; delete from trunkline.unique_q").await.expect("emptied");
            let mut model = Model::default();
            for op in &ops {
                model.step(&queue, op).await;
                if matches!(op, Op::Pass) {
                    older(&sql, 3601.0).await;
                }
                let live = "delete from trunkline.unique_q where until <= clock_timestamp()";
                if ops.len() % 2 == 0 {
                    sql.batch_execute(live).await.expect("cleared away");
                    let keys: Vec<String> = model.keys.keys().map(|key| format!("{key:02}")).collect();
                    assert_eq!(held(&sql).await, keys, "after {op:?}");
                }
            }
            assert_eq!(queue.stats().await.expect("counted").messages, model.there.len() as u64);
        });
        Ok(())
    });
    outcome.expect("the model holds");
}
