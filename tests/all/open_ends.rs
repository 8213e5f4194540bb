//! A transaction ends a message and stays open, while other calls end messages in the same row.

use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use trunkline::Settings;

use crate::fixture::{Place, SOON, connect, enqueued, eventually, place};

/// A call that ends a neighbour waits until the row is split. It does not wait for later changes of
/// the first piece.
#[tokio::test(flavor = "multi_thread")]
async fn open_end_of_a_message_holds_up_no_neighbour() {
    let Place { queue, sql, url, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let ids = enqueued(&queue, 2).await;
    let messages = queue.lease(2).await.expect("leased");
    assert_eq!(messages.len(), 2, "{messages:?}");
    let (mut splits, mut ends) = (connect(&url).await, connect(&url).await);
    // The first session splits the row, and does not commit yet.
    let split = splits.transaction().await.expect("begun");
    let id = &ids[..1];
    split.execute("select trunkline.do_carve_q($1, '{1}', '{1}', true)", &[&id]).await.expect("split");
    // Two more sessions end messages of the row, one each. The first of them keeps its transaction
    // open.
    let first = ends.transaction().await.expect("begun");
    let waits = "select count(*) = $1 from pg_stat_activity where state = 'active' and wait_event_type in ('Lock', 'Timeout')
                                 and query like '%do_ack_q%' and datname = current_database() and pid <> pg_backend_pid()";
    let all_wait = async |number: i64| {
        eventually("they wait", || async { sql.query_one(waits, &[&number]).await.expect("visible").get(0) }).await;
    };
    let params: [&(dyn ToSql + Sync); 1] = [&id];
    let ended = first.query("select * from trunkline.do_ack_q($1, '{1}', '{1}')", &params);
    let lease = [messages[1].lease()];
    let second = async {
        all_wait(1).await;
        let split_then = async {
            all_wait(2).await;
            split.commit().await.expect("committed");
        };
        let (outcome, ()) = tokio::join!(timeout(SOON, queue.ack(lease)), split_then);
        outcome.expect("in time").expect("held");
    };
    let (ended, ()) = tokio::join!(ended, second);
    assert_eq!(ended.expect("held").len(), 1);
    first.commit().await.expect("committed");
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
}
