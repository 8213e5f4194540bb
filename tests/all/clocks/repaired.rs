//! Corrections of a queue's times, which are set here as a clock that is ahead would write them.

use tokio_postgres::Client;

use crate::fixture::{connect, database};

const KINDS: [&str; 3] = ["", ", priorities => 3", ", partitions => 1"];

/// Leases the messages 1, 2 and 3 for two days, as the table `got`.
async fn leased(kind: &str) -> Client {
    let (key, lease) = match kind.contains("partitions") {
        true => (", key => n::text", "lease_partition"),
        false => ("", "lease"),
    };
    let sql = connect(&database().await).await;
    let text = format!(
        "select trunkline.create_queue('q', 'int8'{kind});
         select trunkline.enqueue('q', n{key}) from generate_series(1, 3::int8) n;
         create table got as select id, attempt, payload from trunkline.{lease}('q', 3, '2 days')"
    );
    sql.batch_execute(&text).await.expect("leased");
    sql
}

/// Returns after how many hours each message is due.
async fn hours(sql: &Client) -> Vec<i32> {
    let left =
        "select round(extract(epoch from due_at - now()) / 3600)::int from trunkline.messages('q') order by payload";
    sql.query(left, &[]).await.expect("read").iter().map(|row| row.get(0)).collect()
}

/// A consumer leased for two days and died. The clock was never wrong.
#[tokio::test(flavor = "multi_thread")]
async fn repair_of_a_long_lease_leaves_retries_and_replays_alone() {
    for kind in KINDS {
        let sql = leased(kind).await;
        sql.batch_execute(
            "select trunkline.retry('q', id, attempt, '6 hours') from got where payload = '1';
             select trunkline.bury('q', id, attempt, 'no') from got where payload = '2';
             select trunkline.replay('q', array(select id from got where payload = '2'));
             select trunkline.reschedule('q', array(select id from got where payload = '2'), now() + interval '5 hours')",
        )
        .await
        .expect("failed and replayed");
        let repaired = sql.query_one("select trunkline.repair_times('q')", &[]).await.expect("repaired");
        assert_eq!(hours(&sql).await, [6, 5, 0], "{kind}");
        assert_eq!(repaired.get::<_, i64>(0), 1, "the lease");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_without_a_text_lose_only_the_known_lead_of_a_clock() {
    let floor = "update trunkline.floor set shown = now() + interval '4 hours'; select trunkline.repair_times('q')";
    let message = "update trunkline.queue_q set enqueued_at = now() + interval '4 hours' where payload = '{3}';
                   select trunkline.do_right_q(0)";
    for kind in KINDS {
        for repair in [floor, message] {
            let sql = leased(kind).await;
            sql.batch_execute(
                "select trunkline.retry('q', id, attempt, case payload when '1' then '6 hours' when '2' then '1 hour' else '4 hours' end::interval)
                 from got",
            )
            .await
            .expect("failed");
            sql.batch_execute(repair).await.expect("repaired");
            assert_eq!(hours(&sql).await, [2, 1, 0], "{kind}: {repair}");
        }
    }
}

/// A lease repairs the partitions of a queue, and then a worker stores the floor. Both would find
/// the lead of the clock.
#[tokio::test(flavor = "multi_thread")]
async fn retry_loses_the_lead_of_a_clock_once() {
    let sql = leased(", partitions => 1").await;
    sql.batch_execute(
        "select trunkline.retry('q', id, attempt, '14 hours') from got;
         update trunkline.lane_q set served_at = now() + interval '4 hours' where lane >= 0;
         update trunkline.floor set shown = now() + interval '4 hours';
         select trunkline.do_right_q(1)",
    )
    .await
    .expect("repaired");
    assert_eq!(hours(&sql).await, [10; 3]);
    for again in ["select trunkline.keep_floor('q', now())", "select trunkline.repair_times('q')"] {
        sql.batch_execute(again).await.expect("repaired again");
        assert_eq!(hours(&sql).await, [10; 3], "{again}");
    }
}

#[tokio::test]
async fn archive_is_pruned_whole_although_a_clock_was_ahead() {
    let sql = connect(&database().await).await;
    sql.batch_execute(
        "select trunkline.create_queue('q', 'int8'); select trunkline.enqueue('q', 1::int8);
         select trunkline.archive('q', id, attempt) from trunkline.lease('q');
         update trunkline.archive_q set archived_at = now() + interval '1 hour'",
    )
    .await
    .expect("archived");
    let pruned = sql.query_one("select trunkline.prune('q', '0')", &[]).await.expect("pruned");
    assert_eq!(pruned.get::<_, i64>(0), 1);
}

/// A comparison counts 30 days per month, but most months are longer.
#[tokio::test(flavor = "multi_thread")]
async fn lease_in_months_is_kept_whole_or_refused() {
    for kind in KINDS {
        let sql = leased(kind).await;
        let is_keyed = kind.contains("partitions"); // its leases end with the hold of their partition
        if !is_keyed {
            // A year with a leap day, in which the clock is changed by an hour.
            let year = "update trunkline.queue_q set due_at = now() + interval '8785 hours';
                        select trunkline.do_right_q(0), trunkline.do_right_q(1)";
            sql.batch_execute(year).await.expect("examined");
            assert_eq!(hours(&sql).await, [8785; 3], "{kind}");
        }
        let lease = if is_keyed { "lease_partition" } else { "lease" };
        for long in ["12 months 5 days", "100 years -35700 days"] {
            for call in [
                format!("{lease}('q', 1, '{long}')"),
                format!("extend('q', 1024, 1, '{long}')"),
                format!("retry('q', 1024, 1, '{long}')"),
                format!("alter_queue('q', lease => '{long}')"),
                format!("create_queue('other', 'int8', lease => '{long}')"),
            ] {
                let error = sql.batch_execute(&format!("select trunkline.{call}")).await.expect_err(&call);
                let error = error.as_db_error().expect("the server's");
                assert_eq!(error.code().code(), "22023", "{call}: {error}");
                assert!(error.hint().is_some_and(|hint| hint.contains("365 days")), "{call}: {error}");
            }
        }
        sql.batch_execute(
            "select trunkline.extend('q', id, attempt, '1 year') from got;
             select trunkline.alter_queue('q', lease => '1 year')",
        )
        .await
        .expect("a year is accepted");
    }
}
