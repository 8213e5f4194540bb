//! Limits apply to a consumer with minimal rights, which cannot change them.

use tokio_postgres::error::SqlState;
use trunkline::{Db, Limits, Settings, postgres::Statement};

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

/// A query of a table with policies is an error in such a session, unless none of them applies.
#[tokio::test(flavor = "multi_thread")]
async fn role_with_rights_consumes_with_row_security_off() {
    let Place { db, queue, sql: admin, url } = place::<i64>(Settings::new("int8")).await;
    db.limit_queue("q", &Limits::none().max_leased(5).per_second(1000.0)).await.expect("limited");
    db.create_queue("free", &Settings::new("int8")).await.expect("created");
    let role = "do $$ begin create role careful_operator login; exception when duplicate_object then null; end $$;
                select trunkline.grant_rights('careful_operator', 'operator')";
    admin.batch_execute(role).await.expect("granted");
    enqueued(&queue, 10).await;
    let url = format!("{url} user=careful_operator options='-c row_security=off'");
    let sql = connect(&url).await;
    for call in [
        "take('q')",
        "lease('q')",
        "take('q', wait => '1 s')",
        "keep_floor('q', now() - interval '1 minute')",
        "send_direct('free', 1::int8)",
        "repair_times('q')",
        "shift('q', '1 s')",
    ] {
        sql.batch_execute(&format!("select trunkline.{call}")).await.expect(call);
    }
    let kept = "select reached > '-infinity' from trunkline.floor where queue = 'q'";
    assert!(admin.query_one(kept, &[]).await.expect("read").get::<_, bool>(0));

    let theirs = Db::connect(&url).await.expect("connected");
    assert_eq!(theirs.queue::<i64>("q").await.expect("opened").lease(1).await.expect("leased").len(), 1);
    let shown = Statement::<(), (String,)>::new("select current_setting('row_security')");
    assert_eq!(theirs.run(&shown, ()).await.expect("shown"), ("on".to_owned(),));
}
