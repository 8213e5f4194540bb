//! Runs pgmq through its own Rust client, for the benchmark. The client includes the SQL, so no
//! extension is needed.

use std::{process::ExitCode, sync::Arc, time::Duration};

use pgmq::{Message, PGMQueueExt};
use serde_json::value::RawValue;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::{sync::Notify, task::JoinSet};
use trunkline_contender::{Contender, Failure, NO_MEASURE, Ready, Settings, Tally, Wait};

const QUEUE: &str = "bench";
/// The visibility timeout in seconds.
const VT: i32 = 30;
/// The default limits of `read_with_poll` in SQL.
const POLL_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A message as text, because the handler needs no parsed values.
type Payload = Box<RawValue>;

fn main() -> ExitCode {
    trunkline_contender::run::<Pgmq>(NO_MEASURE)
}

struct Pgmq {
    queue: PGMQueueExt,
    consumers: usize,
    batch: i32,
    wait: Waiting,
    /// Set if messages have keys, which pgmq calls groups.
    is_grouped: bool,
}

/// The way in which a consumer waits on an empty queue.
enum Waiting {
    /// The consumer waits in the server: `read_with_poll`.
    Poll,
    /// The consumer waits for the notification of an insert. It also reads at intervals, as pgmq's
    /// documentation recommends.
    Notify(Notify),
}

impl Contender for Pgmq {
    type Handle = i64;

    async fn install(settings: &Settings) -> Result<(Self, Ready), Failure> {
        let consumers = settings.consumers_or(16);
        // There is one connection per caller and per consumer, and one that listens. All of them
        // are opened before the clock starts.
        let connections = settings.producers + consumers + 1;
        let pool = PgPoolOptions::new()
            .max_connections(connections as u32)
            // Turns off sqlx's ping before every call.
            .test_before_acquire(false)
            // Takes the options from the environment, because sqlx cannot read a URL without a host
            // before the path.
            .connect_with(PgConnectOptions::new())
            .await?;
        let mut opened = Vec::with_capacity(connections);
        for _ in 0..connections {
            opened.push(pool.acquire().await?);
        }
        drop(opened);
        let queue = PGMQueueExt::new_with_pool(pool).await;
        let version = peer::install(&queue, &[QUEUE]).await?;
        // pgmq's own benchmark reads 10 to 100 messages at a time. This peer reads 100, unless the
        // settings request otherwise.
        let batch = if settings.consumers == 0 { settings.batch.max(100) } else { settings.fetched() };
        let wait = match settings.wait {
            Wait::Best | Wait::Poll => Waiting::Poll,
            Wait::Notify => {
                queue.enable_notify_insert(QUEUE, Duration::ZERO).await?;
                Waiting::Notify(Notify::new())
            }
        };
        let waits = match wait {
            Waiting::Poll => "read_with_poll every 100 ms",
            Waiting::Notify(_) => "notified of inserts, not throttled, and read again every 5 s",
        };
        let is_grouped = settings.keys > 0;
        if is_grouped {
            queue.create_fifo_index(QUEUE).await?;
        }
        let waits = if is_grouped { "read_grouped_rr_with_poll every 100 ms" } else { waits };
        let ready = Ready {
            version,
            settings: format!("{consumers} consumers of {batch}, {waits}, visibility timeout {VT} s, logged queue"),
        };
        Ok((Self { queue, consumers, batch: i32::try_from(batch)?, wait, is_grouped }, ready))
    }

    async fn send(&self, _caller: usize, payloads: Vec<String>) -> Result<(), Failure> {
        let payloads: Vec<_> = payloads.into_iter().map(RawValue::from_string).collect::<Result<_, _>>()?;
        peer::send(&self.queue, QUEUE, &payloads).await?;
        Ok(())
    }

    async fn send_keyed(&self, _caller: usize, key: String, payload: String) -> Result<(), Failure> {
        let (payload, group) = (RawValue::from_string(payload)?, serde_json::json!({ "x-pgmq-group": key }));
        self.queue.send_delay_with_headers(QUEUE, &payload, Some(&group), 0).await?;
        Ok(())
    }

