//! Carries messages from a broker into a queue, effectively once: one transaction stores the
//! messages and the position after them.
//!
//! The stored position decides which messages have arrived. A relay can move the position only from
//! the value that this relay last read. So each message is in the queue exactly once, even if a
//! relay is killed, fenced or disconnected. The next relay reads the position and continues after
//! it.

mod position;
mod store;

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use trunkline::{Queue, postgres::Statement};

use self::store::parts;
use crate::{
    error::{Error, Result},
    metric::Metrics,
    payload::Raw,
    progress::Progress,
    source::{Incoming, Source},
    sql,
};

/// The maximum number of messages per transaction.
const MOST: usize = 1000;
/// The time without a report, in seconds, after which the holder of a position loses it.
const HOLD: f64 = 15.0;
/// The interval between two reports of the position's holder while no messages arrive.
const WORD: Duration = Duration::from_secs(3);
/// The time limit for a statement while a relay ends.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The time limit, after a shutdown, for the statements that are running.
const SHUTDOWN: Duration = Duration::from_secs(20);
/// The first and the longest pause between retries during an outage.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

type Claim = Statement<(String, String, String, i64, f64), Option<(Option<String>,)>>;
type Move = Statement<(String, i64, Option<String>, String, f64, i64, Option<i64>, Option<String>, String), u64>;
type Owner = Statement<(String, String), Option<(String, String, bool)>>;

/// A relay from a broker into a queue: see [`relay_from`].
pub struct Inward {
    queue: Queue<Raw>,
    source: Box<dyn Source>,
    name: Option<String>,
    passes_over: bool,
    progress: Arc<Progress>,
}

/// Carries messages from a broker into a queue, effectively once. The transaction that enqueues
/// messages also stores the broker's position, so each message arrives exactly once, even after a
/// crash.
///
/// If several relays have the same name, one of them works. The others wait until it ends, or has
/// not reported for 15 seconds. If a relay that is still alive is replaced in this way, it finds
/// that the position has moved, and changes nothing.
#[must_use]
pub fn relay_from(source: impl Source, queue: Queue<Raw>) -> Inward {
    Inward::new(Box::new(source), queue)
}

enum State {
    /// The relay is claiming the position.
    Waits,
    /// The relay holds the position, and reads the messages after it.
    Holds(Option<String>),
}

impl Inward {
    /// Creates the same relay as [`relay_from`], with a boxed source.
    #[must_use]
    pub fn new(source: Box<dyn Source>, queue: Queue<Raw>) -> Self {
        Self { queue, source, name: None, passes_over: false, progress: Arc::default() }
    }

    /// Sets the name under which the position is stored; `QUEUE from BROKER` by default. Under a
    /// new name the relay reads the stream from its beginning.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Skips a message that the queue cannot store, with a warning: invalid JSON, a payload that is
    /// too large, or a missing key. Otherwise the relay ends with an error at such a message.
    #[must_use]
    pub fn pass_over(self, passes_over: bool) -> Self {
        Self { passes_over, ..self }
    }

    /// Returns counts that callers can read while the relay runs.
    #[must_use]
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Relays until `shutdown` ends. Then commits the batch in progress, releases the position, and
    /// returns.
    ///
    /// # Errors
    /// If the name belongs to another relay, the broker has lost unread messages
    /// ([`Error::is_gap`]), or the queue cannot store a message. The relay outlasts an outage of
    /// the database or the broker.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<Arc<Progress>> {
        let stop = CancellationToken::new();
        let (db, broker) = (self.queue.db().clone(), self.source.broker().to_owned());
        let queue = self.queue.description().name.clone();
        let name = self.name.unwrap_or_else(|| format!("{queue} from {broker}"));
        let mut source = self.source;
        let mut running = Running {
            metrics: Metrics::of(&queue, &broker),
            claim: sql::of(&db, include_str!("../sql/claim.sql")),
            moves: sql::of(&db, include_str!("../sql/move.sql")),
            owner: sql::of(&db, include_str!("../sql/owner.sql")),
            holder: (crate::chance() >> 1) as i64,
            db,
            queue: self.queue,
            lag: None,
            name,
            broker,
            passes_over: self.passes_over,
            progress: self.progress.clone(),
            state: State::Waits,
            word: Instant::now(),
        };
        let mut work = pin!(async {
            stop.run_until_cancelled(running.found()).await.transpose()?;
            running.work(source.as_mut(), &stop).await
        });
        let mut shutdown = pin!(shutdown);
        let outcome = tokio::select! {
            outcome = &mut work => outcome,
            () = &mut shutdown => {
                stop.cancel();
                timeout(SHUTDOWN, work).await.unwrap_or_else(|_| {
                    warn!("no answer of the database at the end; what is not committed is read again");
                    Ok(())
                })
            }
        };
        outcome.map(|()| self.progress)
    }
}

