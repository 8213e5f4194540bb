//! Samples all queues for the pages, and stores the last hour. The metrics share the samples and
//! their cost limits.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};
use tracing::warn;
use trunkline::{Db, Description};

use super::{
    history,
    point::{self, Flow, Point},
    statement,
};
use crate::metrics::{
    Kept, Metrics, Picture as Samples, SILENT,
    ask::{Alarms, Counts},
};

/// The minimum interval between two updates of the pages' numbers.
const EVERY: Duration = Duration::from_secs(1);
/// The list of queues is read again after `SHARE` times the duration of the last reading. Each
/// reading also reads the queues' sequences, which takes half as long as the list.
const SHARE: u32 = 450;
/// The minimum interval between two readings of the workers' reports and the schedules.
const BESIDES: Duration = Duration::from_secs(5);
/// The interval between two points of the last hour.
const POINT: Duration = Duration::from_secs(60);
/// The time limit for each of a sample's statements, and for the first sample. Without it, a
/// session that locks the list of queues would stop the sampling unnoticed.
const ANSWER: Duration = Duration::from_secs(10);
/// The maximum time that an action waits for the numbers of the queue that it has changed.
const RENEWAL: Duration = Duration::from_secs(5);

/// A queue's latest numbers and its last hour.
#[derive(Debug, Clone)]
pub struct Known {
    pub description: Description,
    /// The latest counts. `None` before the first count, and if the role may not count.
    pub counts: Option<Counts>,
    /// The time at which the counts were taken.
    pub at: SystemTime,
    /// The latest alarms, which may be newer than the counts. `None` as for the counts.
    pub alarms: Option<Alarms>,
    /// The estimated numbers of messages per second that were enqueued and that left between the
    /// last two counts: see [`Flow`].
    pub flow: Flow,
    /// The failed messages per second, as the queue's workers report them.
    pub failing: Option<f64>,
    /// The number of the queue's schedules, and their next tick.
    pub schedules: (i64, Option<SystemTime>),
    /// The size of the queue's tables, in bytes.
    pub bytes: i64,
    /// The last hour, the oldest first.
    pub points: VecDeque<Point>,
    seen: Option<Seen>,
    /// The counts at the last point.
    pointed: Option<Seen>,
}

/// The latest counts, in the form that [`Flow`] needs.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    rows: i64,
    counts: Counts,
}

impl Known {
    fn new(description: Description) -> Self {
        let at = SystemTime::now();
        Self {
            description,
            counts: None,
            at,
            alarms: None,
            flow: Flow::default(),
            failing: None,
            schedules: (0, None),
            bytes: 0,
            points: VecDeque::new(),
            seen: None,
            pointed: None,
        }
    }

    /// Creates the numbers of a queue that a visitor opens before its first sample. There are no
    /// counts if they took too long.
    pub fn now(description: Description, counts: Option<Counts>) -> Self {
        Self { counts, alarms: counts.map(|counts| counts.alarms()), ..Self::new(description) }
    }

    /// Stores the latest counts. `rows` is the number of rows that the queue has ever had.
    fn learn(&mut self, kept: &Kept<Option<Counts>>, rows: Option<i64>) {
        self.counts = kept.answer;
        self.at = SystemTime::now() - kept.at.elapsed();
        let Some(counts) = kept.answer else { return };
        if let Some(rows) = rows
            && self.seen.is_none_or(|seen| seen.at < kept.at)
        {
            self.flow = self
                .seen
                .map_or_else(Flow::default, |seen| flow(&seen.counts, &counts, rows - seen.rows, kept.at - seen.at));
            self.seen = Some(Seen { at: kept.at, rows, counts });
        }
        if self.pointed.is_none_or(|pointed| kept.at.saturating_duration_since(pointed.at) >= POINT) {
            let now = Seen { at: kept.at, rows: rows.unwrap_or_default(), counts };
            let since = |pointed: Seen| flow(&pointed.counts, &counts, now.rows - pointed.rows, now.at - pointed.at);
            let flow = self.pointed.filter(|_| rows.is_some()).map(since);
            self.pointed = Some(now);
            let depth = counts.depth().unsigned_abs();
            point::push(&mut self.points, Point { at: kept.at, depth, oldest: counts.oldest_due, flow });
        }
    }
}

