//! Messages are cancelled and rescheduled in the caller's transaction, and block no other call.

use std::time::{Duration, SystemTime};

use tokio::time::timeout;
use trunkline::{Draft, Settings, State, Wait};

use super::{HOUR, NOW, found};
use crate::fixture::{Ids, Place, SOON, enqueued, place, until_asleep};

#[tokio::test(flavor = "multi_thread")]
async fn message_cancelled_in_a_transaction_is_gone_at_its_commit() {
    let Place { queue, db, mut sql, .. } = place(Settings::new("int8")).await;
    for commits in [false, true] {
        let ids = enqueued(&queue, 4).await;
        let transaction = db.begin().await.expect("begun");
        assert_eq!(queue.cancel_in(&transaction, &[ids[2], 7, ids[2]]).await.expect("cancelled"), ids[2..3]);
        assert_eq!(queue.cancel_in(&transaction, &[]).await.expect("none"), [0; 0]);
        // The message's neighbours in the same batch are not hidden.
        let taken = queue.take(9).await.expect("taken");
        assert_eq!(taken.iter().map(|message| message.id).collect::<Vec<_>>(), [ids[0], ids[1], ids[3]]);
        assert_eq!(found(&queue, ids[2]).await.state, State::Due, "for all other sessions");
        if commits {
            transaction.commit().await.expect("committed");
        } else {
            transaction.rollback().await.expect("rolled back");
        }
        let left = queue.take(9).await.expect("taken");
        assert_eq!(left.len(), usize::from(!commits));
    }
    // Cancels in a transaction of `tokio_postgres`, while the row's messages are leased.
    let ids = enqueued(&queue, 3).await;
    let leased = queue.lease(3).await.expect("leased");
    let transaction = sql.transaction().await.expect("begun");
    assert_eq!(queue.cancel_in(&transaction, &ids[..1]).await.expect("cancelled"), ids[..1]);
    queue.ack(&leased[1..]).await.expect("the neighbours are held, and no call waits");
    transaction.commit().await.expect("committed");
    assert!(queue.ack(&leased[..1]).await.expect_err("its lease has ended").is_lease_lost());
}

#[tokio::test(flavor = "multi_thread")]
async fn message_moved_in_a_transaction_wakes_consumers_at_its_commit() {
    let Place { queue, db, sql, .. } = place::<i64>(Settings::new("int8")).await;
    let drafts = (0..3).map(|nr| Draft::new(nr).after(HOUR));
    let ids = queue.enqueue_many(drafts).await.expect("enqueued").ids();
    let mut consumer = queue.consumer(Wait::Notify);
    let waiter = tokio::spawn(async move { consumer.take(9).await });
    until_asleep(&sql).await;
    let transaction = db.begin().await.expect("begun");
    assert_eq!(queue.reschedule_in(&transaction, &ids[1..2], NOW).await.expect("moved"), ids[1..2]);
    assert_eq!(found(&queue, ids[1]).await.state, State::Delayed, "for all other sessions");
    assert_eq!(queue.reschedule(&ids[..1], HOUR * 2).await.expect("moved"), ids[..1], "a neighbour is free");
    transaction.commit().await.expect("committed");
    let taken = timeout(SOON, waiter).await.expect("it is woken").expect("no panic").expect("taken");
    assert_eq!(taken.iter().map(|message| message.id).collect::<Vec<_>>(), ids[1..2]);
    let transaction = db.begin().await.expect("begun");
    let time = SystemTime::now() + HOUR * 5;
    assert_eq!(queue.reschedule_in(&transaction, &ids[2..], time).await.expect("moved"), ids[2..]);
    transaction.commit().await.expect("committed");
    let due = found(&queue, ids[2]).await.due_at.expect("it waits");
    let away = due.duration_since(time).unwrap_or_else(|early| early.duration());
    assert!(away < Duration::from_millis(1), "{away:?} from its time");
    let transaction = db.begin().await.expect("begun");
    let error = queue.reschedule_in(&transaction, &ids, HOUR * 24 * 36_501).await.expect_err("out of bounds");
    assert!(error.to_string().contains("36,500"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn message_in_another_transaction_is_skipped() {
    let Place { queue, db, .. } = place(Settings::new("int8")).await;
    let ids = enqueued(&queue, 2).await;
    let (one, other) = (db.begin().await.expect("begun"), db.begin().await.expect("begun"));
    assert_eq!(queue.cancel_in(&one, &ids[..1]).await.expect("cancelled"), ids[..1]);
    assert_eq!(queue.reschedule_in(&other, &ids, HOUR).await.expect("moved"), ids[1..], "no call waits for the other");
    one.rollback().await.expect("rolled back");
    assert_eq!(queue.cancel_in(&other, &ids).await.expect("cancelled"), ids, "its own are not in its way");
    other.commit().await.expect("committed");
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
}
