//! A key waits for its message that failed, whatever other sessions do to the key or its queue.

use tokio_postgres::Client;
use trunkline::{Queue, State};

use super::{nth, settings};
use crate::fixture::{Ids as _, Place, connect, eventually, one_waits, place};

/// Leases what is due, and returns its payloads.
async fn due(sql: &Client) -> Vec<String> {
    let rows =
        sql.query("select payload from trunkline.lease_partition('q', 100) order by id", &[]).await.expect("leased");
    rows.iter().map(|row| row.get(0)).collect()
}

/// Lets the first messages fail; the rest of the key is given back, and so is its partition.
async fn fail(sql: &Client, n: i32, delay: &str) {
    let text = format!(
        "select trunkline.retry('q', l.id, l.attempt, '{delay}', ''), trunkline.release_partition('q', l.holder)
         from trunkline.lease_partition('q', {n}) l"
    );
    sql.batch_execute(&text).await.expect("failed");
}

async fn three(queue: &Queue<i64>) -> Vec<i64> {
    queue.enqueue_many(&(0..3).map(|at| nth(0, at)).collect::<Vec<_>>()).await.expect("enqueued").ids()
}

#[tokio::test]
async fn cancelling_a_later_message_frees_no_key() {
    let Place { queue, sql, .. } = place::<i64>(settings().partitions(1)).await;
    let ids = three(&queue).await;
    fail(&sql, 1, "1 hour").await;
    assert_eq!(due(&sql).await, [""; 0], "the key waits");
    assert_eq!(queue.cancel(&ids[1..2]).await.expect("cancelled"), ids[1..2]);
    assert_eq!(due(&sql).await, [""; 0], "for the first");
    assert_eq!(queue.cancel(&ids[..1]).await.expect("cancelled"), ids[..1]);
    assert_eq!(due(&sql).await, ["2"]);
}

#[tokio::test]
async fn key_waits_for_the_last_of_its_failed_messages() {
    let Place { queue, sql, .. } = place::<i64>(settings().partitions(1)).await;
    let ids = three(&queue).await;
    fail(&sql, 2, "1 hour").await;
    assert_eq!(queue.cancel(&ids[..1]).await.expect("cancelled"), ids[..1]);
    assert_eq!(due(&sql).await, [""; 0], "the second waits too");
    assert_eq!(queue.cancel(&ids[1..2]).await.expect("cancelled"), ids[1..2]);
    assert_eq!(due(&sql).await, ["2"]);
}

#[tokio::test]
async fn retry_is_not_due_early_because_a_session_committed_meanwhile() {
    let Place { queue, sql, .. } = place::<i64>(settings().partitions(2)).await;
    let ids = three(&queue).await;
    fail(&sql, 1, "1 hour").await;
    // Simulates another session that serves a partition after the lease has read its clock.
    sql.batch_execute("update trunkline.lane_q set served_at = clock_timestamp() + interval '0.9 s' where lane >= 0")
        .await
        .expect("served");
    assert_eq!(due(&sql).await, [""; 0]);
    assert_eq!(queue.find(ids[0]).await.expect("looked for").expect("it is there").state, State::Retrying);
}

#[tokio::test]
async fn retry_that_commits_late_keeps_the_backlog_of_its_key() {
    let Place { queue, sql, url, .. } = place::<i64>(settings().partitions(1)).await;
    let failing = connect(&url).await;
    queue.enqueue_many(&[nth(0, 0)]).await.expect("enqueued");
    let lease = "select holder from trunkline.lease_partition('q')";
    let holder: i64 = sql.query_one(lease, &[]).await.expect("leased").get(0);
    // Lets the key rest for a shorter time than the retry takes.
    sql.batch_execute("select trunkline.do_line_q('{key 0}', '{0.2}')").await.expect("it rests");
    failing
        .batch_execute("begin; select trunkline.retry('q', id, attempt) from trunkline.queue_q")
        .await
        .expect("failed");
    let rests = "select from trunkline.line_q where until > clock_timestamp()";
    eventually("the rest is over", async || sql.query(rests, &[]).await.expect("read").is_empty()).await;
    let reader = connect(&url).await;
    let more = tokio::spawn(async move {
        sql.query("select from trunkline.more('q', $1)", &[&holder]).await.expect("leased");
        sql
    });
    eventually("it waits or is done", async || more.is_finished() || one_waits(&reader).await).await;
    failing.batch_execute("commit").await.expect("committed");
    let sql = more.await.expect("no panic");
    sql.query("select trunkline.release_partition('q', $1)", &[&holder]).await.expect("released");
    assert_eq!(due(&sql).await, ["0"]);
}

#[tokio::test]
async fn long_lease_is_not_taken_for_a_wrong_time() {
    let Place { queue, sql, .. } = place::<i64>(settings().partitions(1)).await;
    let ids = three(&queue).await;
    sql.batch_execute("select trunkline.lease_partition('q', 3, '365 days')").await.expect("leased");
    let until = async || queue.find(ids[0]).await.expect("looked for").expect("it is there").due_at;
    let before = until().await;
    sql.batch_execute("select trunkline.do_right_q(0), trunkline.do_right_q(1)").await.expect("examined");
    assert_eq!(until().await, before);
}

#[tokio::test]
async fn order_that_is_switched_on_holds_for_a_message_that_waits() {
    let Place { db, queue, sql, .. } = place::<i64>(settings().partitions(1).per_key(3)).await;
    three(&queue).await;
    fail(&sql, 1, "1 hour").await;
    db.alter_queue("q", &trunkline::Changes::default().per_key(1)).await.expect("altered");
    assert_eq!(due(&sql).await, [""; 0]);
}

