//! Concurrent callers share rows and commits automatically. Ten thousand messages, each awaited by
//! its caller, are stored in a few rows.

use std::collections::BTreeSet;

use trunkline::{Db, Settings};

/// Enqueues ten thousand messages from a thousand tasks. Returns the number of rows that store
/// them.
pub async fn run(url: &str) -> Result<u64, Box<dyn std::error::Error + Send + Sync>> {
    let db = Db::connect(url).await?;
    db.migrate().await?;
    db.create_queue("clicks", &Settings::of::<i64>()).await?;
    let clicks = db.queue::<i64>("clicks").await?;

    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..1000_i64 {
        let clicks = clicks.clone();
        callers.spawn(async move {
            for click in 0..10 {
                clicks.enqueue(caller * 10 + click).await?; // returns when the message is on disk
            }
            Ok::<_, trunkline::Error>(())
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller??;
    }
    let rows = clicks.stats().await?.rows;

    let messages = clicks.take(20_000).await?;
    let payloads: BTreeSet<i64> = messages.iter().map(|message| message.payload).collect();
    assert!(payloads.into_iter().eq(0..10_000));
    Ok(rows)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let cluster = trunkline_embedded::Cluster::temporary().start()?;
    let rows = run(&cluster.url("postgres")).await?;
    assert!(rows < 1_000);
    println!("10,000 messages in {rows} rows");
    Ok(())
}
