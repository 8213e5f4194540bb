//! Indexes the histories by message.

use std::collections::{HashMap, HashSet};

use crate::{
    faults::Fault,
    folder::Evidence,
    history::{Became, Micros, Op, Outcome, Verb},
};

/// The time after a step of the server's clock during which the floor may hide messages.
pub const CLOCK: Micros = 15_000_000;

/// A delivery of a message.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    pub op: &'a Op,
    pub attempt: i32,
    pub tag: u64,
}

impl Delivery<'_> {
    /// Returns true if the delivery is certainly a lease. A handler's lease began somewhat earlier.
    pub fn is_lease(&self) -> bool {
        self.op.call.verb == Verb::Handle || self.op.call.verb == Verb::Lease && self.op.outcome == Outcome::Ok
    }

    /// Returns a time by which the server had certainly delivered the message.
    pub fn by(&self) -> Micros {
        if self.op.call.verb == Verb::Handle { self.op.began } else { self.op.ended }
    }
}

/// The deliveries and ends of a message that the histories contain.
#[derive(Debug, Default)]
pub struct Life<'a> {
    pub deliveries: Vec<Delivery<'a>>,
    /// The calls that name the message, each with the attempt. The attempt is 0 if the call names
    /// only the id.
    pub named: Vec<(&'a Op, i32)>,
}

#[derive(Debug, Clone, Copy)]
pub struct Enqueued<'a> {
    pub op: &'a Op,
    /// The message's id, if the enqueue succeeded.
    pub id: Option<i64>,
}

#[derive(Debug, Default)]
pub struct Queue<'a> {
    pub enqueued: HashMap<u64, Enqueued<'a>>,
    pub lives: HashMap<i64, Life<'a>>,
    pub purges: Vec<&'a Op>,
    /// The takes whose messages are unknown.
    pub unsure_takes: Vec<&'a Op>,
    /// The ids that each table contains at the end.
    pub waiting: HashSet<i64>,
    pub dead: HashSet<i64>,
    pub archive: HashSet<i64>,
}

impl Queue<'_> {
    pub fn is_there(&self, id: i64) -> bool {
        self.waiting.contains(&id) || self.dead.contains(&id) || self.archive.contains(&id)
    }

    pub fn named(&self, id: i64) -> &[(&Op, i32)] {
        self.lives.get(&id).map_or(&[], |life| &life.named)
    }

    /// Returns true if a purge may have removed messages that were in the queue at some time
    /// between `from` and `to`.
    pub fn may_be_purged(&self, from: Micros, to: Micros) -> bool {
        self.purges.iter().any(|purge| purge.may_have_happened() && purge.ended > from && purge.began < to)
    }
}

pub struct Index<'a> {
    pub evidence: &'a Evidence,
    pub queues: HashMap<&'a str, Queue<'a>>,
}

impl<'a> Index<'a> {
    pub fn of(evidence: &'a Evidence) -> Self {
        let mut queues: HashMap<&str, Queue> = HashMap::new();
        for op in &evidence.ops {
            let queue = queues.entry(&op.call.queue).or_default();
            match op.call.verb {
                Verb::Enqueue | Verb::EnqueueIn | Verb::HandOver => {
                    let ids = op.ids.iter().copied().map(Some).chain(std::iter::repeat(None));
                    for (tag, id) in op.call.tags.iter().zip(ids) {
                        queue.enqueued.insert(*tag, Enqueued { op, id });
                    }
                }
                Verb::EnqueueUnique | Verb::Replace => {
                    // If another message has the key, the message of this call must not be
                    // delivered.
                    let id = op.ids.first().filter(|_| op.became != Became::Duplicate).copied();
                    queue.enqueued.extend(op.call.tags.iter().map(|tag| (*tag, Enqueued { op, id })));
                }
                Verb::Purge => queue.purges.push(op),
                Verb::Handle => {
                    for ((id, attempt), tag) in op.call.named.iter().zip(&op.call.tags) {
                        let delivery = Delivery { op, attempt: *attempt, tag: *tag };
                        queue.lives.entry(*id).or_default().deliveries.push(delivery);
                    }
                }
                _ => {}
            }
            if op.call.verb.dequeues() {
                for (id, attempt, tag) in &op.got {
                    let delivery = Delivery { op, attempt: *attempt, tag: *tag };
                    queue.lives.entry(*id).or_default().deliveries.push(delivery);
                }
                let is_unsure = matches!(op.outcome, Outcome::Unknown | Outcome::Dropped) || op.call.verb.repeats();
                if op.call.verb.takes() && is_unsure {
                    queue.unsure_takes.push(op);
                }
            }
            for (id, attempt) in &op.call.named {
                queue.lives.entry(*id).or_default().named.push((op, *attempt));
            }
        }
        let tables = &evidence.tables;
        for left in &tables.waiting {
            queues.entry(&left.queue).or_default().waiting.insert(left.id);
        }
        for left in &tables.dead {
            queues.entry(&left.queue).or_default().dead.insert(left.id);
        }
        for left in &tables.archive {
            queues.entry(&left.queue).or_default().archive.insert(left.id);
        }
        Self { evidence, queues }
    }

    /// Returns true if the server's clock was wrong at some time between `from` and `to`.
    pub fn is_clock_off(&self, from: Micros, to: Micros) -> bool {
        let mut clock = self.evidence.faults.iter().filter(|fault| fault.fault == "clock");
        clock.any(|fault| fault.from < to && fault.to > from)
    }

    /// Returns true if a fault or its after-effects may have delayed or lost a message between
    /// `from` and `to`.
    pub fn is_troubled(&self, from: Micros, to: Micros) -> bool {
        /// The time until all processes are connected again.
        const AFTER: Micros = 8_000_000;
        if self.is_clock_off(from.saturating_sub(CLOCK), to) {
            return true;
        }
        self.evidence
            .faults
            .iter()
            .any(|fault| !Fault::is_quiet(&fault.fault) && fault.from < to && fault.to + AFTER > from)
    }
}

/// Returns true if a call that ends or changes messages took effect on this message. Returns `None`
/// if that is unknown.
pub fn effect_on(op: &Op, id: i64) -> Option<bool> {
    match op.outcome {
        Outcome::Ok => match op.call.verb {
            Verb::Cancel | Verb::Reschedule => Some(op.ids.contains(&id)),
            // It is unknown whether the call changed this message: the call names a page of ids,
            // and some of these messages may have been gone already.
            Verb::Replay | Verb::Discard | Verb::Handle => None,
            _ => Some(!op.lost.contains(&id)),
        },
        Outcome::Failed => Some(false),
        Outcome::Unknown | Outcome::Dropped => None,
    }
}
