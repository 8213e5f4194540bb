//! Measures how long a relay takes to empty a full queue.

use std::time::{Duration, Instant};

use trunkline::{Db, Queue, Settings};
use trunkline_relay::{Raw, Relay, sink};

use crate::{Outcome, place::Place};

pub async fn of_relay(db: &Db, place: &Place, name: &str, messages: usize) -> Outcome<f64> {
    let address = place.make(name).await?;
    db.create_queue(name, &Settings::new("bytea")).await?;
    let queue: Queue<Raw> = db.queue(name).await?;
    for _ in 0..messages / 1000 {
        queue.enqueue_many(vec![Raw(vec![b'x'; 100].into()); 1000]).await?;
    }
    let (sink, route) = sink(&address).await?;
    let relay = Relay::new(queue.clone(), sink).route(route);
    let progress = relay.progress();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let began = Instant::now();
    let running = tokio::spawn(relay.run(async { drop(stopped.await) }));
    while progress.confirmed() < messages as u64 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = began.elapsed();
    drop(stop);
    running.await??;
    let left = queue.stats().await?.messages;
    if left > 0 || progress.again() > 0 {
        println!("{left} left, {} tried again", progress.again());
    }
    Ok(messages as f64 / took.as_secs_f64())
}
