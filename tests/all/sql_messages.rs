//! Tests the SQL functions that show messages, and how SQL callers get them.

use crate::fixture::{connect, database};

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_shown_within_bounds_of_ids_and_due_times() {
    let sql = connect(&database().await).await;
    sql.batch_execute(
        "select trunkline.create_queue('q', 'text');
         select trunkline.enqueue_many('q', array['a', 'b', 'c', 'd', 'e']);
         select trunkline.enqueue('q', 'later', '1 hour');
         select trunkline.enqueue('q', 'later_still', '3 hours')",
    )
    .await
    .expect("enqueued");
    let cases: [(&str, &[&str]); 9] = [
        ("first_id => 1026, last_id => 1027", &["c", "d"]),
        ("first_id => 1028", &["e", "later", "later_still"]),
        ("last_id => 1024", &["a"]),
        ("first_id => 1029, last_id => 2047", &[]),
        ("first_id => 9223372036854775807", &[]),
        ("due_from => now() + interval '1 minute'", &["later", "later_still"]),
        ("due_from => now() + interval '1 minute', due_before => now() + interval '2 hours'", &["later"]),
        ("last_id => 2048, due_from => now() + interval '1 minute'", &["later"]),
        ("due_before => now() + interval '1 minute'", &["a", "b", "c", "d", "e"]),
    ];
    for (bounds, shown) in cases {
        let lines = format!("select m.payload from trunkline.messages('q', {bounds}) m");
        let rows = sql.query(&lines, &[]).await.expect("read");
        assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<&str>>(), shown, "{bounds}");
    }
}

/// A consumer that crashes on one of ten messages again and again must not use up the attempts of
/// the others.
#[tokio::test(flavor = "multi_thread")]
async fn expired_message_is_leased_alone_in_sql() {
    let sql = connect(&database().await).await;
    let kinds = [("plain", ""), ("laned", ", priorities => 2")];
    for (queue, more) in kinds {
        let filled = format!(
            "select trunkline.create_queue('{queue}', 'text', max_attempts => 3{more});
             select trunkline.enqueue_many('{queue}', array['a', 'b', 'c', 'd'])"
        );
        sql.batch_execute(&filled).await.expect("enqueued");
        let lease = async |n: i32| {
            let leased = format!("select attempt from trunkline.lease('{queue}', {n})");
            let rows = sql.query(&leased, &[]).await.expect("leased");
            rows.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>()
        };
        assert_eq!(lease(10).await, [1, 1, 1, 1], "{queue}");
        sql.batch_execute(&format!("update trunkline.queue_{queue} set due_at = trunkline.clock()"))
            .await
            .expect("expired");
        for _ in 0..4 {
            assert_eq!(lease(10).await, [2], "{queue}");
        }
        assert!(lease(10).await.is_empty(), "{queue}");
    }
}
