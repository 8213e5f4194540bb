//! One shard: its name, its database, and its health.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{sync::Notify, time::timeout};
use tracing::{debug, info, warn};

use crate::{
    error::{Error, Result},
    postgres::{
        db::{Class, Db},
        sql::Sql,
        wire::only,
    },
    queue::{
        handle::Queue as ShardQueue,
        message::payload::Payload,
        observe::metric::{ShardMetrics, ShardName},
    },
    shards::{
        health::{Fitness, Health},
        id::Id,
    },
};

/// The pause between tries to reach a shard that is down.
pub(super) const PAUSE: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_millis(10);
/// The time for which a read waits for a shard that is known to be down, because it may be up
/// again.
const GRACE: Duration = Duration::from_secs(1);

pub(crate) struct Shard {
    pub id: Id,
    pub db: Db,
    pub(super) health: Health,
    metrics: ShardMetrics,
    /// Notified when a shard may be usable again.
    changed: Arc<Notify>,
    /// True if a task is trying to reach the shard.
    is_tried: AtomicBool,
}

impl Shard {
    /// Returns the shard of a database.
    pub(super) async fn of(db: Db, changed: Arc<Notify>) -> Result<Arc<Self>> {
        db.check_schema("describe").await?;
        let (id, drains) = row_of(&db, Class::Main).await?;
        db.identify(statement(&db), id.0.cast_signed());
        db.attached::<ShardName>().set(id.to_string());
        let health = Health::default();
        health.drains(drains);
        Ok(Arc::new(Self {
            id,
            db,
            health,
            metrics: ShardMetrics::default(),
            changed,
            is_tried: AtomicBool::new(false),
        }))
    }

    pub(super) async fn open<T: Payload>(&self, queue: &str) -> Result<ShardQueue<T>> {
        let opened = self.db.queue(queue).await?;
        self.metrics.add(queue, &self.id.to_string());
        Ok(opened)
    }

    /// Returns the shard's fitness. If the shard is down, starts a task that tries to reach it,
    /// unless one is running. An earlier task may have ended with its runtime. If a check is due,
    /// starts a task that reads whether the shard is draining.
    pub(super) fn fitness(self: &Arc<Self>, now: Instant) -> Fitness {
        let fitness = self.health.fitness(now);
        if fitness == Fitness::Down {
            self.try_after(SOON);
        } else if self.health.claim_ask(now) {
            let shard = self.clone();
            tokio::spawn(async move { shard.ask().await });
        }
        fitness
    }

    /// Marks the shard as down. From then on a task tries to reach it, and no caller waits for it.
    pub(super) fn lost(self: &Arc<Self>, error: &Error) {
        if self.health.lost(reason(error)) {
            self.metrics.away(true);
            warn!(shard = %self.id, place = self.db.address(), %error, "shard is down; messages are enqueued on the other shards");
        }
        // Tries again soon if only one connection was lost, because the server may be up.
        self.try_after(if error.is_closed() { SOON } else { PAUSE });
    }

    pub(super) fn is_down(self: &Arc<Self>) -> bool {
        let is_down = self.health.is_down();
        if is_down {
            self.try_after(SOON);
        }
        is_down
    }

    /// Returns true if the server could not be reached. A shard that only refuses enqueues, for
    /// example because its disk is full, may still answer reads and dequeues.
    pub(super) fn is_unreachable(self: &Arc<Self>) -> bool {
        self.is_down() && self.why_unreachable().is_some()
    }

    /// Reads from the shard. If the shard is known to be unreachable, it has only [`GRACE`] to
    /// answer; after that, returns the error that marked it as down.
    pub(super) async fn read<R>(self: &Arc<Self>, reading: impl Future<Output = Result<R>>) -> Result<R> {
        let known = if self.is_down() { self.why_unreachable() } else { None };
        let outcome = match known {
            Some(error) => timeout(GRACE, reading).await.unwrap_or(Err(error)),
            None => reading.await,
        };
        if let Err(error) = &outcome
            && error.is_closed()
        {
            self.lost(error);
        }
        outcome
    }

