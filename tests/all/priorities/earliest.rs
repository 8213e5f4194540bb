//! Tests due times that an enqueue never writes, but a producer's insert can.

use crate::fixture::{connect, database};

/// A producer may write any due time into a row. Ages are compared after a subtraction.
#[tokio::test(flavor = "multi_thread")]
async fn earliest_due_time_stops_no_lane() {
    let sql = connect(&database().await).await;
    sql.batch_execute("select trunkline.create_queue('q', 'text', priorities => 3, aging => '36500 days')")
        .await
        .expect("created");
    let first = "insert into trunkline.queue_q (due_at, size, payload, lane) values ('4714-11-24 00:00:00+00 BC', 2, '{a,b}', 2)";
    sql.batch_execute(first).await.expect("inserted");
    // Stores such a row as it is, as an older version did.
    sql.batch_execute(&format!(
        "alter table trunkline.queue_q disable trigger refuse_row; {}; alter table trunkline.queue_q enable trigger refuse_row;
         select trunkline.enqueue('q', 'e')",
        first.replace("{a,b}", "{c,d}").replace(", 2)", ", 1)")
    ))
    .await
    .expect("inserted");
    let mut payloads = Vec::new();
    for dequeue in ["lease('q')", "take('q')", "lease('q', 3)"] {
        let rows = sql.query(&format!("select payload from trunkline.{dequeue}"), &[]).await.expect(dequeue);
        payloads.extend(rows.iter().map(|row| row.get::<_, String>(0)));
    }
    payloads.sort();
    assert_eq!(payloads, ["a", "b", "c", "d", "e"]);
}
