//! A producer sets the columns that it has a right to.

use tokio_postgres::error::SqlState;
use trunkline::{Db, Draft, Settings};

use crate::fixture::{Place, connect, place};

#[tokio::test(flavor = "multi_thread")]
async fn producer_needs_a_right_to_the_column() {
    let Place { url, sql, .. } = place::<i64>(Settings::new("int8")).await;
    let role = "do $$ begin create role a_tenant login; exception when duplicate_object or unique_violation then null; end $$;
                alter table trunkline.queue_q add tenant text; select trunkline.grant_rights('a_tenant', 'producer', 'q')";
    sql.batch_execute(role).await.expect("granted");
    let db = Db::connect(&format!("{url} user=a_tenant")).await.expect("connected");
    let queue = db.queue::<i64>("q").await.expect("opened");
    let draft = || Draft::new(1).column("tenant", "acme");
    let error = queue.enqueue(draft()).await.expect_err("no right");
    assert_eq!(error.sqlstate(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{error}");
    sql.batch_execute("grant insert (tenant) on trunkline.queue_q to a_tenant").await.expect("granted");
    queue.enqueue(draft()).await.expect("enqueued");
    let by_hand = connect(&format!("{url} user=a_tenant")).await;
    let call = "select trunkline.enqueue_with_columns('q', '2', '{\"tenant\": \"acme\"}')";
    by_hand.batch_execute(call).await.expect("enqueued");
}
