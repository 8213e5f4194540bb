//! A server that accepts no more connections stops no program that has one.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Client;
use trunkline::{Db, Queue, Settings};

use crate::fixture::{database, eventually, superuser};

const OURS: &str =
    "select pid from pg_stat_activity where usename = 'few' and query not like 'listen%' order by backend_start";

async fn pids(sql: &Client) -> Vec<i32> {
    sql.query(OURS, &[]).await.expect("read").iter().map(|row| row.get(0)).collect()
}

/// Makes five calls at the same time, so that both connections for dequeues are used.
async fn call(queue: &Queue<i64>) {
    let calls = async { tokio::join!(queue.lease(1), queue.stats(), queue.find(1), queue.peek(1), queue.lease(1)) };
    let (leased, stats, found, peeked, more) =
        timeout(Duration::from_secs(10), calls).await.expect("no caller waits for a connection");
    assert!(leased.expect("leased").is_empty() && more.expect("leased").is_empty());
    assert_eq!(stats.expect("counted").messages, 0);
    assert!(found.expect("looked for").is_none() && peeked.expect("read").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn open_connection_serves_while_the_server_refuses_another() {
    let url = database().await;
    let sql = superuser(&url).await;
    let admin = Db::connect(&url).await.expect("connected");
    admin.create_queue("q", &Settings::new("int8")).await.expect("created");
    let role = "do $$ begin create role few login; exception when duplicate_object then null; end $$;
                alter role few connection limit -1;
                select trunkline.grant_rights('few', 'operator', 'q')";
    sql.batch_execute(role).await.expect("granted");
    let db = Db::connect(&format!("{url} user=few")).await.expect("connected");
    let queue = db.queue::<i64>("q").await.expect("opened");
    assert_eq!(pids(&sql).await.len(), 1);

    sql.batch_execute("alter role few connection limit 1").await.expect("limited");
    call(&queue).await;
    assert_eq!(pids(&sql).await.len(), 1, "the second is refused");

    sql.batch_execute("alter role few connection limit -1").await.expect("unlimited");
    eventually("both are open", async || {
        call(&queue).await;
        pids(&sql).await.len() == 2
    })
    .await;
    let two = pids(&sql).await;
    sql.batch_execute("alter role few connection limit 1").await.expect("limited");
    sql.query("select pg_terminate_backend($1)", &[&two[0]]).await.expect("ended");
    eventually("the first is gone", async || pids(&sql).await == two[1..]).await;
    // The calls that were sent on the broken connection fail.
    eventually("the loss is noticed", async || queue.lease(1).await.is_ok() && queue.lease(1).await.is_ok()).await;
    call(&queue).await;
    assert_eq!(pids(&sql).await, two[1..], "the other serves all callers");
    drop(db);
}