    pub(super) fn why_away(&self) -> Option<Error> {
        self.health.error()
    }

    /// Returns the error of a shard that could not be reached.
    pub(super) fn why_unreachable(&self) -> Option<Error> {
        self.why_away().filter(Error::is_closed)
    }

    fn try_after(self: &Arc<Self>, pause: Duration) {
        if !self.is_tried.swap(true, Ordering::AcqRel) {
            tokio::spawn(try_until_back(Trial(Arc::downgrade(self)), pause));
        }
    }

    /// Reads on a connection for enqueues whether the shard is draining. Fails if the address leads
    /// to another shard, as a pooler's may without a new connection.
    async fn is_draining(&self) -> Result<bool> {
        let (found, drains) = row_of(&self.db, Class::Store).await?;
        match found == self.id {
            true => Ok(drains),
            false => Err(self.db.another_database(self.id.0.cast_signed(), found.0.cast_signed())),
        }
    }

    /// Updates whether the shard is draining.
    pub(super) async fn ask(self: &Arc<Self>) {
        match self.is_draining().await {
            Ok(drains) => self.health.drains(drains),
            Err(error) if error.is_closed() => self.lost(&error),
            // The error is only logged, because the next enqueue reports a missing right.
            Err(error) => debug!(shard = %self.id, %error, "cannot read whether the shard is draining"),
        }
    }

    /// Resets the metrics of a shard that leaves. No task will reset them when its server is back.
    pub(super) fn no_longer_counts(&self) {
        self.metrics.away(false);
    }

    /// Counts an enqueue that had to use another shard.
    pub(super) fn went_elsewhere(&self, queue: &str) {
        self.metrics.elsewhere(queue);
    }

    /// Sets whether the shard is draining, for all processes.
    pub(super) async fn set_drains(&self, drains: bool) -> Result<()> {
        let sql = self.db.statement("set_drains", include_str!("../../sql/statements/set_drains.sql"));
        self.db.query(Class::Main, &sql, &[&drains]).await?;
        self.health.drains(drains);
        Ok(())
    }
}

/// Converts the error of the call that found a shard down to the error that later calls return.
/// Later calls have had no effect.
fn reason(error: &Error) -> Error {
    let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    error.clone().without_effect(cause)
}

/// Returns the statement that reads the shard's own row.
fn statement(db: &Db) -> Sql {
    db.statement("shard", include_str!("../../sql/statements/shard.sql"))
}

/// Returns the shard's name, and whether the shard is draining.
async fn row_of(db: &Db, class: Class) -> Result<(Id, bool)> {
    let rows = db.query_again(class, &statement(db), &[]).await?;
    let row = only(&rows)?;
    Ok((Id(row.read::<i32>(0)?.cast_unsigned()), row.read(1)?))
}

/// A task that tries to reach the shard. If it ends early, the next caller starts another one.
struct Trial(Weak<Shard>);

impl Drop for Trial {
    fn drop(&mut self) {
        if let Some(shard) = self.0.upgrade() {
            shard.is_tried.store(false, Ordering::Release);
        }
    }
}

async fn try_until_back(trial: Trial, mut pause: Duration) {
    let (since, mut was_closed) = (Instant::now(), false);
    loop {
        tokio::time::sleep(std::mem::replace(&mut pause, PAUSE)).await;
        let Some(shard) = trial.0.upgrade() else { return };
        match shard.is_draining().await {
            Err(error) if error.is_closed() => {
                was_closed = true;
                debug!(shard = %shard.id, %error, "shard is still down");
                shard.health.lost(reason(&error));
            }
            // Marks the server as up, because it answered.
            answer => {
                if let Ok(drains) = answer {
                    shard.health.drains(drains);
                }
                // From here on, a caller that finds the shard down again starts another task.
                drop(trial);
                shard.health.back();
                shard.metrics.away(false);
                // A server that answers may still refuse enqueues, again and again.
                if was_closed {
                    info!(shard = %shard.id, after = ?since.elapsed(), "shard is up again");
                }
                return shard.changed.notify_waiters();
            }
        }
    }
}
