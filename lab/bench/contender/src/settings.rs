use std::{str::FromStr, time::Duration};

use crate::Failure;

/// The settings that the runner passes to a contender in environment variables.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The connection string of the fresh database.
    pub url: String,
    /// The case to measure: `send`, `drain`, `cycle`, or a single step.
    pub case: String,
    /// The size of a payload in bytes.
    pub payload: usize,
    /// The number of messages per call.
    pub batch: usize,
    /// The number of messages per fetch of a consumer; 0 means `batch`.
    pub dequeue_batch: usize,
    /// The number of threads of the runtime; 0 means one per processor.
    pub threads: usize,
    /// The number of concurrent callers.
    pub producers: usize,
    /// The number of concurrent consumers; 0 means the contender's own best documented setting.
    pub consumers: usize,
    /// The rate of all callers together, in messages per second. `None` means as fast as possible.
    pub rate: Option<f64>,
    /// The number of messages in the queue before the clock starts.
    pub backlog: usize,
    /// The number of messages after which the callers of a step stop; 0 means that they stop when
    /// the time is over.
    pub messages: usize,
    /// The number of keys; 0 means messages without keys. Each caller cycles through its own keys,
    /// so that the order of each key is known.
    pub keys: usize,
    /// The messages whose latencies count.
    pub timed: Timed,
    /// The number of rows that are deleted before the clock starts, while another session holds a
    /// snapshot.
    pub dead: u64,
    /// The number of parts into which the measured time is divided. Each part has its own latency
    /// histogram.
    pub windows: u32,
    /// The duration of the measurement.
    pub time: Duration,
    /// The way in which consumers find messages.
    pub wait: Wait,
}

/// The messages whose latencies count. A backlog of one key delays only the keys that share its
/// partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timed {
    /// All messages.
    All,
    /// Messages whose keys share a partition with the backlog's key.
    ItsLane,
    /// Messages whose keys are in another partition.
    OtherLanes,
}

impl FromStr for Timed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "its-lane" => Ok(Self::ItsLane),
            "other-lanes" => Ok(Self::OtherLanes),
            _ => Err("all, its-lane or other-lanes are known".to_owned()),
        }
    }
}

/// The way in which consumers find messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The contender's own choice.
    Best,
    /// The consumers poll.
    Poll,
    /// The consumers are notified.
    Notify,
}

impl Settings {
    pub(crate) fn from_environment() -> Result<Self, Failure> {
        let (keys, producers) = (told_or("BENCH_KEYS", 0)?, told::<usize>("BENCH_PRODUCERS")?.max(1));
        if keys > 0 && keys < producers {
            return Err(format!("{producers} callers have {keys} keys, and each needs one of its own").into());
        }
        Ok(Self {
            url: told("BENCH_URL")?,
            case: told("BENCH_CASE")?,
            payload: told("BENCH_PAYLOAD")?,
            batch: told::<usize>("BENCH_BATCH")?.max(1),
            dequeue_batch: told_or("BENCH_DEQUEUE_BATCH", 0)?,
            threads: told_or("BENCH_THREADS", 0)?,
            producers,
            consumers: told("BENCH_CONSUMERS")?,
            rate: match told::<String>("BENCH_RATE")?.as_str() {
                "max" => None,
                rate => Some(rate.parse()?),
            },
            backlog: told("BENCH_BACKLOG")?,
            messages: told_or("BENCH_MESSAGES", 0)?,
            keys,
            timed: told_or("BENCH_TIMED", Timed::All)?,
            dead: told_or("BENCH_DEAD", 0)?,
            windows: told_or("BENCH_WINDOWS", 1)?.max(1),
            time: Duration::try_from_secs_f64(told("BENCH_SECONDS")?)?,
            wait: match told::<String>("BENCH_WAIT")?.as_str() {
                "poll" => Wait::Poll,
                "notify" => Wait::Notify,
                _ => Wait::Best,
            },
        })
    }

    /// Returns the number of messages per fetch of a consumer, for a contender that may not choose
    /// this number.
    #[must_use]
    pub fn fetched(&self) -> usize {
        if self.dequeue_batch == 0 { self.batch } else { self.dequeue_batch }
    }

    /// Returns the number of consumers, which is `best` if the contender may choose.
    #[must_use]
    pub fn consumers_or(&self, best: usize) -> usize {
        if self.consumers == 0 { best } else { self.consumers }
    }
}

/// Reads a variable that older runners do not set.
pub(crate) fn told_or<T: FromStr>(name: &str, otherwise: T) -> Result<T, Failure>
where
    T::Err: std::fmt::Display,
{
    if std::env::var_os(name).is_none() { Ok(otherwise) } else { told(name) }
}

fn told<T: FromStr>(name: &str) -> Result<T, Failure>
where
    T::Err: std::fmt::Display,
{
    let text = std::env::var(name).map_err(|_| format!("{name} is not set; lab/peers/README.md says what it is"))?;
    text.parse().map_err(|wrong| format!("{name} is {text:?}: {wrong}").into())
}
