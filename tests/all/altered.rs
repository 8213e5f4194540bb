//! The settings of an existing queue can be changed from Rust.

use std::time::Duration;

use trunkline::{Changes, Settings};

use crate::fixture::{Place, place};

#[tokio::test(flavor = "multi_thread")]
async fn unnamed_settings_stay_and_a_refused_change_alters_nothing() {
    let Place { db, .. } = place::<i64>(Settings::new("int8").max_attempts(9)).await;
    let minute = Duration::from_secs(60);
    db.alter_queue("q", &Changes::new().lease(minute)).await.expect("altered");
    db.alter_queue("q", &Changes::new().max_batch(7)).await.expect("altered");
    for wrong in [Changes::new().max_attempts(1).max_batch(1025), Changes::new().lease(Duration::MAX).max_attempts(1)] {
        let error = db.alter_queue("q", &wrong).await.expect_err("out of bounds");
        assert!(error.to_string().contains("out of bounds"), "{error}");
    }
    let described = db.describe_queue("q").await.expect("described");
    assert_eq!((described.max_attempts, described.lease, described.max_batch), (9, minute, 7));
    assert!(db.alter_queue("nope", &Changes::new().max_batch(1)).await.expect_err("no queue").is_no_queue());
}
