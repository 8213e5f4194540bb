//! The pulse: the numbers of all queues, taken again and again at a bounded cost, and what they were in the last hour.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use tokio::sync::watch;
use trunkline::{Db, Description, Error, Result};

use super::statement::{self, Counts, Store};

/// A queue is looked at this often at most.
const EVERY: Duration = Duration::from_secs(1);
/// A pause is so many times as long as the look was: those that are quick may take half a percent of the time, and so may those that are slow.
const SHARE: u32 = 200;
/// From here on a look is slow: it is made by itself, and the others do not wait for it.
const SLOW: Duration = Duration::from_millis(10);
/// A point of the line of the last hour.
const POINT: Duration = Duration::from_secs(20);
/// Points that are kept: an hour.
const POINTS: usize = 180;

/// What is known of a queue.
#[derive(Debug, Clone)]
pub struct Known {
    /// Its settings.
    pub description: Description,
    /// The last counts.
    pub counts: Counts,
    /// When they were taken.
    pub at: SystemTime,
    /// Messages that came and went a second, since the look before: estimates, see [`Flow`].
    pub flow: Flow,
    /// The size of the queue's tables, in bytes.
    pub bytes: i64,
    /// Messages that waited or were leased in the last hour, the oldest first.
    pub depths: VecDeque<u64>,
    seen: Seen,
}

impl Known {
    /// Of a queue that was not looked at before.
    pub fn now(description: Description, counts: Counts) -> Self {
        known(None, description, counts, 0, 0, Duration::ZERO)
    }
}

/// Messages a second. What came is told by the sequence of rows and by how many messages a row has, so that it is an estimate where the rows are of many
/// sizes; what went is what came less what is more now.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Flow {
    /// Enqueued.
    pub came: f64,
    /// Acknowledged, archived, cancelled or dead.
    pub went: f64,
    /// Dead letters more than before.
    pub died: f64,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    rows: i64,
    pointed: Instant,
    took: Duration,
}

/// All queues, or why there is nothing to be known.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    /// By name.
    pub queues: BTreeMap<String, Known>,
    /// Why the last look failed.
    pub problem: Option<String>,
}