/// The relay without its source, so that it can report while its source reads.
struct Running {
    db: trunkline::Db,
    queue: Queue<Raw>,
    /// The number of messages after the last one that was read, if the broker reports it.
    lag: Option<i64>,
    name: String,
    broker: String,
    holder: i64,
    claim: Claim,
    moves: Move,
    owner: Owner,
    passes_over: bool,
    progress: Arc<Progress>,
    metrics: Metrics,
    state: State,
    /// The time of the last report of the position's holder.
    word: Instant,
}

impl Running {
    /// Runs one step after another, with a pause while the database or the broker is unavailable.
    async fn work(&mut self, source: &mut dyn Source, stop: &CancellationToken) -> Result<()> {
        let mut pause = PAUSES.0;
        while !stop.is_cancelled() {
            // A successful claim does not reset the pause, because it succeeds even if the messages
            // after the position cannot be read.
            let asks = matches!(self.state, State::Waits);
            match self.step(source, stop).await {
                Ok(()) if asks => {}
                Ok(()) => pause = PAUSES.0,
                Err(error) if is_final(&error) => {
                    let _ = timeout(LAST_WORDS, self.say(Some(error.to_string()))).await;
                    self.let_go().await;
                    return Err(error);
                }
                Err(error) => {
                    warn!(relay = self.name, %error, ?pause, "the relay failed; retrying after a pause");
                    self.progress.try_again(&error.to_string());
                    self.metrics.again.increment(1);
                    if error.is_broker() || error.database().is_some_and(|error| error.sqlstate().is_some()) {
                        self.say(Some(error.to_string())).await; // reports the error only if the database answers
                    }
                    if !error.is_broker() {
                        // reads the position again, because only the position shows what was
                        // committed
                        self.state = State::Waits;
                    }
                    let _ = stop.run_until_cancelled(sleep(pause)).await; // a shutdown ends the pause early
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
        // Reports once more: the last report decides whether the relay counts as stopped by an
        // error.
        let _ = timeout(LAST_WORDS, self.say(None)).await;
        self.let_go().await;
        Ok(())
    }

    async fn step(&mut self, source: &mut dyn Source, stop: &CancellationToken) -> Result<()> {
        let State::Holds(position) = &self.state else { return self.ask(source, stop).await };
        let position = position.clone();
        let read = self.read(source, position.as_deref(), stop).await;
        self.lag = source.lag().and_then(|lag| i64::try_from(lag).ok());
        let Some(messages) = read else { return Ok(()) };
        let messages = messages?;
        if messages.is_empty() {
            if self.word.elapsed() >= WORD {
                self.say(None).await;
            }
            return Ok(());
        }
        for part in parts(messages) {
            let State::Holds(from) = &self.state else { return Ok(()) };
            self.store(source, from.clone(), part).await?;
        }
        Ok(())
    }

    /// Reads messages. Reports while the source waits for a broker that hangs, because that may
    /// take longer than the hold lasts. Returns `None` at a shutdown, or if another relay has
    /// claimed the position.
    async fn read(
        &mut self,
        source: &mut dyn Source,
        after: Option<&str>,
        stop: &CancellationToken,
    ) -> Option<Result<Vec<Incoming>>> {
        let mut read = pin!(stop.run_until_cancelled(source.read(after, MOST)));
        loop {
            if let Ok(read) = timeout(WORD, &mut read).await {
                return read;
            }
            stop.run_until_cancelled(self.say(None)).await?;
            if matches!(self.state, State::Waits) {
                return None;
            }
        }
    }
}

/// Returns true for an error that a retry cannot resolve.
fn is_final(error: &Error) -> bool {
    let of_database = |error: &trunkline::Error| {
        let code = error.sqlstate().map_or("", |state| state.code());
        error.is_no_queue() || error.is_wrong_type() || code == "42501" || code.starts_with("28")
    };
    error.is_usage() || error.is_stopped() || error.is_gap() || error.database().is_some_and(of_database)
}
