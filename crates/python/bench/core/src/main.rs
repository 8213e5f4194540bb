//! Runs the Rust library alone, with the same work as the Python package's benchmark: callers that
//! await each message.
//!
//! `trunkline-python-bench-core URL CALLERS SECONDS` prints a row.

use std::{
    env,
    error::Error,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use trunkline::{Db, Json, Queue, Settings};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const BYTES: usize = 100;

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, callers, seconds] = arguments.as_slice() else { return Err("usage: URL CALLERS SECONDS".into()) };
    let (callers, seconds) = (callers.parse::<usize>()?, seconds.parse::<f64>()?);
    let db = Db::connect(url).await?;
    db.migrate().await?;
    db.create_queue("bench", &Settings::of::<Json<Value>>()).await?;
    let queue = db.queue::<Json<Value>>("bench").await?;

    let began = Instant::now();
    let end = began + Duration::from_secs_f64(seconds);
    let tasks: Vec<_> = (0..callers).map(|_| tokio::spawn(caller(queue.clone(), end))).collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await??);
    }
    let took = began.elapsed().as_secs_f64();
    let stored = queue.stats().await?.messages;
    latencies.sort_unstable();
    let at = |hundredth: usize| latencies[latencies.len() * hundredth / 100].as_secs_f64() * 1e3;
    let rate = f64::from(u32::try_from(latencies.len())?) / took;
    let lost = i64::try_from(latencies.len())? - i64::try_from(stored)?;
    println!(
        "{}",
        json!({ "messages": latencies.len(), "seconds": took, "messages_per_s": rate, "p50_ms": at(50), "p99_ms": at(99), "lost": lost })
    );
    Ok(())
}

async fn caller(queue: Queue<Json<Value>>, end: Instant) -> trunkline::Result<Vec<Duration>> {
    let mut latencies = Vec::new();
    let mut now = Instant::now();
    while now < end {
        queue.enqueue(Json(message(latencies.len()))).await?;
        latencies.push(now.elapsed());
        now = Instant::now();
    }
    Ok(latencies)
}

fn message(n: usize) -> Value {
    let length = BYTES - r#"{"n":,"text":""}"#.len() - n.to_string().len();
    json!({ "n": n, "text": "x".repeat(length) })
}
