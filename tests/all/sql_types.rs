//! Tests payload types in SQL: payloads of any type reach the queue whole or are refused.

use tokio_postgres::Client;

use crate::fixture::{connect, database};

/// Domains and the queues of their type. `code` accepts three characters.
const TYPES: [(&str, &str); 9] = [
    ("code", "public.code"),
    ("note", "public.note"),
    ("required", "public.required"),
    ("caption", "public.caption"),
    ("title", "varchar"),
    ("padded", "bpchar"),
    ("named", "name"),
    ("letter", "\"char\""),
    ("list", "text[]"),
];

async fn queues() -> Client {
    let sql = connect(&database().await).await;
    sql.batch_execute(
        "create domain public.code as varchar(3);
         create domain public.note as text;
         create domain public.required as text not null;
         create domain public.caption as public.code[]",
    )
    .await
    .expect("created");
    for (queue, payload) in TYPES {
        let create = format!("select trunkline.create_queue('{queue}', '{payload}')");
        sql.batch_execute(&create).await.unwrap_or_else(|error| panic!("{queue}: {error:?}"));
    }
    sql
}

async fn payloads(sql: &Client, queue: &str) -> Vec<String> {
    let read = format!("select payload from trunkline.messages('{queue}')");
    sql.query(&read, &[]).await.expect("read").iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_of_every_text_type_tick() {
    let sql = queues().await;
    sql.batch_execute("select trunkline.create_queue('keyed', 'public.note', partitions => 4)").await.expect("created");
    for queue in TYPES.map(|(queue, _)| queue).iter().chain(&["keyed"]) {
        let payload = if matches!(*queue, "list" | "caption") { "{7}" } else { "7" };
        let key = if *queue == "keyed" { ", key => 'k'" } else { "" };
        let set = format!("select trunkline.set_schedule('s', '{queue}', '@daily', '{payload}'{key})");
        sql.batch_execute(&set).await.expect(queue);
        let fire = sql.batch_execute("select trunkline.fire_schedule('s')").await;
        fire.unwrap_or_else(|error| panic!("{queue}: {error:?}"));
        assert_eq!(payloads(&sql, queue).await, [payload], "{queue}");
        sql.batch_execute("select trunkline.drop_schedule('s')").await.expect("dropped");
    }
}
