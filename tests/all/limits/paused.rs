//! Tests what a dequeue of a paused queue costs.

use trunkline::{Draft, Settings};

use crate::fixture::{Place, place, superuser};

/// A dequeue of a paused queue reads no message, although a dequeue of few messages of a queue with
/// priorities searches one lane after the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_queue_with_priorities_is_not_searched() {
    let Place { db, url, queue, .. } = place::<i64>(Settings::new("int8").priorities(2)).await;
    for priority in [0, 1, 0, 1] {
        queue.enqueue(Draft::new(1).priority(priority)).await.expect("enqueued");
    }
    let admin = superuser(&url).await;
    admin
        .batch_execute(
            "update trunkline.queue_q set due_at = due_at - id * interval '1 minute'; set track_functions = 'pl'",
        )
        .await
        .expect("due at different times");
    // Counts since the session's statistics were last sent, which is not at the end of each
    // transaction.
    let searches = "select coalesce(sum(calls), 0)::int8 from pg_stat_xact_user_functions
                    where funcname in ('do_turn_q', 'do_gather_q', 'do_heads_q')";
    let counted = async || -> i64 { admin.query_one(searches, &[]).await.expect("counted").get(0) };
    let calls = async |dequeue: &str| -> (usize, i64) {
        admin.batch_execute("begin").await.expect("begun");
        let before = counted().await;
        let found = admin.query(&format!("select * from trunkline.{dequeue}"), &[]).await.expect(dequeue).len();
        let searches = counted().await - before;
        admin.batch_execute("rollback").await.expect("rolled back");
        (found, searches)
    };
    for dequeue in ["take('q')", "take('q', 9)", "lease('q')", "do_take_q(9, cut => false)"] {
        let (found, searches) = calls(dequeue).await;
        assert!(found > 0 && searches > 0, "{dequeue}: {searches} searches for {found}");
    }
    db.pause_queue("q").await.expect("paused");
    for dequeue in ["take('q')", "take('q', 9)", "lease('q')", "do_take_q(9, cut => false)"] {
        assert_eq!(calls(dequeue).await, (0, 0), "{dequeue}");
    }
}
