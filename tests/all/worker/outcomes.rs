//! Every answer a handler can give, and what becomes of its message.

use std::convert::Infallible;

use trunkline::{Settings, Worker};

use super::{Runs, Seen, drained};
use crate::{
    contract::{Place, place},
    late::enqueued,
};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_handled_is_acknowledged_once() {
    let Place { queue, db: _db, .. } = place(Settings::new("int8")).await;
    enqueued(&queue, 5000).await;
    let seen = Seen::default();
    let noted = seen.clone();
    let runs = Runs::start(Worker::new(queue.clone(), move |message| {
        noted.add(&message);
        async { Ok::<(), Infallible>(()) }
    }));
    drained(&queue).await;
    enqueued(&queue, 3).await; // while it waits
    drained(&queue).await;
    let summary = runs.stop().await;
    assert_eq!((summary.done, summary.retried + summary.dead + summary.lost), (5003, 0), "{summary:?}");
    assert!(seen.all().iter().all(|(payload, times)| *times == if *payload < 3 { 2 } else { 1 }));
}
