//! A station is the runner of one queue: the state that the tasks of that queue's worker share.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use crate::{
    error::Result,
    queue::{
        handle::Queue,
        message::payload::Payload,
        observe::worker_gauges::WorkerGauges,
        wait::{Wait, hooks::Hooks},
    },
    worker::{
        handler::Handler,
        hands::Hands,
        held::{ByteLimit, Held},
        holder::Holder,
        report::Report,
        retry_policy::RetryPolicy,
        tally::Tally,
    },
};

pub(super) struct Options {
    pub lease: Option<Duration>,
    pub timeout: Option<Duration>,
    pub retry: RetryPolicy,
    pub shutdown_after: Duration,
    pub wait: Wait,
    pub hooks: Hooks,
    /// True if the runner ends once nothing is due.
    pub drains: bool,
    /// True if the runner reports its work.
    pub reports: bool,
    pub isolates: bool,
}

pub(super) struct Station<T> {
    pub queue: Queue<T>,
    pub handler: Handler<T>,
    pub options: Options,
    pub tally: Arc<Tally>,
    pub hands: Arc<Hands>,
    /// The runner's number among the runners that share the tasks.
    pub nr: usize,
    /// Notified when a message can be settled, a task is free, or fewer messages are waiting.
    pub changed: Arc<Notify>,
    /// Notified when the bucket of a key lets a message start earlier than expected.
    pub sooner: Notify,
    pub lease: Duration,
    /// The number under which the worker owns partitions, if messages have keys.
    pub holder: Option<Holder>,
    pub report: Option<Report>,
    /// True once a lease has succeeded.
    pub has_worked: AtomicBool,
    pub gauges: WorkerGauges,
    held: Mutex<Held<T>>,
}

impl<T: Payload> Station<T> {
    pub fn new(
        (queue, handler, options, limit): (Queue<T>, Handler<T>, Options, Option<ByteLimit<T>>),
        lease: Duration,
        weight: u32,
        hands: Arc<Hands>,
        tally: Arc<Tally>,
    ) -> Arc<Self> {
        let changed = Arc::new(Notify::new());
        let nr = hands.join(weight, changed.clone());
        let keyed = queue.shared.is_keyed();
        let per_key = keyed.then_some(queue.description().per_key as usize);
        let holder = keyed.then(Holder::new);
        let report = options.reports.then(Report::new);
        let gauges = queue.shared.metrics.worker();
        let mut held = Held::new(lease, per_key, Instant::now());
        held.limit = limit;
        Arc::new(Self {
            queue,
            handler,
            options,
            tally,
            hands,
            nr,
            changed,
            sooner: Notify::new(),
            lease,
            holder,
            report,
            has_worked: AtomicBool::new(false),
            gauges,
            held: Mutex::new(held),
        })
    }

    /// Reads how many messages of a key may run at the same time, before the first lease: the
    /// setting may have changed since the handle was opened.
    pub async fn read_per_key(&self) -> Result<()> {
        let per_key = self.queue.db().describe_queue(self.name()).await?.per_key as usize;
        self.held().set_per_key(per_key);
        Ok(())
    }

    pub fn held(&self) -> MutexGuard<'_, Held<T>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn name(&self) -> &str {
        &self.queue.description().name
    }
}
