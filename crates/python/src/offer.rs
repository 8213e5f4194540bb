//! Messages that were dequeued for a caller who may have left, or who may be late because its event
//! loop is blocked.

use std::{
    cell::RefCell,
    collections::HashSet,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pyo3::{
    exceptions::{PyKeyboardInterrupt, PyRuntimeError, PySystemExit},
    prelude::*,
    types::{PyBytes, PyList},
};
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep_until},
};
use trunkline::Queue;

use crate::{
    ending::release,
    error::raised,
    message::{Lease, Message, leases},
    raw::Raw,
    runtime::{self, Owner},
};

/// Dequeued messages. If they are leased, a task releases those that the caller has not begun when
/// half of their lease has passed. Otherwise their leases would end, and count an attempt, while
/// the caller is late or slow. Dropping this value releases the messages if they are still offered.
pub struct Dequeued {
    owner: Owner,
    state: Arc<Mutex<State>>,
    /// The lease, unless the messages were taken.
    leased: Option<Leased>,
    /// The task that releases late messages.
    watch: Mutex<Option<AbortHandle>>,
}

struct Leased {
    queue: Queue<Raw>,
    lease: Duration,
    /// The time when half of the lease has passed.
    half: Instant,
}

enum State {
    /// The caller has not received the messages.
    Offered(trunkline::Offer<Raw>),
    /// The caller has the messages. `leases` are those of the messages that it has not begun, until
    /// the time `until`; `begun` is that of the last message that it has begun.
    Ahead { leases: HashSet<trunkline::Lease>, until: Instant, begun: Option<trunkline::Lease> },
    /// The messages that the caller had not begun were released.
    Late { begun: Option<trunkline::Lease> },
    /// The caller owns the messages, or has refused them.
    Over,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn take_offer(&mut self) -> Option<trunkline::Offer<Raw>> {
        match mem::replace(self, Self::Over) {
            Self::Offered(offer) => Some(offer),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Records that messages that have not begun are late. Returns the state before that.
    fn be_late(&mut self) -> Self {
        let begun = match self {
            Self::Offered(_) => None,
            Self::Ahead { begun, .. } => *begun,
            Self::Late { .. } | Self::Over => return Self::Over,
        };
        mem::replace(self, Self::Late { begun })
    }
}

impl Dequeued {
    pub fn taken(offer: trunkline::Offer<Raw>) -> Self {
        let state = Arc::new(Mutex::new(State::Offered(offer)));
        Self { owner: Owner::this(), state, leased: None, watch: Mutex::default() }
    }

    /// Creates the value for messages that were leased for the time `lease`. Call this function
    /// within the runtime.
    pub fn leased(offer: trunkline::Offer<Raw>, queue: Queue<Raw>, lease: Duration) -> Self {
        // The reply may have arrived long after the lease began.
        let asked = offer.asked().unwrap_or_else(Instant::now);
        let (is_empty, half) = (offer.is_empty(), asked + lease / 2);
        let mut this = Self::taken(offer);
        this.leased = Some(Leased { queue, lease, half });
        if !is_empty {
            this.watch(half);
        }
        this
    }

    /// Starts the task that releases late messages at the time `at`.
    fn watch(&self, at: Instant) {
        let Some(Leased { queue, lease, half }) = &self.leased else { return };
        let (state, queue, end) = (self.state.clone(), queue.clone(), *half + *lease / 2);
        let watch = tokio::spawn(async move {
            sleep_until(at).await;
            let late = lock(&state).be_late();
            match late {
                State::Ahead { leases, .. } if !leases.is_empty() => {
                    let leases: Vec<_> = leases.into_iter().collect();
                    release(None, &queue, &leases, || Instant::now() > end).await;
                }
                other => drop(other), // dropping an offer releases its messages
            }
        });
        *lock(&self.watch) = Some(watch.abort_handle());
    }

    /// Ends the task. Call this function only while it has not released anything.
    fn unwatch(&self) {
        if let Some(watch) = lock(&self.watch).take() {
            watch.abort();
        }
    }

    /// Watches over accepted messages until the caller begins them.
    fn keep(&self, leases: HashSet<trunkline::Lease>) {
        let Some(Leased { lease, half, .. }) = &self.leased else { return };
        if leases.is_empty() {
            return;
        }
        // Decoding the payload of a single message may have taken so long that it would be late.
        let until = match leases.len() {
            1 => (*half).max(Instant::now() + *lease / 8).min(*half + *lease / 2),
            _ => *half,
        };
        *lock(&self.state) = State::Ahead { leases, until, begun: None };
        self.watch(until);
    }

    fn refuse(&self, offer: Option<trunkline::Offer<Raw>>) {
        if let Some(offer) = offer {
            if self.owner.is_this() {
                self.unwatch();
            }
            self.owner.drop_within(offer);
        }
    }
}

impl Drop for Dequeued {
    fn drop(&mut self) {
        // The lock is only taken while the messages are released, or if this is a fork.
        let offer = self.state.try_lock().ok().and_then(|mut state| state.take_offer());
        self.refuse(offer);
    }
}

/// Messages that are released unless the caller accepts them.
#[pyclass(frozen, module = "trunkline._trunkline")]
pub struct Offer(Dequeued);

impl Offer {
    pub fn new(dequeued: Dequeued) -> Self {
        Self(dequeued)
    }
}

#[pymethods]
impl Offer {
    /// Returns the number of messages that have not been accepted or refused.
    fn __len__(&self) -> usize {
        match &*lock(&self.0.state) {
            State::Offered(offer) => offer.len(),
            _ => 0,
        }
    }

    /// Releases the messages.
    fn refuse(&self) {
        let offer = lock(&self.0.state).take_offer();
        self.0.refuse(offer);
    }

    /// Returns the messages, with each payload decoded by `decode`. If decoding a message raises an
    /// exception, the message's attempt fails. If `decode` is interrupted, for example by Ctrl-C,
    /// all messages are released and the exception is raised. Returns `None` if half of the lease
    /// had passed, so that the messages were released. If `ahead` is true, messages that the caller
    /// does not begin are released later, when half of their lease has passed. If decoding several
    /// of them would leave less than an eighth of the lease before that, all are released, and the
    /// function returns `None`. A late caller has an eighth of the lease for decoding, but not
    /// beyond the half.
    #[pyo3(signature = (decode, ahead = false))]
    fn accept<'py>(
        &self,
        py: Python<'py>,
        decode: Option<&Bound<'py, PyAny>>,
        ahead: bool,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        self.0.owner.check()?;
        let offer = {
            let mut state = lock(&self.0.state);
            match state.take_offer() {
                Some(offer) => offer,
                None if matches!(*state, State::Late { .. }) => return Ok(None),
                None => {
                    return Err(PyRuntimeError::new_err("the messages have already been accepted or refused"));
                }
            }
        };
        self.0.unwatch();
        let handle = runtime::handle()?;
        let _within = handle.enter();
        let began = Instant::now();
        let limit = match &self.0.leased {
            Some(Leased { lease, half, .. }) if ahead && offer.len() > 1 => {
                Some((*half - *lease / 8).max(began + *lease / 8).min(*half))
            }
            _ => None,
        };
        let is_late = || limit.is_some_and(|limit| Instant::now() > limit);
        let (interrupted, accepted_leases) = (RefCell::new(None), RefCell::default());
        let read = |Raw(bytes): Raw| {
            let bytes = PyBytes::new(py, &bytes);
            let Some(decode) = decode.filter(|_| interrupted.borrow().is_none() && !is_late()) else {
                return Ok(bytes.into_any().unbind());
            };
            match decode.call1((&bytes,)) {
                Ok(payload) => Ok(payload.unbind()),
                Err(error) => match error_of_payload(py, error, decode, &bytes) {
                    Ok(error) => Err(error.to_string().into()),
                    Err(interruption) => {
                        interrupted.replace(Some(interruption));
                        Ok(bytes.into_any().unbind())
                    }
                },
            }
        };
        let make = |messages: Vec<trunkline::Message<Py<PyAny>>>| {
            if is_late() {
                return None;
            }
            if ahead {
                accepted_leases.replace(messages.iter().map(trunkline::Message::lease).collect());
            }
            let list = messages.into_iter().map(|message| Py::new(py, Message::of(message)));
            let list = list.collect::<PyResult<Vec<_>>>().and_then(|list| PyList::new(py, list));
            // Checks for a signal at the last moment. A later one is raised after the call, when
            // the caller owns the messages.
            let outcome = interrupted.take().map_or(list, Err).and_then(|list| py.check_signals().map(|()| list));
            outcome.map_err(|error| interrupted.replace(Some(error))).ok()
        };
        let accepted = offer.accept_if(read, make).map_err(|error| raised(py, &error))?;
        if accepted.is_some() {
            self.0.keep(accepted_leases.take());
        }
        interrupted.take().map_or(Ok(accepted), Err)
    }

    /// Records that the caller begins a message that it accepted `ahead`. Returns false if the
    /// message is late: it was released, or is being released.
    fn begin(&self, message: &Bound<'_, Message>) -> bool {
        let lease = trunkline::Lease::from(message.get().lease());
        match &mut *lock(&self.0.state) {
            State::Ahead { begun, .. } | State::Late { begun } if *begun == Some(lease) => true,
            State::Ahead { leases, until, begun } => {
                let begins = Instant::now() < *until && leases.remove(&lease);
                if begins {
                    *begun = Some(lease);
                    if leases.is_empty() {
                        self.0.unwatch();
                    }
                }
                begins
            }
            _ => false,
        }
    }

    /// Returns the leases of those messages that the caller has to release: the messages that were
    /// accepted `ahead`, but not those that were late. After this call no message can begin.
    fn rest(&self, messages: &Bound<'_, PyAny>) -> PyResult<Vec<Lease>> {
        let messages = leases(messages)?;
        let (mut rest, begun) = {
            let mut state = lock(&self.0.state);
            match mem::replace(&mut *state, State::Over) {
                State::Ahead { leases, begun, .. } => {
                    self.0.unwatch();
                    (leases, begun)
                }
                State::Late { begun } => (HashSet::new(), begun),
                other => {
                    *state = other;
                    return Ok(Vec::new());
                }
            }
        };
        rest.extend(begun); // the caller may have been interrupted before it received this message
        Ok(messages.into_iter().filter(|lease| rest.contains(lease)).map(Lease::from).collect())
    }
}

/// Returns the error if the payload causes it, so that `decode` fails again. Otherwise fails with
/// the interruption. An exception from a signal handler does not repeat, and Ctrl-C and the
/// interpreter's end never depend on a payload.
fn error_of_payload(
    py: Python<'_>,
    error: PyErr,
    decode: &Bound<'_, PyAny>,
    bytes: &Bound<'_, PyBytes>,
) -> Result<PyErr, PyErr> {
    if ends_program(py, &error) {
        return Err(error);
    }
    match decode.call1((bytes,)) {
        Err(again) if ends_program(py, &again) => Err(again),
        Err(_) => Ok(error),
        Ok(_) => Err(error),
    }
}

fn ends_program(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyKeyboardInterrupt>(py) || error.is_instance_of::<PySystemExit>(py)
}