    async fn consume(self: Arc<Self>, tally: Arc<Tally>) -> Result<(), Failure> {
        let mut consuming = JoinSet::new();
        if let Waiting::Notify(_) = self.wait {
            let (pgmq, tally) = (self.clone(), tally.clone());
            consuming.spawn(async move {
                tokio::select! {
                    ended = pgmq.listen() => ended,
                    () = tally.over() => Ok(()),
                }
            });
        }
        for _ in 0..self.consumers {
            let (pgmq, tally) = (self.clone(), tally.clone());
            consuming.spawn(async move {
                tokio::select! {
                    ended = pgmq.consume_by_one(&tally) => ended,
                    // Stops at once. Otherwise a poll in the server would continue for several
                    // seconds.
                    () = tally.over() => Ok(()),
                }
            });
        }
        while let Some(ended) = consuming.join_next().await {
            ended??;
        }
        Ok(())
    }

    async fn read(&self, _caller: usize, n: usize) -> Result<Vec<i64>, Failure> {
        Ok(ids(&self.take(i32::try_from(n)?).await?))
    }

    async fn delete(&self, _caller: usize, read: Vec<i64>) -> Result<(), Failure> {
        let deleted = match read.as_slice() {
            [id] => usize::from(self.queue.delete(QUEUE, *id).await?),
            ids => self.queue.delete_batch(QUEUE, ids).await?,
        };
        all("deleted", deleted, read.len())
    }

    async fn archive(&self, _caller: usize, read: Vec<i64>) -> Result<(), Failure> {
        let archived = match read.as_slice() {
            [id] => usize::from(self.queue.archive(QUEUE, *id).await?),
            ids => self.queue.archive_batch(QUEUE, ids).await?,
        };
        all("archived", archived, read.len())
    }

    async fn pop(&self, _caller: usize, n: usize) -> Result<usize, Failure> {
        if n == 1 {
            return Ok(self.queue.pop::<Payload>(QUEUE).await?.into_iter().count());
        }
        // The client has no call to pop many messages, but the SQL that it installs has a function
        // for that.
        let popped: Vec<Message<Payload>> = sqlx::query_as(
            "select msg_id, read_ct, enqueued_at, vt, message from pgmq.pop(queue_name => $1, qty => $2)",
        )
        .bind(QUEUE)
        .bind(i32::try_from(n)?)
        .fetch_all(&self.queue.connection)
        .await?;
        Ok(popped.len())
    }

    async fn read_with_poll(&self, _caller: usize, n: usize, patience: Duration) -> Result<Vec<i64>, Failure> {
        Ok(ids(&self.take_with_poll(i32::try_from(n)?, patience).await?))
    }
}

impl Pgmq {
    /// Wakes a consumer at every insert. A consumer reads until the queue is empty.
    async fn listen(&self) -> Result<(), Failure> {
        let Waiting::Notify(notified) = &self.wait else { return Ok(()) };
        let mut listener = self.queue.queue_insert_listener(QUEUE).await?;
        loop {
            listener.recv().await?;
            notified.notify_one();
        }
    }

    async fn consume_by_one(&self, tally: &Tally) -> Result<(), Failure> {
        loop {
            let messages = match &self.wait {
                Waiting::Poll => self.take_with_poll(self.batch, POLL_TIMEOUT).await?,
                Waiting::Notify(_) => self.take(self.batch).await?,
            };
            tally.received_many(messages.iter().map(|message| message.message.get()));
            if !messages.is_empty() {
                self.delete(0, ids(&messages)).await?;
            } else if let Waiting::Notify(notified) = &self.wait {
                // The consumer reads again after a notification, or after the timeout.
                let _ = tokio::time::timeout(POLL_TIMEOUT, notified.notified()).await;
            }
        }
    }

    async fn take(&self, n: i32) -> Result<Vec<Message<Payload>>, Failure> {
        Ok(match n {
            1 => self.queue.read(QUEUE, VT).await?.into_iter().collect(),
            n => self.queue.read_batch(QUEUE, VT, n).await?,
        })
    }

    async fn take_with_poll(&self, n: i32, timeout: Duration) -> Result<Vec<Message<Payload>>, Failure> {
        if self.is_grouped {
            let (timeout, interval) = (Some(timeout), Some(POLL_INTERVAL));
            return Ok(self.queue.read_grouped_rr_with_poll(QUEUE, VT, n, timeout, interval).await?);
        }
        let taken = self.queue.read_batch_with_poll(QUEUE, VT, n, Some(timeout), Some(POLL_INTERVAL)).await?;
        Ok(taken.unwrap_or_default())
    }
}

fn ids(messages: &[Message<Payload>]) -> Vec<i64> {
    messages.iter().map(|message| message.msg_id).collect()
}

fn all(what: &str, done: usize, asked: usize) -> Result<(), Failure> {
    if done == asked { Ok(()) } else { Err(format!("{what} {done} messages of {asked}").into()) }
}
