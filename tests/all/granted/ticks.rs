//! Tests the roles that may make the ticks of schedules.

use std::convert::Infallible;

use tokio_postgres::error::SqlState;
use trunkline::{Db, Schedule, Settings, Worker};

use crate::{
    fixture::{Place, Runs, connect, eventually, place},
    schedules::{Ticks, YEARLY, not_since},
};

#[tokio::test(flavor = "multi_thread")]
async fn operator_of_all_queues_makes_ticks_and_a_consumer_cannot() {
    let Place { queue, sql: admin, url, .. } = place::<i64>(Settings::new("int8")).await;
    let roles = "do $$ begin create role ticks_operator login; create role ticks_consumer login;
                 exception when duplicate_object then null; end $$;
                 select trunkline.grant_rights('ticks_operator', 'operator');
                 select trunkline.grant_rights('ticks_consumer', 'consumer', 'q')";
    admin.batch_execute(roles).await.expect("granted");
    queue.schedule(&Schedule::new("yearly", YEARLY), &1).await.expect("set");
    not_since(&admin, "yearly", "now()").await;

    let consumer = Db::connect(&format!("{url} user=ticks_consumer")).await.expect("connected");
    let refused = consumer.run_schedules(std::future::pending()).await.expect_err("it may not");
    assert_eq!(refused.sqlstate().map(SqlState::code), Some("42501"), "{refused}");
    let theirs = consumer.queue::<i64>("q").await.expect("opened");
    let worker = Runs::start(Worker::new(theirs, |_| async { Ok::<(), Infallible>(()) }));
    queue.enqueue(9).await.expect("enqueued");
    eventually("the worker works", async || queue.stats().await.expect("counted").messages == 0).await;
    assert_eq!(worker.stop().await.done, 1);

    let operator = Db::connect(&format!("{url} user=ticks_operator")).await.expect("connected");
    let runs = Ticks::start(&operator);
    eventually("it ticks", async || queue.stats().await.expect("counted").messages == 1).await;
    runs.stop().await;
    let sql = connect(&format!("{url} user=ticks_operator")).await;
    sql.batch_execute("select trunkline.set_schedule('mine', 'q', '@daily', '2')").await.expect("set");
    admin.batch_execute("select trunkline.revoke_rights('ticks_operator')").await.expect("revoked");
    sql.batch_execute("select * from trunkline.schedule").await.expect_err("revoked");
}
