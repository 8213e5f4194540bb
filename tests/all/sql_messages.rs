//! Tests the SQL functions that show messages.

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
