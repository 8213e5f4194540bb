//! Lets calls share statements. Calls that arrive while a statement runs wait together, and the
//! next statement serves all of them.
//!
//! There is no timer. A call that finds no statement running receives a [`Permit`] and spawns a
//! task, which runs one statement after another until no call waits. If that task ends early, by a
//! panic or with its runtime, its permit is dropped. If another permit exists, its task serves the
//! waiting calls. Otherwise they fail, so no call waits for a statement that is never sent. The
//! calls that a running statement serves belong to its work, and fail if the work is dropped.
//!
//! This file does no I/O. The six kinds of calls define their own work: enqueues (`coalesce`),
//! dequeues (`dequeues`), ends of leases (`settle`), acknowledgements with a lease
//! (`ack_and_lease`), notifications (`notify`), and consumers that wait (`wait/list`).

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::time::timeout;

/// The waiting calls of one kind.
pub(crate) trait Waiting {
    type Call;
    /// The calls that one statement serves.
    type Work;
    /// The number of statements that may run at the same time.
    const STATEMENTS: usize = 1;

    fn is_empty(&self) -> bool;

    /// Returns true if the waiting calls are worth a second statement while one is running.
    fn deserve_another(&self, _: &Running) -> bool {
        false
    }

    /// Removes and returns the work of the next statement, with its number of messages. Returns
    /// `None` to end the permit.
    fn next(&mut self, running: &Running) -> Option<(Self::Work, usize)>;

    /// Removes and returns the calls that fail because no permit is left to serve them.
    fn abandoned(&mut self) -> Vec<Self::Call>;

    fn fail(call: Self::Call);
}

#[derive(Debug, Default)]
pub(crate) struct Running {
    pub statements: usize,
    /// The number of messages in these statements.
    pub messages: usize,
    /// The duration of the last statement.
    pub took: Duration,
}

#[derive(Default)]
pub(crate) struct Batcher<W>(Mutex<BatcherState<W>>);

#[derive(Default)]
pub(crate) struct BatcherState<W> {
    pub waiting: W,
    pub running: Running,
}

impl<W: Waiting> Batcher<W> {
    pub fn new(waiting: W) -> Arc<Self> {
        Arc::new(Self(Mutex::new(BatcherState { waiting, running: Running::default() })))
    }

    pub fn state(&self) -> MutexGuard<'_, BatcherState<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call. Returns a permit if the caller must start a statement for it.
    pub fn join(self: &Arc<Self>, add: impl FnOnce(&mut W)) -> Option<Permit<W>> {
        let always = |waiting: &mut W| {
            add(waiting);
            Some(())
        };
        self.try_join(always)?.1
    }

    /// Adds a call if `add` finds room for it. Returns the result of `add`, with a permit as in
    /// `join`.
    pub fn try_join<R>(self: &Arc<Self>, add: impl FnOnce(&mut W) -> Option<R>) -> Option<(R, Option<Permit<W>>)> {
        let mut state = self.state();
        let added = add(&mut state.waiting)?;
        let BatcherState { waiting, running } = &mut *state;
        let starts = running.statements == 0 || running.statements < W::STATEMENTS && waiting.deserve_another(running);
        running.statements += usize::from(starts);
        let permit = || Permit { batcher: self.clone(), messages: 0, began: None, has_ended: false };
        Some((added, starts.then(permit)))
    }
}

/// The right to run statements, one at a time.
pub(crate) struct Permit<W: Waiting> {
    batcher: Arc<Batcher<W>>,
    /// The number of messages in the permit's statement.
    messages: usize,
    began: Option<Instant>,
    has_ended: bool,
}

impl<W: Waiting> Permit<W> {
    /// Returns the work of the next statement. Returns `None` when the permit has ended; the next
    /// call that joins then receives another permit.
    pub fn next(&mut self) -> Option<W::Work> {
        let mut state = self.batcher.state();
        let BatcherState { waiting, running } = &mut *state;
        running.took = self.began.map_or(running.took, |began| began.elapsed());
        running.messages -= std::mem::take(&mut self.messages);
        let Some((work, messages)) = waiting.next(running) else {
            running.statements -= usize::from(!std::mem::replace(&mut self.has_ended, true));
            return None;
        };
        running.messages += messages;
        (self.messages, self.began) = (messages, Some(Instant::now()));
        Some(work)
    }

    pub fn state(&self) -> MutexGuard<'_, BatcherState<W>> {
        self.batcher.state()
    }

    /// Yields, so that callers that have just been answered can share the next statement with each
    /// other or with the waiting calls. Does not yield for a lone caller. In that case, a yield
    /// made the runtime wake another thread, which took a third of the caller's time.
    pub async fn give_way(&self, answered: usize) {
        if answered > 1 || !self.state().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
    }
}

impl<W: Waiting> Drop for Permit<W> {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let mut state = self.batcher.state();
        state.running.statements -= 1;
        state.running.messages -= self.messages;
        let abandoned = if state.running.statements == 0 { state.waiting.abandoned() } else { Vec::new() };
        drop(state); // unlocks first, because a failed call may run its caller's code
        abandoned.into_iter().for_each(W::fail);
    }
}

/// The time for which later calls wait for a statement that may wait for a lock.
const SLOW: Duration = Duration::from_millis(50);

/// Runs the statements for some calls. If they take long, they continue in a task of their own, so
/// that later calls do not wait for them: a session of another program may have locked a row.
pub(crate) async fn run_or_detach(work: impl Future<Output = ()> + Send + 'static) {
    let mut work = Box::pin(work);
    if timeout(SLOW, &mut work).await.is_err() {
        tokio::spawn(work);
    }
}

#[cfg(test)]
#[path = "../../../tests/models/batcher.rs"]
mod model;
