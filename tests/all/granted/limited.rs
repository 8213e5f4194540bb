//! Limits apply to a consumer with minimal rights, which cannot change them.

use tokio_postgres::error::SqlState;
use trunkline::{Db, Limits, Settings};

use crate::fixture::{Place, connect, enqueued, place};

#[tokio::test(flavor = "multi_thread")]
async fn consumer_dequeues_within_limits_that_it_cannot_change() {
    let Place { db, queue, sql: admin, url } = place::<i64>(Settings::new("int8")).await;
    db.limit_queue("q", &Limits::none().max_leased(5).per_second(1000.0)).await.expect("limited");
    let role = "do $$ begin create role limited_consumer login; exception when duplicate_object then null; end $$;
                select trunkline.grant_rights('limited_consumer', 'consumer', 'q')";
    admin.batch_execute(role).await.expect("granted");
    enqueued(&queue, 10).await;
    let theirs = Db::connect(&format!("{url} user=limited_consumer")).await.expect("connected");
    assert_eq!(theirs.queue::<i64>("q").await.expect("opened").lease(9).await.expect("leased").len(), 5);
    let sql = connect(&format!("{url} user=limited_consumer")).await;
    for change in ["update trunkline.queue set max_leased = 9", "select trunkline.pause_queue('q')"] {
        let error = sql.batch_execute(change).await.expect_err(change);
        assert_eq!(error.code().map(SqlState::code), Some("42501"), "{change}: {error:?}");
    }
}
