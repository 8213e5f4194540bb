//! Every metric of the library: its name, and the only calls that update it. Handles of metrics are
//! created once per queue. An update therefore costs an atomic operation, or nothing if no recorder
//! is installed. A test compares the metrics with the table for users in `docs/observability.md`.

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use metrics::{
    Counter, Gauge, Histogram, IntoF64, Label, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};

use super::worker_gauges::{SharedGauge, WorkerGauges};
use crate::queue::message::Message;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    Archived,
    Retried,
    Dead,
    Released,
    Lost,
}

impl End {
    pub const ALL: [Self; 6] = [Self::Done, Self::Archived, Self::Retried, Self::Dead, Self::Released, Self::Lost];

    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Archived => "archived",
            Self::Retried => "retried",
            Self::Dead => "dead",
            Self::Released => "released",
            Self::Lost => "lost",
        }
    }
}

/// Counts the ticks of a schedule, and records the lag of the first one.
pub(crate) fn ticked(queue: &str, shard: &ShardName, ticks: usize, late: Duration) {
    let (made, lag) = of_ticks(shard.labels(queue));
    made.increment(ticks as u64);
    lag.record(late);
}

/// Looks up the metrics by name, because the task that runs schedules has no handles of the queues.
fn of_ticks(labels: Vec<Label>) -> (Counter, Histogram) {
    describe_counter!("trunkline_ticks_total", Unit::Count, "Ticks of schedules whose messages were enqueued");
    describe_histogram!(
        "trunkline_tick_lag_seconds",
        Unit::Seconds,
        "Time from a schedule's tick until its message was enqueued"
    );
    (counter!("trunkline_ticks_total", labels.clone()), histogram!("trunkline_tick_lag_seconds", labels))
}

/// The name of the shard, if the database is a shard. The name is attached to the database's
/// handle.
#[derive(Debug, Default)]
pub(crate) struct ShardName(OnceLock<String>);

impl ShardName {
    pub fn set(&self, name: String) {
        let _ = self.0.set(name); // the first name is kept
    }

    /// Returns the labels of a queue's metrics. A queue on several servers has separate metrics for
    /// each server.
    fn labels(&self, queue: &str) -> Vec<Label> {
        let shard = self.0.get().map(|shard| Label::new("shard", shard.clone()));
        std::iter::once(Label::new("queue", queue.to_owned())).chain(shard).collect()
    }
}

/// The metrics of one queue.
pub(crate) struct Metrics {
    enqueued_messages: Counter,
    enqueued_rows: Counter,
    receive_direct: Counter,
    leased: Counter,
    taken: Counter,
    cancelled: Counter,
    rescheduled: Counter,
    settled: [Counter; End::ALL.len()],
    enqueue_seconds: Histogram,
    lease_seconds: Histogram,
    take_seconds: Histogram,
    settle_seconds: Histogram,
    find_seconds: Histogram,
    cancel_seconds: Histogram,
    reschedule_seconds: Histogram,
    /// The histograms by outcome. Only `Done`, `Retried` and `Dead` have one.
    handle_seconds: [Histogram; End::ALL.len()],
    delivery_lag: Histogram,
    running: Gauge,
    prefetched: Arc<SharedGauge>,
    connected: Arc<SharedGauge>,
}

