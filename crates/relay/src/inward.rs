//! Carries messages from a broker into a queue, effectively once: one transaction stores the
//! messages and the position after them.
//!
//! The stored position decides which messages have arrived. A relay can move the position only from
//! the value that this relay last read. So a relay may be killed, fenced or disconnected at any
//! point, and each message is still in the queue exactly once. The next relay reads the position
//! and continues after it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info, info_span, warn};
use trunkline::{Draft, Queue, postgres::Statement};

use crate::{
    error::{Error, Result},
    header,
    metric::Metrics,
    outgoing::KEY,
    payload::Raw,
    progress::Progress,
    source::{Incoming, Source},
    sql,
};

/// The maximum number of messages per transaction.
const MOST: usize = 1000;
/// The maximum number of bytes per transaction. The last message may exceed it. The limit bounds
/// the relay's memory, and the server accepts no request over one GiB.
const BYTES: usize = 16 << 20;
/// The time without a report, in seconds, after which the holder of a position loses it.
const HOLD: f64 = 15.0;
/// The interval between two reports of the position's holder while no messages arrive.
const WORD: Duration = Duration::from_secs(3);
/// The interval between two claims of a waiting relay.
const ASK: Duration = Duration::from_secs(1);
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
/// If several relays have the same name, one works, and the others wait until it has ended or has
/// not reported for 15 seconds. A relay that wrongly counts as dead finds the position moved and
/// changes nothing.
#[must_use]
pub fn relay_from(source: impl Source, queue: Queue<Raw>) -> Inward {
    Inward::new(Box::new(source), queue)
}

/// The relay's claim on the position.
enum State {
    /// The relay is asking for the position.
    Waits,
    /// The relay holds the position, and reads the messages after it.
    Holds(Option<String>),
}

impl Inward {
    /// Does the same as [`relay_from`], with a boxed source.
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
        let mut running = Running {
            metrics: Metrics::of(&queue, &broker),
            claim: sql::of(&db, include_str!("../sql/claim.sql")),
            moves: sql::of(&db, include_str!("../sql/move.sql")),
            owner: sql::of(&db, include_str!("../sql/owner.sql")),
            holder: (crate::chance() >> 1) as i64,
            db,
            queue: self.queue,
            source: self.source,
            name,
            broker,
            passes_over: self.passes_over,
            progress: self.progress.clone(),
            state: State::Waits,
            word: Instant::now(),
        };
        running.found().await?;
        let mut work = std::pin::pin!(running.work(&stop));
        let mut shutdown = std::pin::pin!(shutdown);
        let outcome = tokio::select! {
            outcome = &mut work => outcome,
            () = &mut shutdown => {
                stop.cancel();
                work.await
            }
        };
        outcome.map(|()| self.progress)
    }
}

struct Running {
    db: trunkline::Db,
    queue: Queue<Raw>,
    source: Box<dyn Source>,
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
    /// Creates the relay's row if it is missing, and fails if the row belongs to another relay.
    async fn found(&mut self) -> Result<()> {
        let queue = self.queue.description().name.clone();
        let insert: Statement<(&str, &str, &str), u64> = sql::of(&self.db, include_str!("../sql/found.sql"));
        self.db.run(&insert, (&*self.name, &*queue, &*self.broker)).await?;
        let (of, from, inward) = self.owner().await?;
        if (&of, &from, inward) == (&queue, &self.broker, true) {
            return Ok(());
        }
        let way = if inward { "from" } else { "to" };
        Err(Error::usage(format!(
            "the name {:?} is taken: it is the relay of queue {of:?} {way} {from}; choose another, or delete its row from {}.relay",
            self.name,
            self.db.schema_name()
        )))
    }

    /// Returns the owner of the row. If the row was deleted, with its queue or manually, the
    /// position is lost.
    async fn owner(&mut self) -> Result<(String, String, bool)> {
        let owner = self.db.run(&self.owner, (self.name.clone(), self.queue.description().name.clone())).await?;
        owner.ok_or_else(|| {
            Error::usage(format!(
                "the position of relay {:?} is gone from {}.relay: its queue was dropped, or the row was deleted; a relay that is started now reads {} from its beginning",
                self.name,
                self.db.schema_name(),
                self.broker
            ))
        })
    }

