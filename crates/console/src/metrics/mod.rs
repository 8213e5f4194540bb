//! The numbers of a database that holds queues, as Prometheus reads them.
//!
//! ```no_run
//! # async fn example(db: &trunkline::Db) {
//! use trunkline_console::metrics::{self, Metrics};
//!
//! let metrics = Metrics::new(); // one for all scrapes: it keeps what was counted
//! println!("content-type: {}\n\n{}", metrics::CONTENT_TYPE, metrics.exposition(db).await);
//! # }
//! ```
//!
//! A scrape is answered from samples that are kept. Each is taken again when a scrape asks and its
//! pause is over: pauses are so long that all looks of this process cost the server one per cent of
//! a core at most, in however many queues of whatever size. `trunkline_stats_age_seconds` says how
//! old they are.

mod text;
pub(crate) mod ask;
mod kept;
mod exposed;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::time::timeout;
use trunkline::{Db, Error, Result};

use self::kept::BESIDES;
pub(crate) use self::kept::{Kept, Picture};

/// The content type of an exposition.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of one database, and what they were.
#[derive(Debug, Clone)]
pub struct Metrics {
    patience: Duration,
    picture: Arc<Mutex<Picture>>,
    /// Held by the task that looks.
    looking: Arc<tokio::sync::Mutex<()>>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// With nothing known, and a patience of three seconds.
    #[must_use]
    pub fn new() -> Self {
        Self { patience: Duration::from_secs(3), picture: Arc::default(), looking: Arc::default() }
    }

    /// How long a scrape waits for the database, and again for looks that take long: these go on
    /// without it, and the next scrape has what they found. Twice this has to be less than the
    /// `scrape_timeout`, which is ten seconds unless you say otherwise.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// All metrics, in the text format 0.0.4. Where the database does not answer, or does not hold
    /// the schema, `trunkline_up` is 0 and there is nothing else. Where it cannot look at a queue,
    /// `trunkline_stats_failed` is 1, and its counts are missing.
    pub async fn exposition(&self, db: &Db) -> String {
        self.refreshed(db).await.map_or_else(|_| exposed::down(), |picture| exposed::all(&picture))
    }

    /// What is known, once those looks were made whose pause is over, or go on without this call;
    /// why there is nothing to be known.
    pub(crate) async fn refreshed(&self, db: &Db) -> std::result::Result<Picture, String> {
        match timeout(self.patience, ask::queues(db)).await {
            Ok(Ok(queues)) => self.picture().with(queues),
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err("the database does not answer".to_owned()),
        }
        let looked = tokio::spawn(self.clone().look(db.clone()));
        // A look whose connection breaks leaves what is known, which says how old it is.
        let _ = timeout(self.patience, looked).await;
        Ok(self.picture().clone())
    }

    /// Looks at all whose pause is over; if another task does that, waits for it instead.
    async fn look(self, db: Db) -> Result<()> {
        let Ok(_looking) = self.looking.try_lock() else {
            drop(self.looking.lock().await);
            return Ok(());
        };
        let begun = Instant::now();
        let budget = self.picture().budget();
        if budget.is_due(self.picture().database.as_ref()) {
            let answer = ask::database(&db).await?;
            self.picture().database = Some(Kept::now(answer, begun.elapsed()));
        }
        let begun = Instant::now();
        if budget.is_due(self.picture().stores.as_ref()) {
            let answer = match ask::stores(&db).await {
                Err(error) if error.sqlstate().is_some() => Vec::new(), // a session locked a table meanwhile
                answer => answer?,
            };
            self.picture().stores = Some(Kept::now(answer, begun.elapsed()));
        }
        let next = self.picture().next();
        for queue in next {
            let begun = Instant::now();
            let kept = match ask::counts(&db, &queue).await {
                Ok(counts) => Kept::now(Some(counts), counts.took + BESIDES),
                Err(error) if is_gone(&error) => continue,
                Err(error) if error.sqlstate().is_some() => Kept::now(None, begun.elapsed()),
                Err(error) => return Err(error),
            };
            self.picture().counts.insert(queue, kept);
        }
        Ok(())
    }

    /// The picture so far. No task waits while holding it.
    fn picture(&self) -> MutexGuard<'_, Picture> {
        self.picture.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Dropped between the list and the look.
fn is_gone(error: &Error) -> bool {
    error.sqlstate().is_some_and(|state| state.code() == "42P01")
}
