//! Tests the floor that a plain session uses for its scans.

use std::time::Duration;

use super::{plain, texts};
use crate::fixture::{eventually, within};

/// The floor waits for every transaction of the server, including those of other tests.
const LONG: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn session_floor_rises_and_finally_finds_messages_below_it() {
    let sql = plain().await;
    let reached = async || -> bool {
        sql.query_one("select trunkline.floor('q') > now() - interval '1 minute'", &[]).await.expect("asked").get(0)
    };
    assert!(!reached().await, "at first, everything may be there");
    within(LONG, "the floor rises", reached).await;
    // Repeats the test if it was too slow: a tenth of a second after its last probe, the session
    // probes again and finds the message.
    eventually("it is below", async || {
        assert!(reached().await, "it stays where it is");
        sql.batch_execute(
            "begin;
             insert into trunkline.queue_q (due_at, size, payload) values (now() - interval '1 hour', 1, '{a}')",
        )
        .await
        .expect("a clock stepped back");
        let is_below = texts(&sql, "select payload from trunkline.take('q')").await.is_empty();
        sql.batch_execute(if is_below { "commit" } else { "rollback" }).await.expect("ended");
        is_below
    })
    .await;
    let taken = || async { texts(&sql, "select payload from trunkline.take('q')").await == ["(a)"] };
    within(LONG, "a sweep finds it", taken).await;
}
