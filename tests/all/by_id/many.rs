//! Changes of very many messages cost what they are given.

use tokio_postgres::Client;

use crate::fixture::{connect, database};

const COUNT: i64 = 150_000;

/// Calls a function for all messages. Returns how many it changed. The server ends a call that
/// copies its lists for each row: that took minutes.
async fn changed(sql: &Client, call: &str, done: bool) -> i64 {
    let text = format!("select count(*) from trunkline.do_{call} c where c.done = {done}");
    sql.batch_execute("set statement_timeout = '20 s'").await.expect("set");
    sql.query_one(&text, &[]).await.expect(call).get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn many_rows_of_one_message_are_changed_in_linear_time() {
    let url = database().await;
    let (sql, other) = (connect(&url).await, connect(&url).await);
    let fill = format!(
        "select trunkline.create_queue('q', 'int8');
         insert into trunkline.queue_q (id, size, payload) select i * 1024, 1, array[i] from generate_series(1, {COUNT}) i"
    );
    sql.batch_execute(&fill).await.expect("filled");
    let ids = format!("array(select i * 1024 from generate_series(1, {COUNT}::bigint) i)");
    sql.batch_execute("begin").await.expect("begun");
    let later = format!("reschedule_q({ids}, now() + interval '1 hour')");
    assert_eq!(changed(&sql, &later, true).await, COUNT);
    assert_eq!(changed(&other, &later, false).await, COUNT, "all are locked");
    assert_eq!(changed(&sql, &format!("cancel_q({ids})"), true).await, COUNT);
}
