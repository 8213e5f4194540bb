//! Tests the cost of keys: it is linear in the number of new and ended messages, and does not
//! depend on dead rows.

use tokio_postgres::Client;
use trunkline::Db;

use super::settings;
use crate::{
    costs::pages,
    fixture::{connect, database},
};

async fn queue() -> Client {
    let url = database().await;
    Db::connect(&url).await.expect("connected").create_queue("q", &settings()).await.expect("created");
    let sql = connect(&url).await;
    // Turns autovacuum off, so that dead rows stay between two measurements.
    let off = "alter table trunkline.queue_q set (autovacuum_enabled = off); alter table trunkline.unique_q set (autovacuum_enabled = off)";
    sql.batch_execute(off).await.expect("altered");
    sql
}

/// Returns a statement that enqueues `count` messages with keys, starting at `from`.
fn brought(from: i64, count: i64, replaces: bool) -> String {
    format!(
        "select count(*) from trunkline.do_unique_q(array_fill(1::bigint, array[{count}]), array_fill(0::float8, array[{count}]), null,
             array_fill(0, array[{count}]), array(select 'key ' || (i * 7919 % {count} + {from}) from generate_series(1, {count}) i),
             array_fill(null::float8, array[{count}]), array_fill({replaces}, array[{count}]))"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn four_times_as_many_keys_cost_four_times_as_much() {
    for (what, replaces) in [("half of them taken", false), ("half of them replaced", true)] {
        let mut costs = Vec::new();
        for n in [500, 2_000] {
            let sql = queue().await;
            sql.batch_execute(&brought(0, n, false)).await.expect("enqueued");
            costs.push(pages(&sql, &brought(n / 2, n, replaces)).await);
        }
        assert!(costs[1] <= costs[0] * 5, "{what}: {costs:?} pages");
    }
    let mut costs = Vec::new();
    for n in [1_000, 4_000] {
        let sql = queue().await;
        sql.batch_execute(&brought(0, n, false)).await.expect("enqueued");
        costs.push(pages(&sql, &format!("select count(*) from trunkline.do_take_q({n}, rows => {n})")).await);
    }
    assert!(costs[1] <= costs[0] * 5, "taken: {costs:?} pages");
}

#[tokio::test(flavor = "multi_thread")]
async fn claiming_and_freeing_keys_costs_the_same_among_dead_rows() {
    let sql = queue().await;
    let call = async |from: i64| {
        // Makes the call once before it is measured, because the first call makes plans and loads
        // the catalog.
        sql.batch_execute(&format!("begin; {}; rollback", brought(from, 10, false))).await.expect("enqueued");
        let claimed = pages(&sql, &brought(from, 10, false)).await;
        sql.batch_execute(&brought(from, 10, false)).await.expect("enqueued");
        let held = pages(&sql, &brought(from, 10, false)).await;
        let freed =
            pages(&sql, "delete from trunkline.queue_q where id = (select max(id) from trunkline.queue_q)").await;
        [claimed, held, freed]
    };
    for from in (0..100_000).step_by(5_000) {
        sql.batch_execute(&brought(from, 5_000, false)).await.expect("enqueued");
    }
    let before = call(1_000_000).await;
    let kill = "delete from trunkline.queue_q where id < (select max(id) from trunkline.queue_q)";
    sql.batch_execute(kill).await.expect("deleted");
    let after = call(2_000_000).await;
    for (before, after) in before.iter().zip(after) {
        assert!(after <= before + 60, "pages: {before} and {after}");
    }
}
