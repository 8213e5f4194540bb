//! A worker in the protocol of partitions. The real [`Order`] decides, and everything around it may
//! happen in any order.

use std::{
    sync::{Arc, LazyLock},
    time::{Duration, Instant, SystemTime},
};

use super::{
    protocol::{Defect, Protocol},
    server::Listed,
};
use crate::{
    queue::message::{Lease, Message, metadata::Metadata},
    worker::held::order::{Arrival, Key, Order, Prefetched},
};

static KEY: LazyLock<Arc<str>> = LazyLock::new(|| "key".into());
static NOW: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The state that an [`Order`] keeps for the key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Known {
    active: usize,
    behind: Vec<Lease>,
    ending: Vec<Lease>,
    back: Vec<Lease>,
    is_stale: bool,
    is_fetching: bool,
}

fn message(lease: Lease) -> Prefetched<()> {
    let message = Message {
        id: lease.id,
        attempt: lease.attempt,
        enqueued_at: SystemTime::UNIX_EPOCH,
        payload: (),
        metadata: Metadata::new(),
        key: Some(KEY.clone()),
        ran_out: false,
        rate: None,
        released: 0,
    };
    Prefetched { message, group: 0, until: *NOW, bytes: None }
}

impl Known {
    fn order(self, protocol: &Protocol) -> Order<()> {
        let mut order = Order::new(protocol.per_key, Duration::from_secs(30));
        order.behind = protocol.behind;
        let Self { active, behind, ending, back, is_stale, is_fetching } = self;
        (order.back, order.is_fetching) = (back, is_fetching);
        order.ending = ending.iter().map(|lease| (*lease, KEY.clone())).collect();
        let behind = behind.into_iter().map(message).collect();
        let key = Key { active, behind, ending: ending.len(), is_stale, ..Key::default() };
        if !key.is_idle() {
            order.keys.insert(KEY.clone(), key);
        }
        order
    }

    fn of(order: Order<()>) -> Self {
        let mut ending: Vec<Lease> = order.ending.into_keys().collect();
        ending.sort_unstable();
        let key = order.keys.into_values().next().unwrap_or_default();
        Self {
            active: key.active,
            behind: key.behind.iter().map(|behind| behind.message.lease()).collect(),
            ending,
            back: order.back,
            is_stale: key.is_stale,
            is_fetching: order.is_fetching,
        }
    }
}

/// The states of a statement that leases.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Fetch {
    None,
    Sent(usize),
    Listed(usize, Listed),
    /// The server has executed the statement, and the answer has not arrived yet.
    Told(Vec<Lease>),
}

/// Ways to end a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum End {
    Ack,
    Retry,
    Release,
}

/// A statement that ends leases. If `is_done` is true, the server has executed it, and the answer
/// has not arrived yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Sent {
    pub end: End,
    pub leases: Vec<Lease>,
    pub is_done: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Holder {
    /// The number under which the worker holds partitions. It changes after an answer was lost.
    pub number: u8,
    pub has_crashed: bool,
    known: Known,
    /// The leases of messages that wait for a free handler.
    pub ready: Vec<Lease>,
    /// The leases of running messages.
    pub running: Vec<Lease>,
    pub fetch: Fetch,
    pub sent: Vec<Sent>,
    /// A statement whose answer was lost, and the number under which it leases.
    pub ghost: Option<(u8, Fetch)>,
}

impl Holder {
    pub fn new(number: u8) -> Self {
        Self {
            number,
            has_crashed: false,
            known: Known::default(),
            ready: Vec::new(),
            running: Vec::new(),
            fetch: Fetch::None,
            sent: Vec::new(),
            ghost: None,
        }
    }

    fn order<R>(&mut self, protocol: &Protocol, act: impl FnOnce(&mut Order<()>) -> R) -> R {
        let mut order = std::mem::take(&mut self.known).order(protocol);
        let done = act(&mut order);
        self.known = Known::of(order);
        done
    }

    pub fn has_back(&self) -> bool {
        !self.known.back.is_empty()
    }

    pub fn has_behind(&self) -> bool {
        !self.known.behind.is_empty()
    }

    /// Returns true if the worker has no message, and no statement of the worker that ends leases
    /// is in progress.
    pub fn is_idle(&self) -> bool {
        self.known == Known::default() && self.ready.is_empty() && self.running.is_empty() && self.sent.is_empty()
    }