impl Metrics {
    pub fn of(queue: &str, shard: &ShardName) -> Self {
        let labels = || shard.labels(queue);
        let with = |end: End| -> Vec<Label> { [labels(), vec![Label::new("outcome", end.name())]].concat() };
        let count = |name: &'static str, help: &'static str| {
            describe_counter!(name, Unit::Count, help);
            counter!(name, labels())
        };
        let time = |name: &'static str, help: &'static str| {
            describe_histogram!(name, Unit::Seconds, help);
            histogram!(name, labels())
        };
        let level = |name: &'static str, help: &'static str| {
            describe_gauge!(name, Unit::Count, help);
            gauge!(name, labels())
        };
        drop(of_ticks(labels())); // creates these metrics at the start, like the others
        describe_counter!("trunkline_settled_messages_total", Unit::Count, "Messages whose lease ended");
        describe_histogram!("trunkline_handle_seconds", Unit::Seconds, "Duration of calls of a handler");
        Self {
            enqueued_messages: count("trunkline_enqueued_messages_total", "Messages enqueued"),
            enqueued_rows: count("trunkline_enqueued_rows_total", "Rows inserted for enqueued messages"),
            receive_direct: count("trunkline_direct_messages_total", "Messages sent inside a notification"),
            leased: count("trunkline_leased_messages_total", "Messages leased"),
            taken: count("trunkline_taken_messages_total", "Messages taken"),
            cancelled: count("trunkline_cancelled_messages_total", "Messages cancelled"),
            rescheduled: count("trunkline_rescheduled_messages_total", "Messages that were rescheduled"),
            settled: End::ALL.map(|end| counter!("trunkline_settled_messages_total", with(end))),
            enqueue_seconds: time("trunkline_enqueue_seconds", "Duration of inserts, including the commit"),
            lease_seconds: time("trunkline_lease_seconds", "Duration of statements that lease"),
            take_seconds: time("trunkline_take_seconds", "Duration of statements that take"),
            settle_seconds: time("trunkline_settle_seconds", "Duration of statements that end leases"),
            find_seconds: time("trunkline_find_seconds", "Duration of statements that find a message"),
            cancel_seconds: time("trunkline_cancel_seconds", "Duration of statements that cancel"),
            reschedule_seconds: time("trunkline_reschedule_seconds", "Duration of statements that reschedule"),
            handle_seconds: End::ALL.map(|end| match end {
                End::Done | End::Retried | End::Dead => {
                    histogram!("trunkline_handle_seconds", with(end))
                }
                End::Archived | End::Released | End::Lost => Histogram::noop(),
            }),
            delivery_lag: time("trunkline_delivery_lag_seconds", "Time from enqueue to the start of the handler"),
            running: level("trunkline_running_handlers", "Handlers that run"),
            prefetched: SharedGauge::of(level(
                "trunkline_prefetched_messages",
                "Leased messages that wait for a handler",
            )),
            connected: SharedGauge::of(level("trunkline_connected", "Workers that reach the database")),
        }
    }

    /// Counts an insert that the server has answered.
    pub fn enqueued(&self, messages: usize, rows: usize, began: Instant) {
        self.enqueued_messages.increment(messages as u64);
        self.enqueued_rows.increment(rows as u64);
        self.enqueue_seconds.record(began.elapsed());
    }

    /// Counts an insert that was sent and whose reply the caller awaits.
    pub fn sent(&self, messages: usize) {
        self.enqueued_messages.increment(messages as u64);
    }

    pub fn receive_direct(&self) {
        self.receive_direct.increment(1);
    }

    /// Counts a statement that leased messages, after its reply.
    pub fn leased(&self, messages: usize, began: Instant) {
        self.leased.increment(messages as u64);
        self.lease_seconds.record(began.elapsed());
    }

    /// Counts a statement that took messages, after its reply.
    pub fn taken(&self, messages: usize, began: Instant) {
        self.taken.increment(messages as u64);
        self.take_seconds.record(began.elapsed());
    }

    /// Records the duration of a statement that finds a message by its id.
    pub fn looked_for(&self, began: Instant) {
        self.find_seconds.record(began.elapsed());
    }

    /// Counts a statement that cancelled messages, after its reply.
    pub fn cancelled(&self, messages: usize, began: Instant) {
        self.cancelled.increment(messages as u64);
        self.cancel_seconds.record(began.elapsed());
    }

    /// Counts a statement that rescheduled messages, after its reply.
    pub fn rescheduled(&self, messages: usize, began: Instant) {
        self.rescheduled.increment(messages as u64);
        self.reschedule_seconds.record(began.elapsed());
    }

    /// Counts a statement that ended leases, after its reply: `lost` of the `messages` leases were
    /// lost.
    pub fn settled(&self, end: End, messages: usize, lost: usize, began: Instant) {
        self.settled[end as usize].increment((messages - lost) as u64);
        self.lost(lost);
        self.settle_seconds.record(began.elapsed());
    }

    /// Counts messages that a retry made dead letters, because their attempts were exhausted.
    pub fn died(&self, messages: usize) {
        self.settled[End::Dead as usize].increment(messages as u64);
    }