#[tokio::test]
async fn partitions_grow_beside_a_transaction_that_enqueued_before_it_leases() {
    let Place { queue, sql, url, .. } = place::<i64>(settings().partitions(1)).await;
    let (altering, reader) = (connect(&url).await, connect(&url).await);
    queue.enqueue_many(&[nth(0, 0)]).await.expect("enqueued");
    sql.batch_execute("begin; select trunkline.enqueue('q', 1::bigint, key => 'other')").await.expect("enqueued");
    let alter = "select trunkline.alter_queue('q', partitions => 2)";
    let altered = tokio::spawn(async move { altering.batch_execute(alter).await });
    eventually("it waits", async || one_waits(&reader).await).await;
    assert_eq!(due(&sql).await, ["0", "1"], "no deadlock");
    sql.batch_execute("commit").await.expect("committed");
    altered.await.expect("no panic").expect("altered");
}

#[tokio::test]
async fn acknowledging_a_long_backlog_of_a_key_reads_it_once() {
    let Place { queue, sql, .. } = place::<i64>(settings().partitions(1).max_batch(1)).await;
    let n = 2000_i64;
    queue.enqueue_many(&(0..n).map(|at| nth(0, at)).collect::<Vec<_>>()).await.expect("enqueued");
    sql.batch_execute("select trunkline.do_line_q('{key 0}', '{0}')").await.expect("it has its own backlog");
    let leased = "select array_agg(id), array_agg(attempt) from trunkline.lease_partition('q', 2000)";
    let mut acked = 0;
    while acked < n {
        sql.batch_execute("begin").await.expect("begun");
        let row = sql.query_one(leased, &[]).await.expect("leased");
        let (ids, attempts): (Vec<i64>, Vec<i32>) = (row.get(0), row.get(1));
        let read =
            "select coalesce(sum(idx_tup_fetch), 0)::bigint from pg_stat_xact_user_tables where relname = 'queue_q'";
        let before: i64 = sql.query_one(read, &[]).await.expect("read").get(0);
        sql.query("select trunkline.ack_many('q', $1, $2)", &[&ids, &attempts]).await.expect("acknowledged");
        let after: i64 = sql.query_one(read, &[]).await.expect("read").get(0);
        assert!(after - before < 10 * n, "{} rows for {} messages", after - before, ids.len());
        acked += ids.len() as i64;
        sql.batch_execute(
            "commit; select trunkline.release_partition('q', holder) from trunkline.lane_q where holder is not null",
        )
        .await
        .expect("released");
    }
}

#[tokio::test]
async fn order_that_is_switched_on_holds_in_a_backlog_and_for_a_retry_that_waited() {
    let Place { queue, sql, url, .. } = place::<i64>(settings().partitions(1).per_key(3)).await;
    three(&queue).await;
    sql.batch_execute("select trunkline.do_line_q('{key 0}', '{0}')").await.expect("it has its own backlog");
    fail(&sql, 1, "1 hour").await;
    sql.batch_execute("select trunkline.alter_queue('q', per_key => 1)").await.expect("altered");
    assert_eq!(due(&sql).await, [""; 0], "the backlog waits");

    sql.batch_execute("select trunkline.purge('q'); select trunkline.alter_queue('q', per_key => 3)")
        .await
        .expect("empty");
    three(&queue).await;
    let failing = connect(&url).await;
    let row =
        sql.query_one("select holder, id, attempt from trunkline.lease_partition('q', 1)", &[]).await.expect("one");
    let (holder, id, attempt): (i64, i64, i32) = (row.get(0), row.get(1), row.get(2));
    sql.batch_execute("begin; select trunkline.alter_queue('q', per_key => 1)").await.expect("altered");
    let failed = tokio::spawn(async move {
        failing.query("select trunkline.retry('q', $1, $2, '1 hour')", &[&id, &attempt]).await.expect("failed");
    });
    let reader = connect(&url).await;
    eventually("it waits", async || one_waits(&reader).await).await;
    sql.batch_execute("commit").await.expect("committed");
    failed.await.expect("no panic");
    let more = sql.query("select payload from trunkline.more('q', $1)", &[&holder]).await.expect("leased");
    assert!(more.is_empty(), "the retry holds its key");
}

#[tokio::test]
async fn rescheduled_message_holds_up_no_key() {
    let Place { queue, sql, .. } = place::<i64>(settings().partitions(1).per_key(2)).await;
    let ids = three(&queue).await;
    fail(&sql, 1, "1 hour").await;
    let far = "select trunkline.reschedule('q', array[$1::bigint], clock_timestamp() + interval '300 days')";
    sql.query(far, &[&ids[0]]).await.expect("rescheduled");
    sql.batch_execute("select trunkline.alter_queue('q', per_key => 1); select trunkline.rebuild('q')")
        .await
        .expect("altered");
    assert_eq!(due(&sql).await, ["1", "2"]);
}

#[tokio::test]
async fn row_that_a_trigger_refuses_fails_the_whole_call() {
    let Place { queue, sql, .. } = place::<i64>(settings().partitions(4)).await;
    let deny = "create function deny() returns trigger language plpgsql as
                $$ begin if new.keys[1] like 'bad%' then return null; end if; return new; end $$;
                create trigger a_deny before insert on trunkline.queue_q for each row execute function deny()";
    sql.batch_execute(deny).await.expect("created");
    let call =
        "select trunkline.enqueue_many('q', array_fill(1::bigint, array[cardinality($1::text[])]), keys => $1::text[])";
    for keys in [&["bad1"][..], &["bad1", "good1", "good2", "good3"]] {
        let error = sql.query(call, &[&keys]).await.expect_err("a row is missing");
        assert!(error.as_db_error().expect("told").message().contains("stored"), "{error:?}");
    }
    assert_eq!(queue.stats().await.expect("counted").messages, 0);
}
