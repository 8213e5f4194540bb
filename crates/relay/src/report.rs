//! The row of `trunkline.relay` that describes a relay out of a queue. The console lists these
//! rows.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tracing::warn;
use trunkline::{Queue, postgres::Statement};

use crate::{payload::Raw, progress::Progress, sql};

/// The interval between two reports.
const EACH: Duration = Duration::from_secs(10);
/// The time limit for deleting the relay's row when the relay ends.
const LAST_WORDS: Duration = Duration::from_secs(2);

type Row<'a> = (&'a str, &'a str, &'a str, i64, i64, i64, i64, Option<String>);

pub(crate) struct Report {
    queue: Queue<Raw>,
    name: String,
    broker: String,
    progress: Arc<Progress>,
    told: Statement<Row<'static>, u64>,
    forget: Statement<(&'static str, &'static str), u64>,
    forgotten: Statement<(), (i64,)>,
}

/// The number of unsettled messages in the queue, and the time of the next count.
#[derive(Default)]
struct Counted {
    lag: i64,
    again_at: Option<Instant>,
}

impl Report {
    pub fn new(queue: &Queue<Raw>, broker: &str, progress: Arc<Progress>) -> Self {
        let db = queue.db();
        Self {
            name: format!(
                "{} to {broker} {:08x}",
                queue.description().name,
                std::process::id() ^ crate::chance() as u32
            ),
            broker: broker.to_owned(),
            progress,
            told: sql::of(db, include_str!("../sql/report.sql")),
            forget: sql::of(db, include_str!("../sql/forget.sql")),
            forgotten: sql::of(db, include_str!("../sql/forgotten.sql")),
            queue: queue.clone(),
        }
    }

    /// Returns the number of unsettled messages. Counting a large queue takes a long time, so the
    /// pause grows with the time that the last count took.
    async fn count(&self, counted: &mut Counted) -> trunkline::Result<i64> {
        let began = Instant::now();
        if counted.again_at.is_none_or(|at| at <= began) {
            let stats = self.queue.stats().await?;
            counted.lag = i64::try_from(stats.due + stats.leased + stats.to_retry).unwrap_or(i64::MAX);
            counted.again_at = Some(began + began.elapsed() * 100);
        }
        Ok(counted.lag)
    }

    /// Reports at intervals until dropped. If a report fails, the next one tries again.
    pub async fn run(&self) -> std::convert::Infallible {
        let mut ticks = interval(EACH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut known, mut counted) = (None, Counted::default());
        loop {
            ticks.tick().await;
            let failed = self.progress.last_error();
            let news = failed.clone().filter(|_| failed != known).map(|(_, why)| why);
            match self.tell(news, &mut counted).await {
                Ok(()) => known = failed,
                Err(error) => warn!(relay = self.name, %error, "cannot report the progress of the relay"),
            }
        }
    }

    async fn tell(&self, error: Option<String>, counted: &mut Counted) -> trunkline::Result<()> {
        let lag = self.count(counted).await?;
        let (progress, count) = (&self.progress, |count: u64| i64::try_from(count).unwrap_or(i64::MAX));
        let statement: Statement<Row<'_>, u64> = Statement::of(self.told.text().to_owned());
        let row = (
            &*self.name,
            &*self.queue.description().name,
            &*self.broker,
            count(progress.confirmed()),
            count(progress.refused()),
            count(progress.held()),
            lag,
            error,
        );
        self.queue.db().run(&statement, row).await?;
        Ok(())
    }

    /// Deletes the row when the relay ends cleanly.
    pub async fn end(&self) {
        let statement: Statement<(&str, &str), u64> = Statement::of(self.forget.text().to_owned());
        let end = async {
            let db = self.queue.db();
            db.run(&statement, (&*self.name, &*self.queue.description().name)).await?;
            db.run(&self.forgotten, ()).await.map(drop)
        };
        let _ = timeout(LAST_WORDS, end).await; // another relay deletes the row a day later
    }
}
