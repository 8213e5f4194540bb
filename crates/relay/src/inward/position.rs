//! The stored position of a relay: how a relay claims it, reports as its holder, and releases it.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use trunkline::postgres::Statement;

use super::{HOLD, LAST_WORDS, Running, State};
use crate::{
    error::{Error, Result},
    source::Source,
    sql,
};

/// The interval between two claims of a waiting relay.
const ASK: Duration = Duration::from_secs(1);

impl Running {
    /// Creates the relay's row if it is missing, and fails if the row belongs to another relay.
    pub(super) async fn found(&mut self) -> Result<()> {
        let queue = self.queue.description().name.clone();
        let insert: Statement<(&str, &str, &str), u64> = sql::of(&self.db, include_str!("../../sql/found.sql"));
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
            Error::stopped(format!(
                "the position of relay {:?} is gone from {}.relay: its queue was dropped, or the row was deleted; a relay that is started now reads {} from its beginning",
                self.name,
                self.db.schema_name(),
                self.broker
            ))
        })
    }

    /// Claims the position, or pauses while another relay holds it.
    pub(super) async fn ask(&mut self, source: &mut dyn Source, stop: &CancellationToken) -> Result<()> {
        source.idle();
        let of = (self.name.clone(), self.queue.description().name.clone(), self.broker.clone(), self.holder, HOLD);
        // A shutdown does not wait: the position may be locked, or the database away.
        let Some(claimed) = stop.run_until_cancelled(self.db.run(&self.claim, of)).await else { return Ok(()) };
        if let Some((position,)) = claimed? {
            info!(relay = self.name, position, "the relay has claimed its position");
            self.state = State::Holds(position);
            self.word = Instant::now();
        } else {
            self.owner().await?;
            let _ = stop.run_until_cancelled(sleep(ASK)).await; // a shutdown ends the pause early
        }
        Ok(())
    }

    /// Extends the hold on the position, and reports the relay's state. Failures are ignored,
    /// because the next report tries again.
    pub(super) async fn say(&mut self, error: Option<String>) {
        type Keep = Statement<(String, i64, f64, Option<i64>, Option<String>, String), u64>;
        let keep: Keep = sql::of(&self.db, include_str!("../../sql/keep.sql"));
        let queue = self.queue.description().name.clone();
        match self.db.run(&keep, (self.name.clone(), self.holder, HOLD, self.lag, error, queue)).await {
            Ok(0) => self.state = State::Waits,
            Ok(_) => self.word = Instant::now(),
            Err(error) => warn!(relay = self.name, %error, "cannot report to the database"),
        }
    }

    pub(super) async fn let_go(&mut self) {
        let let_go: Statement<(&str, i64, &str), u64> = sql::of(&self.db, include_str!("../../sql/let_go.sql"));
        let said = self.db.run(&let_go, (&*self.name, self.holder, &*self.queue.description().name));
        let _ = timeout(LAST_WORDS, said).await; // if this fails, the hold simply expires
    }
}
