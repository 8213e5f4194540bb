//! The steps of a history, and their effects on the model.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::SystemTime,
};

use proptest::prelude::{Just, Strategy, any, prop_oneof};
use trunkline::{Lease, Metadata};

pub const MAX_ATTEMPTS: i32 = 3;

/// Returns the metadata for a payload: some messages have metadata.
pub fn beside(payload: i64) -> Metadata {
    match payload % 3 {
        0 => Metadata::new().with("payload", payload.to_string()),
        _ => Metadata::new(),
    }
}

#[derive(Debug, Clone)]
pub enum Step {
    Enqueue,
    EnqueueMany {
        count: usize,
        delayed: bool,
    },
    Take {
        n: usize,
    },
    ExactlyOnce {
        n: usize,
        commit: bool,
    },
    Lease {
        n: usize,
    },
    /// Ends some of the leases that are held. If `late` is set, chooses from all leases that were
    /// ever granted.
    End {
        how: End,
        which: u16,
        late: bool,
    },
    /// Lets about an hour pass: leases expire, or everything becomes due.
    Pass {
        leases_only: bool,
    },
    Replay {
        which: u16,
    },
    Discard {
        which: u16,
    },
    /// Cancels some of the waiting and leased messages in a transaction, which is committed or
    /// rolled back.
    Cancel {
        which: u16,
        commit: bool,
    },
    /// Makes some of these messages due now or in about an hour.
    Reschedule {
        which: u16,
        delayed: bool,
    },
}

#[derive(Debug, Clone, Copy)]
pub enum End {
    Ack,
    AckIn { commit: bool },
    Archive,
    Release,
    Retry { delayed: bool },
    Extend,
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let n = 1..8_usize;
    let end = prop_oneof![
        4 => Just(End::Ack),
        2 => any::<bool>().prop_map(|commit| End::AckIn { commit }),
        1 => Just(End::Archive),
        1 => Just(End::Release),
        3 => any::<bool>().prop_map(|delayed| End::Retry { delayed }),
        1 => Just(End::Extend),
    ];
    let step = prop_oneof![
        1 => Just(Step::Enqueue),
        4 => (0..12_usize, proptest::bool::weighted(0.2)).prop_map(|(count, delayed)| Step::EnqueueMany { count, delayed }),
        2 => n.clone().prop_map(|n| Step::Take { n }),
        2 => (n.clone(), any::<bool>()).prop_map(|(n, commit)| Step::ExactlyOnce { n, commit }),
        5 => n.prop_map(|n| Step::Lease { n }),
        7 => (end, any::<u16>(), proptest::bool::weighted(0.3)).prop_map(|(how, which, late)| Step::End { how, which, late }),
        3 => any::<bool>().prop_map(|leases_only| Step::Pass { leases_only }),
        1 => any::<u16>().prop_map(|which| Step::Replay { which }),
        1 => any::<u16>().prop_map(|which| Step::Discard { which }),
        1 => (any::<u16>(), any::<bool>()).prop_map(|(which, commit)| Step::Cancel { which, commit }),
        2 => (any::<u16>(), any::<bool>()).prop_map(|(which, delayed)| Step::Reschedule { which, delayed }),
    ];
    proptest::collection::vec(step, 1..30)
}

/// A message in the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    pub payload: i64,
    pub attempt: i32,
    /// The number of attempts that were given back.
    pub released: i32,
    pub failed: bool,
    /// True if the message is due now; otherwise it is due in about an hour.
    pub is_due: bool,
    /// The due time as read back after the step that set it. `None` while that step runs.
    pub due_at: Option<SystemTime>,
}

impl Known {
    fn attempts(&self) -> i32 {
        self.attempt - self.released
    }
}

#[derive(Debug, Default)]
pub struct Model {
    pub messages: BTreeMap<i64, Known>,
    pub dead: BTreeMap<i64, (i64, i32, String)>,
    /// The number of the last attempt of each dead message, from which a replay continues.
    pub last_attempt: BTreeMap<i64, i32>,
    pub archived: BTreeMap<i64, (i64, i32)>,
    pub given: BTreeSet<Lease>,
    pub next_payload: i64,
}

