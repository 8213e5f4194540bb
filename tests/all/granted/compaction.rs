//! A consumer can compact its queue, although only the owner may truncate. A producer cannot stop a
//! queue by compacting it.

use trunkline::Settings;

use super::{refused, role};
use crate::{
    compaction::waste,
    fixture::{Place, place},
};

#[tokio::test(flavor = "multi_thread")]
async fn consumer_compacts_and_producer_does_not() {
    let Place { queue, url, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue_many(&[1, 2, 3]).await.expect("enqueued");
    waste(&sql).await;
    let (_producing, producer) = role("compact_producer", "producer", &sql, &url).await;
    let (_consuming, consumer) = role("compact_consumer", "consumer", &sql, &url).await;
    refused(
        &producer,
        &[
            "select trunkline.compact('q', 0)",
            "select trunkline.rewrite(null::trunkline.queue_q[], 'trunkline.queue_q', 0, '1 s')",
        ],
    )
    .await;
    refused(
        &consumer,
        &[
            "truncate trunkline.queue_q",
            "alter table trunkline.queue_q disable trigger refuse_row",
            "select trunkline.rewrite(null::trunkline.queue_q[], 'trunkline.queue_q', 0, '1 s')",
        ],
    )
    .await;
    let row = consumer.query_one("select freed, refused from trunkline.compact('q', 0)", &[]).await.expect("called");
    assert!(row.get::<_, i64>(0) > 0, "{row:?}");
    assert_eq!(queue.take(4).await.expect("taken").len(), 3);
}
