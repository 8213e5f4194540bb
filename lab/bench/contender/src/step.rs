use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use crate::{
    Contender, Failure, Settings, Tally, callers::Callers, measure::Measure, payload::random, payloads, say,
    tally::histogram,
};

/// One kind of call, which each caller repeats as soon as the previous call is answered.
#[derive(Clone, Copy)]
enum Step {
    Send,
    Read,
    /// A read that begins before the messages are sent, and waits for at most this time.
    ReadWithPoll(Duration),
    Delete,
    Archive,
    Pop,
    FullCycle,
}

impl Step {
    fn parse(case: &str) -> Result<Self, Failure> {
        // `delete-batch-100` is a delete; the settings contain its number of messages.
        Ok(match case.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-') {
            "send-single" | "send-batch" | "send-payload" => Self::Send,
            "read-single" | "read-batch" => Self::Read,
            "read-with-poll-1s" => Self::ReadWithPoll(Duration::from_secs(1)),
            "read-with-poll-5s" => Self::ReadWithPoll(Duration::from_secs(5)),
            "delete-single" | "delete-batch" => Self::Delete,
            "archive-single" | "archive-batch" => Self::Archive,
            "pop-single" | "pop-batch" => Self::Pop,
            "full-cycle" => Self::FullCycle,
            _ => return Err(format!("BENCH_CASE is {case:?}: no such case").into()),
        })
    }

    /// Runs the step once, and returns the cost of its measured part. The messages that this part
    /// needs are sent beforehand, outside the measured time.
    async fn once<C: Contender>(
        self,
        contender: &C,
        caller: usize,
        settings: &Settings,
        measure: Measure,
    ) -> Result<Cost, Failure> {
        let n = settings.batch;
        let payloads = payloads(n, settings.payload);
        if let Self::ReadWithPoll(patience) = self {
            return wait(contender, caller, payloads, patience).await;
        }
        match self {
            Self::Send | Self::FullCycle => {}
            _ => contender.send(caller, payloads.clone()).await?,
        }
        let read = match self {
            Self::Delete | Self::Archive => read_all(contender, caller, n).await?,
            _ => Vec::new(),
        };
        let (allocated, began) = (measure.map(|measure| measure()), Instant::now());
        let count = match self {
            Self::Send => contender.send(caller, payloads).await.map(|()| n)?,
            // Steps that wait have returned above.
            Self::Read | Self::ReadWithPoll(_) => read_all(contender, caller, n).await?.len(),
            Self::Delete => (read.len(), contender.delete(caller, read).await?).0,
            Self::Archive => (read.len(), contender.archive(caller, read).await?).0,
            Self::Pop => pop_all(contender, caller, n).await?,
            Self::FullCycle => {
                contender.send(caller, payloads).await?;
                let read = read_all(contender, caller, n).await?;
                (read.len(), contender.delete(caller, read).await?).0
            }
        };
        let time = began.elapsed();
        let (allocations, bytes) = allocated.zip(measure).map_or((0, 0), |(before, measure)| {
            let after = measure();
            (after.0 - before.0, after.1 - before.1)
        });
        // Fails if the contender returned fewer messages, because the row would look too fast.
        if count != n {
            return Err(format!("asked for {n} messages and had {count}").into());
        }
        Ok(Cost { time, allocations, bytes })
    }
}

/// The maximum number of further calls for a read that had too few messages.
const TRIES: usize = 100;

/// Reads `n` messages. A call returns fewer messages, or none, while other callers lock the rows
/// that it examines. Then the reader requests the rest, as a consumer would.
async fn read_all<C: Contender>(contender: &C, caller: usize, n: usize) -> Result<Vec<C::Handle>, Failure> {
    let mut read = contender.read(caller, n).await?;
    for _ in 0..TRIES {
        if read.len() >= n {
            break;
        }
        read.extend(contender.read(caller, n - read.len()).await?);
    }
    Ok(read)
}

/// Takes `n` messages, like [`read_all`].
async fn pop_all<C: Contender>(contender: &C, caller: usize, n: usize) -> Result<usize, Failure> {
    let mut count = contender.pop(caller, n).await?;
    for _ in 0..TRIES {
        if count >= n {
            break;
        }
        count += contender.pop(caller, n - count).await?;
    }
    Ok(count)
}

