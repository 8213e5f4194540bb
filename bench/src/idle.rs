//! From enqueue to handed over, one message every ten milliseconds, to a consumer that listens in another `Db`.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use trunkline::{Db, Wait};

use crate::{Failure, Figures, Ground, percentile};

const MESSAGES: usize = 300;

/// Stored, notified, taken.
pub async fn run(ground: Ground) -> Result<Figures, Failure> {
    measure(ground, false).await
}

/// Inside the notification.
pub async fn handed_over(ground: Ground) -> Result<Figures, Failure> {
    measure(ground, true).await
}

async fn measure(ground: Ground, inside: bool) -> Result<Figures, Failure> {
    let queue = ground.queue("idle").await?;
    // Another process would have connections of its own; so nothing is short-cut inside this one.
    let other = Db::connect(&ground.url).await?.queue::<Vec<u8>>("idle").await?;
    let (handed, mut received) = mpsc::unbounded_channel();
    let consumer = tokio::spawn(async move {
        let mut consumer = other.consumer(Wait::Notify);
        for _ in 0..MESSAGES {
            match inside {
                true => drop(consumer.handed_over().await?),
                false => drop(consumer.at_most_once(1).await?),
            }
            let _ = handed.send(Instant::now()); // the receiver outlives it
        }
        Ok::<_, Failure>(())
    });
    let (mut latencies, mut enqueues) = (Vec::new(), Vec::new());
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    for _ in 0..MESSAGES {
        tick.tick().await;
        let began = Instant::now();
        match inside {
            true => queue.hand_over(vec![7; 100]).await?,
            false => queue.enqueue(vec![7; 100]).await?,
        };
        enqueues.push(began.elapsed().as_secs_f64() * 1e6);
        let at = received.recv().await.ok_or("the consumer is gone")?;
        latencies.push(at.duration_since(began).as_secs_f64() * 1e6);
    }
    consumer.await??;
    Ok(vec![
        ("p50 us", percentile(&mut latencies, 0.5)),
        ("p99 us", percentile(&mut latencies, 0.99)),
        ("until enqueued p50 us", percentile(&mut enqueues, 0.5)),
    ])
}
