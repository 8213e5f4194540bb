//! A worker keeps the order of a key around messages that it cannot read.

use tokio::{sync::mpsc, time::timeout};
use trunkline::{Failure, Json, Message, Settings, Worker};

use crate::fixture::{Place, Runs, SOON, place};

/// Enqueues numbers and a text, in one row or in a row for each.
const ENQUEUES: [&[&str]; 2] = [
    &["enqueue_many('q', array['0', '\"x\"', '1', '2']::jsonb[], keys => array['a', 'a', 'a', 'b'])"],
    &[
        "enqueue('q', '0'::jsonb, key => 'a')",
        "enqueue('q', '\"x\"'::jsonb, key => 'a')",
        "enqueue('q', '1'::jsonb, key => 'a')",
        "enqueue('q', '2'::jsonb, key => 'b')",
    ],
];

#[tokio::test(flavor = "multi_thread")]
async fn messages_behind_an_unreadable_one_wait_until_it_is_dead() {
    for calls in ENQUEUES {
        let settings = Settings::new("jsonb").partitions(1).max_attempts(2);
        let Place { queue, sql, db: _db, .. } = place::<Json<u64>>(settings).await;
        for call in calls {
            sql.batch_execute(&format!("select trunkline.{call}")).await.expect(call);
        }
        let (tells, mut told) = mpsc::unbounded_channel();
        let letters = queue.clone();
        let worker = Worker::new(queue, move |message: Message<Json<u64>>| {
            let (letters, tells) = (letters.clone(), tells.clone());
            async move {
                let dead = letters.stats().await?.dead;
                tells.send((message.payload.0, dead)).expect("the test listens");
                Ok::<(), Failure>(())
            }
        });
        let runs = Runs::start(worker);
        let mut handled = Vec::new();
        while handled.len() < 3 {
            handled.push(timeout(SOON, told.recv()).await.expect("it is handled").expect("it runs"));
        }
        handled.sort_unstable();
        assert!(matches!(&handled[..], [(0, _), (1, 1), (2, _)]), "the text is dead before 1 begins: {handled:?}");
        let summary = runs.stop().await;
        assert_eq!((summary.done, summary.retried, summary.dead), (3, 1, 1), "{summary:?}");
    }
}