impl Model {
    pub fn enqueued(&mut self, ids: &[i64], delayed: bool) {
        for id in ids {
            self.next_payload += 1;
            let known = Known {
                payload: self.next_payload,
                attempt: 0,
                released: 0,
                failed: false,
                is_due: !delayed,
                due_at: None,
            };
            assert_eq!(self.messages.insert(*id, known), None, "ids are unique");
        }
    }

    /// Returns the next `n` due messages in order. A message before or between them that has no
    /// attempts left becomes dead.
    pub fn dequeue(&mut self, n: usize) -> Vec<i64> {
        self.next(n, false)
    }

    /// Like `dequeue`, but a message whose lease expired comes alone.
    pub fn lease(&mut self, n: usize) -> Vec<i64> {
        self.next(n, true)
    }

    fn next(&mut self, n: usize, apart: bool) -> Vec<i64> {
        let mut due: Vec<_> = self.messages.iter().filter(|(_, known)| known.is_due).collect();
        due.sort_by_key(|(id, known)| (known.due_at, **id));
        let mut ids = Vec::new();
        let mut spent = Vec::new();
        for (id, known) in due {
            if ids.len() == n {
                break;
            }
            if known.attempts() >= MAX_ATTEMPTS {
                spent.push(*id);
                continue;
            }
            let is_alone = apart && known.attempt > 0 && !known.failed;
            if !is_alone || ids.is_empty() {
                ids.push(*id);
            }
            if is_alone {
                break;
            }
        }
        for id in spent {
            // An expired lease counts as a failure if its message was rescheduled.
            let is_failed = self.messages[&id].failed;
            self.bury(id, if is_failed { "the lease expired" } else { "the lease of the last attempt expired" });
        }
        ids
    }

    fn bury(&mut self, id: i64, reason: &str) {
        let known = self.messages.remove(&id).expect("known");
        self.last_attempt.insert(id, known.attempt);
        self.dead.insert(id, (known.payload, known.attempts(), reason.to_owned()));
    }

    pub fn is_held(&self, lease: &Lease) -> bool {
        let held =
            |known: &Known| known.attempt == lease.attempt && lease.attempt > 0 && !known.failed && !known.is_due;
        self.messages.get(&lease.id).is_some_and(held)
    }

    /// Reschedules messages and returns their ids. Leased messages stay unchanged. An expired lease
    /// counts as a failure if the message is due later.
    pub fn reschedule(&mut self, ids: &[i64], delayed: bool) -> Vec<i64> {
        let mut moved = Vec::new();
        for id in ids {
            let known = self.messages.get_mut(id).expect("known");
            if !known.is_due && known.attempt > 0 && !known.failed {
                continue;
            }
            moved.push(*id);
            if delayed {
                (known.failed, known.is_due, known.due_at) = (known.attempt > 0, false, None);
            } else if !known.is_due {
                (known.is_due, known.due_at) = (true, None);
            }
        }
        moved
    }

    pub fn leases(&self, which: u16, late: bool) -> Vec<Lease> {
        let some = self.given.iter().filter(|lease| late || self.is_held(lease)).enumerate();
        some.filter(|(nr, _)| which >> (nr % 16) & 1 == 1).map(|(_, lease)| *lease).collect()
    }

    pub fn end(&mut self, how: End, lease: Lease) {
        let known = self.messages.get_mut(&lease.id).expect("held");
        known.due_at = None;
        match how {
            End::Ack | End::AckIn { commit: true } => drop(self.messages.remove(&lease.id)),
            End::AckIn { commit: false } => unreachable!("nothing ends"),
            End::Archive => {
                let known = self.messages.remove(&lease.id).expect("held");
                self.archived.insert(lease.id, (known.payload, known.attempts()));
            }
            End::Release => {
                known.released += 1;
                (known.failed, known.is_due) = (true, true);
            }
            End::Retry { .. } if known.attempts() >= MAX_ATTEMPTS => self.bury(lease.id, "no"),
            End::Retry { delayed } => (known.failed, known.is_due) = (true, !delayed),
            End::Extend => {}
        }
    }
}