/// Measures a read that begins on an empty queue. The messages are sent after a random delay of 100
/// to 200 ms. So the send falls into every phase of a poll interval of 100 ms equally often. The
/// measured time runs from the start of that send until the reader has the messages. A reader that
/// listens may receive the messages before the send returns.
async fn wait<C: Contender>(
    contender: &C,
    caller: usize,
    payloads: Vec<String>,
    patience: Duration,
) -> Result<Cost, Failure> {
    let n = payloads.len();
    let reading = async {
        let read = contender.read_with_poll(caller, n, patience).await?;
        Ok::<_, Failure>((read, Instant::now()))
    };
    let sending = async {
        tokio::time::sleep(Duration::from_micros(100_000 + random() % 100_000)).await;
        let began = Instant::now();
        contender.send(caller, payloads).await?;
        Ok::<_, Failure>(began)
    };
    let ((read, had), sent) = tokio::try_join!(reading, sending)?;
    if read.len() != n {
        return Err(format!("asked for {n} messages and had {}", read.len()).into());
    }
    // Empties the queue for the next reader.
    contender.delete(caller, read).await?;
    Ok(Cost { time: had.duration_since(sent), ..Cost::default() })
}

/// The cost of one or several steps.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    time: Duration,
    allocations: u64,
    bytes: u64,
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.time += other.time;
        self.allocations += other.allocations;
        self.bytes += other.bytes;
    }
}

/// The messages that the callers have not claimed yet; `None` if only the time ends a step.
struct Left(Option<AtomicUsize>);

impl Left {
    fn of(messages: usize) -> Self {
        Self((messages > 0).then(|| AtomicUsize::new(messages)))
    }

    /// Claims up to `n` messages for a call. Returns their number.
    fn claim(&self, n: usize) -> usize {
        let Some(left) = &self.0 else { return n };
        let before = left.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(n))).unwrap_or_default();
        before.min(n)
    }
}

pub async fn run<C: Contender>(settings: Settings, measure: Measure) -> Result<(), Failure> {
    let step = Step::parse(&settings.case)?;
    let (contender, ready) = C::install(&settings).await?;
    let (contender, tally) = (Arc::new(contender), Arc::new(Tally::new(false, 0, Vec::new())));
    // A waiting reader must find the queue empty before its messages are sent. For all other steps,
    // the queue contains more messages than all callers request at once. Otherwise a read could
    // return too few messages because another caller was first.
    if !matches!(step, Step::ReadWithPoll(_)) {
        let backlog = settings.backlog.max(2 * settings.batch * settings.producers);
        Callers::of(&contender, &Settings { backlog, ..settings.clone() }).seed().await?;
    }
    for caller in 0..settings.producers {
        step.once(&*contender, caller, &settings, None).await?;
    }
    say::ready(&ready).await?;
    let progress = tokio::spawn(say::progress(tally.clone()));
    let began = Instant::now();
    let until = began + settings.time;
    let mut callers = JoinSet::new();
    let left = Arc::new(Left::of(settings.messages));
    for caller in 0..settings.producers {
        let (contender, mut settings, tally) = (contender.clone(), settings.clone(), tally.clone());
        let (left, batch) = (left.clone(), settings.batch);
        callers.spawn(async move {
            let (mut latencies, mut all) = (histogram(), Cost::default());
            while Instant::now() < until {
                settings.batch = left.claim(batch);
                if settings.batch == 0 {
                    break;
                }
                let cost = step.once(&*contender, caller, &settings, measure).await?;
                latencies.saturating_record(cost.time.as_nanos().div_ceil(1000) as u64);
                all += cost;
                tally.did_send(settings.batch);
            }
            Ok::<_, Failure>((latencies, all))
        });
    }
    let (mut all, mut total): (Histogram<u64>, Cost) = (histogram(), Cost::default());
    while let Some(ended) = callers.join_next().await {
        let (latencies, cost) = ended??;
        all.add(latencies)?;
        total += cost;
    }
    progress.abort();
    if settings.messages > 0 && tally.sent() < settings.messages as u64 {
        let (sent, n, time) = (tally.sent(), settings.messages, settings.time);
        return Err(format!("{sent} of {n} messages in {time:?}, which is the limit").into());
    }
    say::latencies(&all);
    // Only the callers' time in the step counts, not their preparation.
    let seconds = match step {
        // A step that waits spends most of its time in a deliberate delay. Its rate includes the
        // delay, because no user could reach the rate without it.
        Step::ReadWithPoll(_) => began.elapsed().as_secs_f64(),
        _ => total.time.as_secs_f64() / settings.producers as f64,
    };
    say::done_with(tally.sent(), seconds, measure.map(|_| (total.allocations, total.bytes)));
    say::end().await
}

#[cfg(test)]
mod tests;
