//! Tests rows that a producer inserts manually into a queue with keys.

use tokio_postgres::error::SqlState;
use trunkline::{Settings, Worker};

use crate::fixture::{Place, connect, place};

#[tokio::test(flavor = "multi_thread")]
async fn row_with_a_bad_key_or_partition_is_refused() {
    let Place { queue, sql: admin, url, db: _db } = place::<String>(Settings::new("text").partitions(4)).await;
    let role =
        "do $$ begin create role by_hand login; exception when duplicate_object or unique_violation then null; end $$;
                select trunkline.grant_rights('by_hand', 'producer', 'q')";
    admin.batch_execute(role).await.expect("granted");
    let sql = connect(&format!("{url} user=by_hand")).await;
    let insert = async |lane: &str, keys: &str| {
        let text =
            format!("insert into trunkline.queue_q (size, payload, lane, keys) values (1, array['x'], {lane}, {keys})");
        sql.batch_execute(&text).await
    };
    for keys in [
        "array[null]::text[]",
        "array['']",
        "array[repeat('k', 1025)]",
        "array['a', 'b']",
        "null",
        "array[['a']]",
        "'[0:0]={a}'",
    ] {
        for lane in ["-1", "0", "1", "2", "3"] {
            let error = insert(lane, keys).await.expect_err(keys);
            let code = error.code().expect("the server's").clone();
            assert!([SqlState::CHECK_VIOLATION, SqlState::NOT_NULL_VIOLATION].contains(&code), "{keys}: {error:?}");
        }
    }
    // Tries each key in each partition. Only one partition is right for a key.
    let mut taken = 0;
    for nr in 0..40 {
        for lane in 0..4 {
            taken += i32::from(insert(&lane.to_string(), &format!("array['key {nr}']")).await.is_ok());
        }
        insert("-1", &format!("array['key {nr}']")).await.expect("it gets the partition of its key");
    }
    assert_eq!(taken, 40, "each key has one partition");
    let summary = Worker::new(queue, async |_| Ok::<_, std::convert::Infallible>(())).drain().await.expect("drained");
    assert_eq!(summary.done, 80, "nothing stopped the queue");
}