/// The numbers of all queues, or the reason why there are none.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    pub queues: BTreeMap<String, Known>,
    /// The reason why the last sample failed, if it did.
    pub problem: Option<String>,
    /// True if the last sample found no connection to the database, or if no sample has received
    /// an answer for [`ANSWER`].
    is_lost: bool,
    /// The time of the last answer.
    listed_at: Option<Instant>,
    besides: Arc<statement::Besides>,
    besides_at: Option<Instant>,
    /// The time at which this console last shared the last hour with other consoles.
    shared_at: Option<Instant>,
}

/// The latest numbers. Dropping this value ends the sampling.
#[derive(Debug)]
pub struct Pulse {
    pub picture: watch::Receiver<Arc<Gathered>>,
    /// Notified if the next sample is to be taken at once.
    wake: Arc<Notify>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Pulse {
    /// Starts sampling. The first numbers are available when this function returns, unless the
    /// database does not answer for [`ANSWER`].
    pub async fn begin(db: Db, metrics: Metrics) -> Self {
        let mut picture = Gathered::default();
        let mut pause = timeout(ANSWER, look(&db, &metrics, &mut picture)).await.unwrap_or_else(|_| {
            (picture.problem, picture.is_lost) = (Some(SILENT.to_owned()), true);
            EVERY
        });
        let (tell, told) = watch::channel(Arc::new(picture.clone()));
        let wake = Arc::new(Notify::new());
        let woken = Arc::clone(&wake);
        let task = tokio::spawn(async move {
            loop {
                let _ = timeout(pause, woken.notified()).await;
                pause = look(&db, &metrics, &mut picture).await;
                if tell.send(Arc::new(picture.clone())).is_err() {
                    return;
                }
            }
        });
        Self { picture: told, wake, task }
    }

    /// Samples at once, and waits briefly for numbers of this queue that are newer than the call.
    pub async fn renew(&self, queue: &str) {
        let (now, mut picture) = (SystemTime::now(), self.picture.clone());
        self.wake.notify_one();
        let is_new = |picture: &Arc<Gathered>| picture.queues.get(queue).is_some_and(|known| known.at >= now);
        let _ = timeout(RENEWAL, picture.wait_for(is_new)).await;
    }

    /// Returns true if the database could not be reached or did not answer at the last sample.
    pub fn is_lost(&self) -> bool {
        self.picture.borrow().is_lost
    }

    /// Returns the reason why the numbers are not updated, for example a panic of the sampling
    /// task. Returns `None` if they are updated.
    pub fn problem(&self) -> Option<String> {
        match self.task.is_finished() {
            true => Some("the console had an internal error: restart it".to_owned()),
            false => self.picture.borrow().problem.clone(),
        }
    }
}

/// Samples once, and returns how long to wait before the next sample. If the sample fails, the old
/// numbers stay.
async fn look(db: &Db, metrics: &Metrics, picture: &mut Gathered) -> Duration {
    // Asks for this list first, because it waits for no lock. If the list of queues is locked, the
    // next statement would occupy a shared connection.
    let named = metrics.list(db).await;
    let begun = std::time::Instant::now(); // a cost, unlike an age, is real time in every test
    let listed = match named {
        // If both lists fail, this keeps the second error, which contains advice.
        Some(named) => {
            timeout(ANSWER, db.list_queues()).await.ok().map(|listed| listed.and_then(|all| named.and(Ok(all))))
        }
        None => None,
    };
    let pause = (begun.elapsed() * SHARE).clamp(EVERY, 10 * EVERY);
    if listed.as_ref().is_some_and(Result::is_ok) {
        picture.listed_at = Some(Instant::now());
    }
    picture.is_lost = match &listed {
        Some(listed) => listed.as_ref().is_err_and(trunkline::Error::is_closed),
        None => picture.listed_at.is_none_or(|at| at.elapsed() >= ANSWER),
    };
    if listed.is_some() && !picture.is_lost && picture.besides_at.is_none_or(|at| at.elapsed() >= BESIDES) {
        // Ignores an error: the statement below then also fails, and its error is reported. A
        // locked table costs only these numbers.
        let besides = timeout(ANSWER, statement::besides(db)).await;
        picture.besides = Arc::new(besides.ok().and_then(Result::ok).unwrap_or_default());
        picture.besides_at = Some(Instant::now());
    }
    let looked = match listed {
        Some(Ok(descriptions)) => Ok((descriptions, metrics.sampled(db).await)),
        Some(Err(error)) => Err(error.to_string()),
        None => Err(SILENT.to_owned()),
    };
    let problem = match looked {
        Ok((descriptions, samples)) => {
            picture.queues = drawn(std::mem::take(&mut picture.queues), descriptions, &samples);
            for (name, known) in &mut picture.queues {
                known.failing = picture.besides.failing.get(name).copied();
                known.schedules = picture.besides.schedules.get(name).copied().unwrap_or_default();
            }
            if picture.besides.may_keep_history && picture.shared_at.is_none_or(|at| at.elapsed() >= POINT) {
                picture.shared_at = Some(Instant::now());
                // If sharing fails, this console continues with its own points.
                let _ = timeout(ANSWER, shared(db, &mut picture.queues)).await;
            }
            samples.problem
        }
        Err(why) => Some(why),
    };
    if let Some(why) = problem.as_ref().filter(|why| picture.problem.as_ref() != Some(*why)) {
        warn!(why, "the numbers of the queues are not being updated");
    }
    picture.problem = problem;
    pause
}

/// Writes the latest point of each queue for all consoles, and reads the last hour that all
/// consoles have written.
async fn shared(db: &Db, queues: &mut BTreeMap<String, Known>) -> trunkline::Result<()> {
    // Omits older points, which would be stored as this minute's.
    let fresh = |point: &&Point| point.at.elapsed() < POINT;
    let last = queues.iter().filter_map(|(name, known)| Some((name.as_str(), known.points.back().filter(fresh)?)));
    let hour = history::share(db, last.collect()).await?;
    for known in queues.values_mut() {
        known.points.clear();
    }
    for (queue, point) in hour {
        if let Some(known) = queues.get_mut(&queue) {
            point::push(&mut known.points, point);
        }
    }
    Ok(())
}

fn drawn(
    mut before: BTreeMap<String, Known>,
    descriptions: Vec<Description>,
    samples: &Samples,
) -> BTreeMap<String, Known> {
    let rows: BTreeMap<&str, Option<i64>> =
        samples.queues.iter().map(|(name, _, rows, _)| (name.as_str(), *rows)).collect();
    let mut bytes: BTreeMap<&str, i64> = BTreeMap::new();
    for (name, _, heap, toast, indexes, _) in samples.stores.iter().flat_map(|kept| &kept.answer) {
        *bytes.entry(name).or_default() += heap + toast + indexes;
    }
    let known = descriptions.into_iter().map(|description| {
        let name = description.name.clone();
        let mut known = match before.remove(&name) {
            Some(known) => Known { description, ..known },
            None => Known::new(description),
        };
        known.bytes = bytes.get(name.as_str()).copied().unwrap_or_default();
        known.alarms = samples.alarms_of(&name);
        if let Some(kept) = samples.counts.get(&name) {
            known.learn(kept, rows.get(name.as_str()).copied().flatten());
        }
        (name, known)
    });
    known.collect()
}

fn flow(before: &Counts, now: &Counts, rows: i64, time: Duration) -> Flow {
    let seconds = time.as_secs_f64().max(0.001);
    let dead = |counts: &Counts| counts.messages[4];
    let more = (now.depth() - before.depth()) as f64;
    let died = (dead(now) - dead(before)).max(0) as f64;
    let each = [now, before]
        .into_iter()
        .find(|counts| counts.rows > 0)
        .map_or(1.0, |counts| counts.depth() as f64 / counts.rows as f64);
    let came = (rows.max(0) as f64 * each).max(more + died);
    Flow { came: came / seconds, went: (came - more).max(0.0) / seconds, died: died / seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(due: i64, rows: i64, dead: i64) -> Counts {
        let messages = [due, 0, 0, 0, dead, 0];
        Counts { messages, rows, oldest_due: 0.0, floor_lag: None, took: Duration::ZERO }
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
