//! Measures the time between the answer to an enqueue, which marks the commit, and the broker's
//! confirmation.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use trunkline::{Db, Queue, Settings};
use trunkline_relay::{Outcome as Answer, Outgoing, Raw, Relay, Sink, sink};

use crate::{Outcome, place::Place};

/// A sink that records when each message was confirmed.
struct Timed {
    sink: Arc<dyn Sink>,
    confirmed: Arc<Mutex<HashMap<i64, Instant>>>,
}

impl Sink for Timed {
    fn broker(&self) -> &str {
        self.sink.broker()
    }

    fn produce<'a>(&'a self, batch: &'a [Outgoing]) -> BoxFuture<'a, Vec<Answer>> {
        Box::pin(async move {
            let answers = self.sink.produce(batch).await;
            let now = Instant::now();
            let mut confirmed = self.confirmed.lock().expect("no panic");
            let id = |message: &Outgoing| message.id.rsplit('/').next().and_then(|id| id.parse().ok()).expect("an id");
            confirmed.extend(batch.iter().map(|message| (id(message), now)));
            answers
        })
    }

    fn longest(&self, batches: usize) -> Duration {
        self.sink.longest(batches)
    }
}

/// Returns the median and the 99th percentile, in milliseconds.
pub async fn at(db: &Db, place: &Place, name: &str, per_second: u32, time: Duration) -> Outcome<(f64, f64)> {
    let address = place.make(name).await?;
    db.create_queue(name, &Settings::new("bytea")).await?;
    let queue: Queue<Raw> = db.queue(name).await?;
    let (sink, route) = sink(&address).await?;
    let confirmed = Arc::new(Mutex::new(HashMap::new()));
    let timed = Timed { sink, confirmed: confirmed.clone() };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running =
        tokio::spawn(Relay::new(queue.clone(), Arc::new(timed)).route(route).run(async { drop(stopped.await) }));
    let mut committed = HashMap::new();
    let mut beat = tokio::time::interval(Duration::from_secs(1) / per_second);
    let began = Instant::now();
    while began.elapsed() < time {
        beat.tick().await;
        let id = queue.enqueue(Raw(vec![b'x'; 100].into())).await?.id();
        committed.insert(id, Instant::now());
    }
    while confirmed.lock().expect("no panic").len() < committed.len() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(stop);
    running.await??;
    let confirmed = confirmed.lock().expect("no panic");
    // Omits the first second, which counts as the start.
    let counted = committed.iter().filter(|(_, at)| at.duration_since(began) > Duration::from_secs(1));
    let mut took: Vec<f64> =
        counted.map(|(id, at)| confirmed[id].saturating_duration_since(*at).as_secs_f64() * 1000.0).collect();
    took.sort_by(f64::total_cmp);
    let quantile = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
    Ok((quantile(0.5), quantile(0.99)))
}
