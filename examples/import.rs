//! A handler of batches: it receives up to 5,000 messages at a time, and writes them with one
//! statement.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Notify;
use trunkline::{
    Db, Message, Result, Settings, Worker,
    postgres::{Insert, Statement},
};

static TABLE: Statement<(), ()> =
    Statement::new("create table measurement (id bigint primary key, celsius double precision)");
/// A message may be delivered twice. It has the same id each time, so the second insert does
/// nothing.
static IMPORT: Insert<(i64, f64)> = Insert::into("measurement", &["id", "celsius"]).ending("on conflict do nothing");
static COUNT: Statement<(), (i64,)> = Statement::new("select count(*) from measurement");

/// Imports fifty thousand measurements. Returns the number of stored measurements and the number of
/// calls.
pub async fn run(url: &str) -> Result<(i64, usize)> {
    let db = Db::connect(url).await?;
    db.run(&TABLE, ()).await?;
    db.migrate().await?;
    db.create_queue("measurements", &Settings::of::<f64>()).await?;
    let measurements = db.queue::<f64>("measurements").await?;
    measurements.enqueue_many(&(0..50_000).map(|n| f64::from(n) / 1000.0).collect::<Vec<_>>()).await?;

    let (calls, left, done) = (Arc::<AtomicUsize>::default(), AtomicUsize::new(50_000), Arc::new(Notify::new()));
    let (count, over, left, into) = (calls.clone(), done.clone(), Arc::new(left), db.clone());
    let worker = Worker::of_batches(measurements, 5_000, move |messages: Vec<Message<f64>>| {
        let (count, over, left, db) = (count.clone(), over.clone(), left.clone(), into.clone());
        async move {
            count.fetch_add(1, Ordering::Relaxed);
            let rows = messages.iter().map(|message| (message.id, message.payload));
            let outcome = db.insert_many(&IMPORT, rows).await.map(drop);
            if outcome.is_ok() && left.fetch_sub(messages.len(), Ordering::AcqRel) == messages.len() {
                over.notify_one();
            }
            vec![outcome; messages.len()] // all messages have the same outcome
        }
    });
    worker.concurrency(4).run(done.notified()).await?;
    Ok((db.run(&COUNT, ()).await?.0, calls.load(Ordering::Relaxed)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = trunkline_embedded::Cluster::temporary().start()?;
    let (measurements, calls) = run(&cluster.url("postgres")).await?;
    assert!(measurements == 50_000 && calls < 500, "{calls}");
    println!("{measurements} measurements in {calls} calls");
    Ok(())
}