    /// Runs one step after another, with a pause while the database or the broker is unavailable.
    async fn work(&mut self, stop: &CancellationToken) -> Result<()> {
        let mut pause = PAUSES.0;
        while !stop.is_cancelled() {
            // A claim succeeds even if the messages after the position cannot be read. So it does
            // not reset the pause.
            let asks = matches!(self.state, State::Waits);
            match self.step(stop).await {
                Ok(()) if asks => {}
                Ok(()) => pause = PAUSES.0,
                Err(error) if is_final(&error) => {
                    self.say(Some(error.to_string())).await;
                    self.let_go().await;
                    return Err(error);
                }
                Err(error) => {
                    warn!(relay = self.name, %error, ?pause, "the relay waits");
                    self.progress.try_again(&error.to_string());
                    self.metrics.again.increment(1);
                    if error.is_broker() {
                        self.say(Some(error.to_string())).await;
                    } else {
                        self.state = State::Waits; // only the position shows what was committed
                    }
                    let _ = stop.run_until_cancelled(sleep(pause)).await; // a shutdown ends the pause early
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
        self.let_go().await;
        Ok(())
    }

    async fn step(&mut self, stop: &CancellationToken) -> Result<()> {
        let State::Holds(position) = &self.state else { return self.ask(stop).await };
        let position = position.clone();
        let read = self.source.read(position.as_deref(), MOST);
        let Some(messages) = stop.run_until_cancelled(read).await else { return Ok(()) };
        let messages = messages?;
        if messages.is_empty() {
            if self.word.elapsed() >= WORD {
                self.say(None).await;
            }
            return Ok(());
        }
        for part in parts(messages) {
            let State::Holds(from) = &self.state else { return Ok(()) };
            self.store(from.clone(), part).await?;
        }
        Ok(())
    }

    /// Claims the position, or pauses while another relay holds it.
    async fn ask(&mut self, stop: &CancellationToken) -> Result<()> {
        let of = (self.name.clone(), self.queue.description().name.clone(), self.broker.clone(), self.holder, HOLD);
        if let Some((position,)) = self.db.run(&self.claim, of).await? {
            info!(relay = self.name, position, "the relay holds the position");
            self.state = State::Holds(position);
            self.word = Instant::now();
        } else {
            self.owner().await?;
            let _ = stop.run_until_cancelled(sleep(ASK)).await; // a shutdown ends the pause early
        }
        Ok(())
    }

    /// Stores the messages and the position in one transaction and one round trip.
    async fn store(&mut self, from: Option<String>, messages: Vec<Incoming>) -> Result<()> {
        let Some(to) = messages.last().map(|last| last.position.clone()) else { return Ok(()) };
        let span = info_span!("relay_store", relay = self.name, messages = messages.len());
        match self.commit(from.clone(), &to, Ok(&messages)).instrument(span).await {
            Err(error) if is_refusal(&error) && messages.len() > 1 => {
                for message in messages {
                    let State::Holds(from) = &self.state else { return Ok(()) };
                    Box::pin(self.store(from.clone(), vec![message])).await?;
                }
                return Ok(());
            }
            Err(error) if is_refusal(&error) => self.pass_over(from, &to, error).await?,
            outcome => outcome?,
        }
        self.source.committed(&to).await;
        Ok(())
    }

    /// Moves the position to `to`. Enqueues the messages up to there, or records the reason why
    /// there are none.
    async fn commit(
        &mut self,
        from: Option<String>,
        to: &str,
        messages: std::result::Result<&[Incoming], &str>,
    ) -> Result<()> {
        let (messages, left_out) = messages.map_or_else(|why| (&[][..], Some(why.to_owned())), |all| (all, None));
        let drafts: Vec<_> = messages.iter().map(|message| self.draft(message)).collect();
        let transaction = self.db.begin().await?;
        let lag = self.source.lag().and_then(|lag| i64::try_from(lag).ok());
        let count = messages.len() as i64;
        let queue = self.queue.description().name.clone();
        let moved = (self.name.clone(), self.holder, from, to.to_owned(), HOLD, count, lag, left_out, queue);
        let moved = transaction.send(&self.moves, moved).await?;
        let ids =
            if drafts.is_empty() { None } else { Some(self.queue.send_enqueue_many(&transaction, drafts).await?) };
        if moved.await? == 0 {
            transaction.rollback().await?;
            info!(relay = self.name, "another relay has moved the position");
            self.state = State::Waits;
            return Ok(());
        }
        if let Some(ids) = ids {
            ids.await?;
        }
        transaction.commit().await?;
        self.state = State::Holds(Some(to.to_owned()));
        self.word = Instant::now();
        self.progress.confirm(messages.len() as u64);
        self.metrics.received.increment(messages.len() as u64);
        Ok(())
    }

    fn draft(&self, message: &Incoming) -> Draft<Raw> {
        let queue = self.queue.description();
        // A Kafka message without a value becomes `null` where the payload must be JSON.
        let is_json = matches!(&*queue.payload, "json" | "jsonb");
        let is_tombstone = message.body.is_empty() && message.metadata.get(header::TOMBSTONE).is_some();
        let body = if is_json && is_tombstone { Bytes::from_static(b"null") } else { message.body.clone() };
        let (draft, mut metadata) = (Draft::new(Raw(body)), message.metadata.clone());
        match &message.key {
            Some(key) if queue.partitions > 0 => return draft.metadata(metadata).key(&**key),
            Some(key) => metadata.insert(KEY, &**key),
            None => {}
        }
        draft.metadata(metadata)
    }

    /// Skips a message that the queue cannot store, or fails because of it.
    async fn pass_over(&mut self, from: Option<String>, to: &str, error: Error) -> Result<()> {
        let queue = &self.queue.description().name;
        let why = format!("the message at {to:?} of {} cannot be stored in queue {queue:?}: {error}", self.broker);
        self.progress.refuse(&why);
        self.metrics.refused.increment(1);
        if !self.passes_over {
            return Err(Error::usage(format!(
                "{why}; fix the cause, or skip messages that cannot be stored (--pass-over)"
            )));
        }
        warn!(relay = self.name, why, "passed over");
        self.commit(from, to, Err(&why)).await
    }

    /// Extends the hold on the position, and reports the relay's state. Failures are ignored,
    /// because the next report tries again.
    async fn say(&mut self, error: Option<String>) {
        type Keep = Statement<(String, i64, f64, Option<i64>, Option<String>, String), u64>;
        let keep: Keep = sql::of(&self.db, include_str!("../sql/keep.sql"));
        let lag = self.source.lag().and_then(|lag| i64::try_from(lag).ok());
        let queue = self.queue.description().name.clone();
        match self.db.run(&keep, (self.name.clone(), self.holder, HOLD, lag, error, queue)).await {
            Ok(0) => self.state = State::Waits,
            Ok(_) => self.word = Instant::now(),
            Err(error) => warn!(relay = self.name, %error, "no word to the database"),
        }
    }

    async fn let_go(&mut self) {
        let let_go: Statement<(&str, i64, &str), u64> = sql::of(&self.db, include_str!("../sql/let_go.sql"));
        let said = self.db.run(&let_go, (&*self.name, self.holder, &*self.queue.description().name));
        let _ = tokio::time::timeout(Duration::from_secs(2), said).await; // if this fails, the hold simply expires
    }
}

/// Splits messages into parts of a bounded number of bytes, in order.
fn parts(messages: Vec<Incoming>) -> Vec<Vec<Incoming>> {
    let (mut parts, mut bytes) = (Vec::<Vec<Incoming>>::new(), 0);
    for message in messages {
        let size = message.size();
        match parts.last_mut() {
            Some(part) if bytes < BYTES => part.push(message),
            _ => {
                parts.push(vec![message]);
                bytes = 0;
            }
        }
        bytes += size;
    }
    parts
}

/// Returns true for an error that a retry cannot resolve.
fn is_final(error: &Error) -> bool {
    let of_database = |error: &trunkline::Error| {
        let code = error.sqlstate().map_or("", |state| state.code());
        error.is_no_queue() || error.is_wrong_type() || code == "42501" || code.starts_with("28")
    };
    error.is_usage() || error.is_gap() || error.database().is_some_and(of_database)
}

/// Returns true if PostgreSQL or the client library refused a message because of its content.
fn is_refusal(error: &Error) -> bool {
    error.database().is_some_and(|error| {
        let of_library = !error.is_closed() && !error.is_outcome_unknown();
        error.is_bad_payload() || error.sqlstate().map_or(of_library, |state| !is_of_server(state.code()))
    })
}

/// Returns true for codes of errors that are temporary or that affect every message. All other
/// codes concern one message: a value, a check, a trigger's error, or nesting that is too deep.
fn is_of_server(code: &str) -> bool {
    const CLASSES: [&str; 15] =
        ["08", "25", "26", "28", "3D", "3F", "40", "42", "53", "55P03", "57", "58", "F0", "XX", "TL"];
    CLASSES.iter().any(|class| code.starts_with(class))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_some_bytes_and_all_messages_in_order() {
        let sizes = [BYTES / 2, BYTES / 2 + 1, 3, BYTES * 3, 4, 5];
        let of = |(at, size): (usize, &usize)| Incoming {
            position: at.to_string(),
            body: vec![0; *size].into(),
            ..Incoming::default()
        };
        let parts = parts(sizes.iter().enumerate().map(of).collect());
        let places: Vec<Vec<_>> =
            parts.iter().map(|part| part.iter().map(|message| &*message.position).collect()).collect();
        assert_eq!(places, [vec!["0", "1"], vec!["2", "3"], vec!["4", "5"]]);
        assert!(super::parts(Vec::new()).is_empty());
    }

    #[test]
    fn refusal_of_a_message_is_told_from_an_outage() {
        for of_message in ["22P05", "23514", "54001", "54000", "P0001", "38000", "UE001", "0A000", "21000"] {
            assert!(!is_of_server(of_message), "{of_message}");
        }
        for passes in ["57P01", "53100", "40001", "40P01", "25006", "42501", "08006", "55P03", "XX000", "TL002"] {
            assert!(is_of_server(passes), "{passes}");
        }
    }
}
