//! The metrics of a database that holds queues, in the form that Prometheus reads.
//!
//! ```no_run
//! # async fn example(db: &trunkline::Db) {
//! use trunkline_console::metrics::{self, Metrics};
//!
//! let metrics = Metrics::new(); // share one among all scrapes: it keeps the samples
//! println!("content-type: {}\n\n{}", metrics::CONTENT_TYPE, metrics.exposition(db).await);
//! # }
//! ```
//!
//! A scrape returns stored samples. The first scrape after a sample's pause takes the sample again.
//! The pauses limit the cost of this process to one per cent of a core of the server, for any
//! number and size of queues. `trunkline_stats_age_seconds` is the age of the counts.

mod text;
pub(crate) mod ask;
mod kept;
mod exposed;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::time::timeout;
use tracing::warn;
use trunkline::{Db, Error, Result};

use self::kept::BESIDES;
pub(crate) use self::kept::{Kept, Picture};
use crate::reason::{is_late, reason};

/// The reason why there are no samples, if the server does not answer in time.
pub(crate) const SILENT: &str = "the database does not answer";

/// The time after which a sample is given up although the server limits its statements: the
/// network has forgotten the connection. First for the figures of the database and for alarms, then
/// for counts.
const GIVEN_UP: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(660));

/// The content type of an exposition.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of one database, with their latest samples.
#[derive(Debug, Clone)]
pub struct Metrics {
    patience: Duration,
    picture: Arc<Mutex<Picture>>,
    /// Locked while a task takes samples other than counts.
    looking: Arc<tokio::sync::Mutex<()>>,
    /// Locked while a task counts.
    counting: Arc<tokio::sync::Mutex<()>>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Creates metrics without samples, with a patience of three seconds.
    #[must_use]
    pub fn new() -> Self {
        Self {
            patience: Duration::from_secs(3),
            picture: Arc::default(),
            looking: Arc::default(),
            counting: Arc::default(),
        }
    }

    /// Sets how long a scrape waits for the database, and then again for slow samples. Samples that
    /// take longer continue after the scrape, and the next scrape returns them. Twice the patience
    /// must be less than Prometheus' `scrape_timeout`, which is ten seconds by default.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Returns all metrics in the text format 0.0.4. If the database does not answer, does not
    /// contain the schema, or refuses to show its state, `trunkline_up` is 0 and is the only
    /// metric. If a queue cannot be counted, its `trunkline_stats_failed` is 1 and its counts are
    /// missing. The reasons are logged as warnings.
    pub async fn exposition(&self, db: &Db) -> String {
        let refreshed = self.refreshed(db).await;
        let before = std::mem::replace(&mut self.picture().reported, refreshed.as_ref().err().cloned());
        match refreshed {
            Ok(picture) => exposed::all(&picture),
            Err(why) => {
                if before.as_ref() != Some(&why) {
                    warn!(why, "the metrics of the queues are not available");
                }
                exposed::down()
            }
        }
    }

    /// Takes the samples that are due, and returns all samples. Samples that take longer than the
    /// patience continue after this call returns. Fails with the reason if the queues cannot be
    /// listed, or if the latest samples could not be taken.
    pub(crate) async fn refreshed(&self, db: &Db) -> std::result::Result<Picture, String> {
        match self.list(db).await {
            Some(Ok(())) => {
                let picture = self.sampled(db).await;
                picture.problem.clone().map_or(Ok(picture), Err)
            }
            Some(Err(error)) => Err(error.to_string()),
            None => Err(SILENT.to_owned()),
        }
    }

    /// Lists the queues. Returns `None` if the server does not answer within the patience, or a
    /// session has locked their list.
    pub(crate) async fn list(&self, db: &Db) -> Option<Result<()>> {
        match timeout(self.patience, ask::queues(db)).await.ok()? {
            Err(error) if is_late(&error) => None,
            listed => Some(listed.map(|queues| self.picture().with(queues))),
        }
    }

    /// Drops the samples of a queue that was changed much, so that the next ones are taken at once.
    pub(crate) fn forget(&self, queue: &str) {
        self.picture().forget(queue);
    }

    /// Takes the samples of the listed queues that are due, and returns all samples.
    pub(crate) async fn sampled(&self, db: &Db) -> Picture {
        let looked = timeout(self.patience, tokio::spawn(self.clone().look(db.clone()))).await;
        let mut picture = self.picture().clone();
        picture.problem = match looked {
            Ok(Err(ended)) => Some(format!("this is a bug: {ended}")),
            _ => picture.problem.take().or_else(|| picture.uncounted.take()),
        };
        picture
    }