    /// Counts results that can no longer be settled.
    pub fn lost(&self, messages: usize) {
        self.settled[End::Lost as usize].increment(messages as u64);
    }

    /// Records the duration of a handler call.
    pub fn handled(&self, end: End, took: Lap) {
        self.handle_seconds[end as usize].record(took);
    }

    /// Records the delivery lag of first deliveries only. The time at which a message that was
    /// retried or released became due is unknown.
    pub fn delivered<T>(&self, messages: &[Message<T>], watch: &Watch) {
        for message in messages.iter().filter(|message| message.attempt == 1) {
            self.delivery_lag.record(Lag { since: message.enqueued_at, watch });
        }
    }

    /// Counts a running handler, until the returned guard is dropped.
    pub fn running(&self) -> RunningHandlers<'_> {
        self.running.increment(1);
        RunningHandlers(&self.running)
    }

    /// Returns the gauges of another worker of the queue.
    pub fn worker(&self) -> WorkerGauges {
        WorkerGauges::of(&self.prefetched, &self.connected)
    }
}

pub(crate) struct RunningHandlers<'a>(&'a Gauge);

impl Drop for RunningHandlers<'_> {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

/// The metrics of one shard, by queue. There are few entries, and they rarely change.
#[derive(Default)]
pub(crate) struct ShardMetrics(Mutex<Vec<(String, Gauge, Counter)>>);

impl ShardMetrics {
    fn all(&self) -> MutexGuard<'_, Vec<(String, Gauge, Counter)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a queue that is opened on the shard, unless another handle has added it.
    pub fn add(&self, queue: &str, shard: &str) {
        const AWAY: &str = "trunkline_shard_down";
        const ELSEWHERE: &str = "trunkline_shard_rerouted_total";
        if self.all().iter().any(|(of, ..)| of == queue) {
            return;
        }
        describe_gauge!(AWAY, Unit::Count, "1 while a shard is unreachable and receives no calls");
        describe_counter!(
            ELSEWHERE,
            Unit::Count,
            "Enqueues that were sent to another shard because this one did not accept them"
        );
        let labels = || [Label::new("queue", queue.to_owned()), Label::new("shard", shard.to_owned())].to_vec();
        let (away, elsewhere) = (gauge!(AWAY, labels()), counter!(ELSEWHERE, labels()));
        away.set(0.0);
        self.all().push((queue.to_owned(), away, elsewhere));
    }

    pub fn away(&self, is_so: bool) {
        self.all().iter().for_each(|(_, away, _)| away.set(if is_so { 1.0 } else { 0.0 }));
    }

    pub fn elsewhere(&self, queue: &str) {
        let all = self.all();
        all.iter().filter(|(of, ..)| of == queue).take(1).for_each(|(_, _, elsewhere)| elsewhere.increment(1));
    }
}

/// The clock of a task that runs handlers. One reading both ends a call and begins the next.
pub(crate) struct Watch {
    pub now: Instant,
    began: Instant,
    /// The wall clock's time at `began`.
    wall: SystemTime,
}

impl Watch {
    pub fn start() -> Self {
        let now = Instant::now();
        Self { now, began: now, wall: SystemTime::now() }
    }

    /// Reads the clock, and returns the time since the last reading.
    pub fn lap(&mut self) -> Lap {
        let now = Instant::now();
        Lap(std::mem::replace(&mut self.now, now), now)
    }
}

/// The time between two readings. It is converted to seconds only if a recorder asks for it.
pub(crate) struct Lap(Instant, Instant);

impl Lap {
    pub fn took(&self) -> Duration {
        self.1.duration_since(self.0)
    }
}

impl IntoF64 for Lap {
    fn into_f64(self) -> f64 {
        self.took().as_secs_f64()
    }
}

/// The time from a message's enqueue to the last reading of a watch. It is computed only if a
/// recorder asks for it.
struct Lag<'a> {
    since: SystemTime,
    watch: &'a Watch,
}

impl IntoF64 for Lag<'_> {
    fn into_f64(self) -> f64 {
        let now = self.watch.wall + self.watch.now.duration_since(self.watch.began);
        // The clocks of two machines may differ, so a negative lag counts as zero.
        now.duration_since(self.since).unwrap_or_default().as_secs_f64()
    }
}
