//! Several queues in one worker share the worker's handlers by weight.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::Semaphore;
use trunkline::{Payload, Queue, Settings, Worker, Workers};

use crate::fixture::{Place, Runs, eventually, place};

/// The running handlers by queue, and the gate at which they wait.
#[derive(Clone)]
struct Gates {
    running: Arc<Mutex<BTreeMap<&'static str, usize>>>,
    gate: Arc<Semaphore>,
}

impl Gates {
    fn worker<T: Payload>(&self, queue: &Queue<T>, name: &'static str) -> Worker<T> {
        let gates = self.clone();
        let add = move |by: isize| {
            let mut running = gates.running.lock().expect("no panic");
            let count = running.entry(name).or_default();
            *count = count.checked_add_signed(by).expect("as many as began");
        };
        let (add, gate) = (Arc::new(add), self.gate.clone());
        Worker::new(queue.clone(), move |_| {
            let (add, gate) = (add.clone(), gate.clone());
            async move {
                add(1);
                let passed = gate.acquire().await.map(tokio::sync::SemaphorePermit::forget);
                add(-1);
                passed
            }
        })
        .shutdown_after(Duration::ZERO)
    }

    fn is(&self, wanted: &[(&'static str, usize)]) -> bool {
        *self.running.lock().expect("no panic") == wanted.iter().copied().collect()
    }

    async fn until(&self, wanted: &[(&'static str, usize)]) {
        eventually(&format!("{wanted:?} run"), || async { self.is(wanted) }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_share_handlers_by_weight_and_lend_unused_ones() {
    let Place { queue: numbers, db, .. } = place::<i64>(Settings::new("int8").max_batch(1)).await;
    db.create_queue("texts", &Settings::new("text").max_batch(1)).await.expect("created");
    let texts = db.queue::<String>("texts").await.expect("opened");
    let gates = Gates { running: Arc::default(), gate: Arc::new(Semaphore::new(0)) };
    let workers = Workers::new(18).add(gates.worker(&numbers, "numbers"), 3).add(gates.worker(&texts, "texts"), 1);
    let runs = Runs::start_all(workers);
    numbers.enqueue_many(&(0..1000).collect::<Vec<_>>()).await.expect("enqueued");
    gates.until(&[("numbers", 17)]).await; // one of the 18 handlers is reserved for the other queue
    texts.enqueue_many(&vec!["x".to_owned(); 1000]).await.expect("enqueued");
    gates.until(&[("numbers", 17), ("texts", 1)]).await;
    // As handlers end, the queues get one handler each, and share the other 16 by their weights: 12
    // and 4.
    eventually("each has its part", || async {
        gates.gate.add_permits(1);
        gates.is(&[("numbers", 13), ("texts", 5)])
    })
    .await;
    runs.stop().await;
    assert_eq!(numbers.stats().await.expect("counted").leased + texts.stats().await.expect("counted").leased, 0);
}
