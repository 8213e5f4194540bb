//! Calls behind an open copy wait for room, so that their statements do not fill the memory.

use std::pin::pin;

use futures_util::{FutureExt, TryStreamExt};
use tokio::time::timeout;
use trunkline::Bytes;

use super::with_table;
use crate::fixture::SOON;

#[tokio::test]
async fn streams_behind_an_open_copy_wait_for_room() {
    let mut client = with_table().await;
    let transaction = client.transaction().await.expect("begun");
    let statement = transaction.prepare("select length($1::text)").await.expect("prepared");
    let portal = transaction.bind("select 7", &[]).await.expect("bound");
    let mut sink = pin!(transaction.copy_in::<_, Bytes>("copy t from stdin").await.expect("begun"));
    let megabyte = "x".repeat(1 << 20);
    let mut streams = Vec::new();
    for _ in 0..8 {
        let stream = transaction.query_raw(&statement, [&megabyte]);
        streams.push(timeout(SOON, stream).await.expect("there is room").expect("sent"));
    }
    assert!(transaction.query_raw(&statement, [&megabyte]).now_or_never().is_none(), "there is no more room");
    assert!(transaction.query_portal_raw(&portal, 0).now_or_never().is_none(), "there is no more room");
    timeout(SOON, sink.as_mut().finish()).await.expect("the copy ends").expect("copied");
    for stream in streams {
        let rows: Vec<_> = timeout(SOON, stream.try_collect()).await.expect("answered").expect("read");
        assert_eq!(rows[0].get::<_, i32>(0), 1 << 20);
    }
}