    pub fn fetch(&mut self, protocol: &Protocol, n: usize) {
        self.order(protocol, Order::fetching);
        self.fetch = Fetch::Sent(n);
    }

    /// Receives messages. The message at the position `unreadable` is unreadable, and fails.
    pub fn fetched(&mut self, protocol: &Protocol, leases: Vec<Lease>, unreadable: Option<usize>) {
        let failed = unreadable.map(|nr| leases[nr]);
        let is_passed = protocol.defect == Some(Defect::UnreadableIsPassed);
        let ready = self.order(protocol, |order| {
            let mut ready = Vec::new();
            for lease in leases {
                if failed == Some(lease) {
                    if !is_passed {
                        order.unreadable(&KEY, lease);
                    }
                } else if let Arrival::Ready(arrived) = order.arrive(message(lease), *NOW) {
                    ready.push(arrived.message.lease());
                }
            }
            order.fetched(*NOW);
            ready
        });
        self.ready.extend(ready);
        if let Some(failed) = failed {
            self.send(End::Retry, vec![failed]);
        }
    }

    /// Loses the answer to the current lease statement.
    pub fn lose(&mut self, protocol: &Protocol) {
        let lost = std::mem::replace(&mut self.fetch, Fetch::None);
        if !matches!(lost, Fetch::Told(_)) {
            self.ghost = Some((self.number, lost));
        }
        self.fetched(protocol, Vec::new(), None);
        if protocol.defect != Some(Defect::SameNumber) {
            self.number += protocol.holders as u8;
        }
    }

    pub fn crash(&mut self) {
        let lost = std::mem::replace(&mut self.fetch, Fetch::None);
        if matches!(lost, Fetch::Sent(_) | Fetch::Listed(..)) {
            self.ghost = Some((self.number, lost));
        }
        self.sent.retain(|sent| !sent.is_done);
        (self.known, self.has_crashed) = (Known::default(), true);
        (self.ready, self.running) = (Vec::new(), Vec::new());
    }

    pub fn done(&mut self, protocol: &Protocol) {
        let lease = self.running.remove(0);
        let next = self.order(protocol, |order| order.done(&KEY, *NOW));
        self.ready.extend(next.map(|next| next.message.lease()));
        self.send(End::Ack, vec![lease]);
    }

    /// Ends a handler that failed, or whose lease is known to be lost.
    pub fn failed(&mut self, protocol: &Protocol, is_lost: bool) {
        let lease = self.running.remove(0);
        if protocol.defect == Some(Defect::NothingGoesBack) {
            let next = self.order(protocol, |order| order.done(&KEY, *NOW));
            self.ready.extend(next.map(|next| next.message.lease()));
        } else {
            self.order(protocol, |order| order.failed(&KEY, (!is_lost).then_some(lease)));
        }
        if !is_lost {
            self.send(End::Retry, vec![lease]);
        }
        self.unbar(protocol);
    }

    /// Gives up a ready message that would not start soon.
    pub fn give_up(&mut self, protocol: &Protocol) {
        let lease = self.ready.remove(0);
        self.order(protocol, |order| order.failed(&KEY, Some(lease)));
        self.send(End::Release, vec![lease]);
        self.unbar(protocol);
    }

    /// Gives back all messages that wait behind another message, as a worker does if they have
    /// waited for too long.
    pub fn late(&mut self, protocol: &Protocol) {
        self.order(protocol, Order::close);
        self.unbar(protocol);
    }

    pub fn give_back(&mut self, protocol: &Protocol) {
        let back = self.order(protocol, Order::give_back);
        self.send(End::Release, back);
    }

    fn unbar(&mut self, protocol: &Protocol) {
        if protocol.defect == Some(Defect::NoBar) {
            (self.known.ending, self.known.is_stale) = (Vec::new(), false);
        }
    }

    fn send(&mut self, end: End, leases: Vec<Lease>) {
        self.sent.push(Sent { end, leases, is_done: false });
        self.sent.sort_unstable_by(|a, b| (a.end as u8, &a.leases).cmp(&(b.end as u8, &b.leases)));
    }

    /// Processes the answer to a statement that ends leases.
    pub fn confirm(&mut self, protocol: &Protocol, at: usize) {
        let Sent { end, leases, .. } = self.sent.remove(at);
        if end != End::Ack {
            self.order(protocol, |order| leases.into_iter().for_each(|lease| order.confirm(lease)));
        }
    }
}