    /// Takes all samples that are due, and stores the reason if that fails. If another task is
    /// already taking them, waits for that task instead. Counts come last, and may take minutes:
    /// in the meantime, other tasks take the other samples.
    async fn look(self, db: Db) {
        if let Ok(_looking) = self.looking.try_lock() {
            // Keeps the old samples if the connection breaks.
            let taken = self.take_samples(&db).await;
            let is_broken = taken.is_err();
            self.picture().problem = taken.unwrap_or_else(Some);
            if is_broken {
                return;
            }
        } else {
            drop(self.looking.lock().await);
            if self.picture().problem.is_some() {
                return;
            }
        }
        let Ok(_counting) = self.counting.try_lock() else { return drop(self.counting.lock().await) };
        // Clears the last failure, because other samples are taken while this count runs.
        let before = self.picture().uncounted.take();
        let uncounted = self.count(&db).await.err();
        if let Some(why) = uncounted.as_ref().filter(|why| before.as_ref() != Some(*why)) {
            warn!(why, "the queues cannot be counted");
        }
        self.picture().uncounted = uncounted;
    }

    /// Takes all samples except the counts. Returns the reason if the server refused to show the
    /// figures of the database. Fails if the connection breaks.
    async fn take_samples(&self, db: &Db) -> std::result::Result<Option<String>, String> {
        let begun = Instant::now();
        let budget = self.picture().budget();
        let mut refused = None;
        if budget.is_due(self.picture().database.as_ref()) {
            let answer = match within(GIVEN_UP.0, ask::database(db)).await? {
                Err(error) if error.sqlstate().is_some() => {
                    refused = Some(error); // continues, because the queues may still be countable
                    None
                }
                answer => Some(answer.map_err(in_words)?),
            };
            self.picture().database = answer.map(|answer| Kept::now(answer, begun.elapsed()));
        }
        let begun = Instant::now();
        if budget.is_due(self.picture().stores.as_ref()) {
            let answer = match within(GIVEN_UP.1, ask::stores(db)).await? {
                Err(error) if error.sqlstate().is_some() => Vec::new(), // a session has locked a table in the meantime
                answer => answer.map_err(in_words)?,
            };
            self.picture().stores = Some(Kept::now(answer, begun.elapsed()));
        }
        let next = self.picture().next_alarms();
        for (queue, priorities) in next {
            let (begun, at, mut silent) = (Instant::now(), tokio::time::Instant::now(), None);
            let kept = match within(GIVEN_UP.0, ask::alarms(db, &queue, priorities)).await? {
                Ok((alarms, took)) => Kept::now(Some(alarms), took + BESIDES),
                Err(error) if is_gone(&error) => continue,
                Err(error) if error.sqlstate().is_some() => Kept::now(None, begun.elapsed()),
                // Not asked again at once, because the server may still be busy with the answer.
                Err(error) if error.is_silence() => {
                    silent = Some(error);
                    Kept::now(None, begun.elapsed())
                }
                Err(error) => return Err(in_words(error)),
            };
            let mut picture = self.picture();
            if picture.fits(&queue, at) {
                picture.alarms.insert(queue, kept);
            }
            drop(picture);
            silent.map_or(Ok(()), |error| Err(in_words(error)))?;
        }
        Ok(refused.map(in_words))
    }

    async fn count(&self, db: &Db) -> std::result::Result<(), String> {
        let next = self.picture().next();
        for queue in next {
            let (begun, at, mut silent) = (Instant::now(), tokio::time::Instant::now(), None);
            let kept = match within(GIVEN_UP.1, ask::counts(db, &queue)).await? {
                Ok(counts) => Kept::now(Some(counts), counts.took + BESIDES),
                Err(error) if is_gone(&error) => continue,
                Err(error) if error.sqlstate().is_some() => {
                    if self.picture().counts.get(&queue).is_none_or(|before| before.answer.is_some()) {
                        warn!(queue, why = reason(&error), "a queue cannot be counted");
                    }
                    Kept::now(None, begun.elapsed())
                }
                // Not counted again at once, because the server may still be counting.
                Err(error) if error.is_silence() => {
                    silent = Some(error);
                    Kept::now(None, begun.elapsed())
                }
                Err(error) => return Err(in_words(error)),
            };
            let mut picture = self.picture();
            if picture.fits(&queue, at) {
                picture.counts.insert(queue, kept);
            }
            drop(picture);
            silent.map_or(Ok(()), |error| Err(in_words(error)))?;
        }
        Ok(())
    }

    /// Locks the samples. No task awaits anything while it holds the lock.
    fn picture(&self) -> MutexGuard<'_, Picture> {
        self.picture.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the answer, or the reason if it does not arrive within the time limit.
async fn within<T>(limit: Duration, answer: impl Future<Output = T>) -> std::result::Result<T, String> {
    timeout(limit, answer).await.map_err(|_| SILENT.to_owned())
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes a value")]
fn in_words(error: Error) -> String {
    error.to_string()
}

/// Returns true if the queue was dropped after it was listed.
fn is_gone(error: &Error) -> bool {
    error.sqlstate().is_some_and(|state| state.code() == "42P01")
}