/// The last picture. Dropping it ends the looking.
#[derive(Debug)]
pub struct Pulse {
    pub picture: watch::Receiver<Arc<Picture>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Pulse {
    /// Looks from now on. The first picture is there when this returns.
    pub async fn begin(db: Db) -> Self {
        let mut picture = Picture::default();
        let spent = look(&db, &mut picture).await;
        let (tell, told) = watch::channel(Arc::new(picture.clone()));
        let task = tokio::spawn(async move {
            let mut spent = spent;
            loop {
                tokio::time::sleep((spent * SHARE).max(EVERY)).await;
                spent = look(&db, &mut picture).await;
                if tell.send(Arc::new(picture.clone())).is_err() {
                    return;
                }
            }
        });
        Self { picture: told, task }
    }
}

/// Looks at the queues whose turn it is, and says how long the quick ones took. What is known stays where a look fails.
async fn look(db: &Db, picture: &mut Picture) -> Duration {
    let begun = Instant::now();
    match look_at_all(db, picture).await {
        Ok(slow) => {
            picture.problem = None;
            begun.elapsed().saturating_sub(slow)
        }
        Err(error) => {
            picture.problem = Some(error.to_string());
            begun.elapsed().min(SLOW)
        }
    }
}

/// Says how long the slow ones took.
async fn look_at_all(db: &Db, picture: &mut Picture) -> Result<Duration> {
    let descriptions = db.list_queues().await?;
    let mut stores: BTreeMap<String, Store> =
        statement::stores(db).await?.into_iter().map(|of| (of.0.clone(), of)).collect();
    picture.queues.retain(|name, _| descriptions.iter().any(|is| is.name == *name));
    let slow = picture.queues.values().filter(|known| known.seen.took >= SLOW).count() as u32;
    let mut spent = Duration::ZERO;
    for description in descriptions {
        if let Some(known) = picture.queues.get_mut(&description.name) {
            known.description = description.clone();
            if known.seen.took >= SLOW && known.seen.at.elapsed() < known.seen.took * SHARE * slow {
                continue;
            }
        }
        let begun = Instant::now();
        let name = description.name.clone();
        let counts = match statement::counts(db, &name).await {
            Ok(counts) => counts,
            Err(error) if is_gone(&error) => continue,
            Err(error) => return Err(error),
        };
        let took = begun.elapsed();
        spent += if took >= SLOW { took } else { Duration::ZERO };
        let (_, bytes, rows) = stores.remove(&name).unwrap_or_default();
        let before = picture.queues.remove(&name);
        picture.queues.insert(name, known(before, description, counts, bytes, rows, took));
    }
    Ok(spent)
}

/// Dropped between the list and the look.
fn is_gone(error: &Error) -> bool {
    error.sqlstate().is_some_and(|state| state.code() == "42P01")
}

fn known(
    before: Option<Known>,
    description: Description,
    counts: Counts,
    bytes: i64,
    rows: i64,
    took: Duration,
) -> Known {
    let (now, at) = (Instant::now(), SystemTime::now());
    let Some(before) = before else {
        let (depths, seen) = (VecDeque::from([depth(&counts)]), Seen { at: now, rows, pointed: now, took });
        return Known { description, counts, at, flow: Flow::default(), bytes, depths, seen };
    };
    let flow = flow(&before.counts, &counts, rows - before.seen.rows, now - before.seen.at);
    let (mut depths, mut pointed) = (before.depths, before.seen.pointed);
    if now - pointed >= POINT {
        depths.push_back(depth(&counts));
        pointed = now;
    }
    while depths.len() > POINTS {
        depths.pop_front();
    }
    Known { description, counts, at, flow, bytes, depths, seen: Seen { at: now, rows, pointed, took } }
}

/// What is in the queue, not what is dead.
pub fn depth(counts: &Counts) -> u64 {
    counts.due + counts.delayed + counts.leased + counts.to_retry
}

fn flow(before: &Counts, now: &Counts, rows: i64, time: Duration) -> Flow {
    let seconds = time.as_secs_f64().max(0.001);
    let of = |counts: &Counts| depth(counts) as f64;
    let more = of(now) - of(before);
    let died = (now.dead as f64 - before.dead as f64).max(0.0);
    let each =
        [now, before].iter().find(|counts| counts.rows > 0).map_or(1.0, |counts| of(counts) / counts.rows as f64);
    let came = (rows.max(0) as f64 * each).max(more + died);
    Flow { came: came / seconds, went: (came - more).max(0.0) / seconds, died: died / seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(due: u64, rows: u64, dead: u64) -> Counts {
        Counts { due, dead, rows, ..Counts::default() }
    }

    #[test]
    fn what_came_and_went_adds_up_to_what_is_more() {
        let second = Duration::from_secs(1);
        let flow_of = |before, now, rows| flow(&before, &now, rows, second);
        assert_eq!(flow_of(counts(0, 0, 0), counts(100, 1, 0), 1), Flow { came: 100.0, went: 0.0, died: 0.0 });
        assert_eq!(flow_of(counts(100, 1, 0), counts(0, 0, 0), 0), Flow { came: 0.0, went: 100.0, died: 0.0 });
        assert_eq!(flow_of(counts(100, 10, 0), counts(100, 10, 0), 5), Flow { came: 50.0, went: 50.0, died: 0.0 });
        let died = flow_of(counts(10, 10, 0), counts(8, 8, 2), 0);
        assert_eq!((died.came, died.went, died.died), (0.0, 2.0, 2.0));
    }

    #[test]
    fn rows_that_were_counted_backwards_are_none() {
        assert_eq!(flow(&counts(1, 1, 5), &counts(1, 1, 0), -7, Duration::from_secs(2)), Flow::default());
    }
}
