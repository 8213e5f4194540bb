//! A model of the floor's protocol. It tries every order of the steps of a few writers and probes.
//! The real [`Floor`] evaluates the probes. See docs/design/dequeue.md.

use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model, Property};

use super::{Floor, Look};
use crate::postgres::time::Time;

/// The maximum value of the clock.
const END: i64 = 2;
/// The first transaction id.
const FIRST: i64 = 1;

/// The number of writers, and the number of probes that one process may have in flight.
#[derive(Debug, Clone)]
struct Protocol {
    writers: usize,
    looks: usize,
    /// Set to also count the probes that the floor needs to catch up. The count increases the
    /// number of states.
    counted: bool,
    defect: Option<Defect>,
}

/// Variants of the protocol, each without one of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    /// A candidate becomes the floor although older writers are still running.
    NoWait,
    /// The floor waits only for writers up to the last ended transaction, as with
    /// `pg_snapshot_xmax`.
    XmaxOfSnapshot,
    /// A writer reads the clock before its transaction has an id.
    ClockBeforeId,
    /// Rows of older writers do not hold the floor down.
    NothingLeft,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    clock: i64,
    next_id: i64,
    last_ended: i64,
    writers: Vec<Writer>,
    looks: Vec<Progress>,
    reached: i64,
    pending: Option<(i64, i64)>,
    /// The number of consecutive probes since the last writer began or ended, and the clock at the
    /// start of the first of these probes.
    quiet: (u8, i64),
}

/// A transaction that writes one row. Later, the row itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Writer {
    Idle,
    /// The transaction is open, with an id, a due time, or both. `old` is the due time of a row
    /// that the transaction rewrites, as a lease or a retry does.
    Open {
        id: Option<i64>,
        due: Option<i64>,
        old: Option<i64>,
    },
    /// The row is committed. The first writer's row can be leased once.
    Row {
        due: i64,
        again: bool,
    },
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Progress {
    Idle,
    /// The statement has started, and has read `now()`.
    Began {
        now: i64,
        floor: i64,
    },
    /// The probe's statement has taken its snapshot.
    Seen {
        now: i64,
        oldest: Option<i64>,
        running: i64,
        ended: i64,
    },
    /// The probe has read the next transaction id, and its answer has not arrived yet.
    Told {
        oldest: Option<i64>,
        candidate: i64,
        running: i64,
        next: i64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The clock advances.
    Tick,
    /// A writer starts, or a lease of its row starts.
    Id(usize),
    /// The writer reads the clock. Its row is due at that time plus the second number.
    Draw(usize, i64),
    Commit(usize),
    RollBack(usize),
    /// A consumer takes a due row at or above the floor.
    Take(usize),
    /// A probe advances by one step.
    Look(usize),
}

impl Writer {
    /// Returns the id of the running transaction.
    fn id(&self) -> Option<i64> {
        if let Self::Open { id, .. } = self { *id } else { None }
    }

    /// Returns the due time of the row that other transactions see.
    fn visible(&self) -> Option<i64> {
        match self {
            Self::Row { due, .. } => Some(*due),
            Self::Open { old, .. } => *old,
            Self::Idle | Self::Gone => None,
        }
    }
}

impl State {
    fn oldest(&self, floor: i64) -> Option<i64> {
        self.writers.iter().filter_map(Writer::visible).filter(|due| *due >= floor).min()
    }

    fn look(&mut self, at: usize, protocol: &Protocol) {
        let defect = protocol.defect;
        self.looks[at] = match self.looks[at] {
            Progress::Idle => {
                if protocol.counted {
                    self.quiet = (3.min(self.quiet.0 + 1), if self.quiet.0 == 0 { self.clock } else { self.quiet.1 });
                }
                Progress::Began { now: self.clock, floor: self.reached }
            }
            Progress::Began { now, floor } => {
                let running = self.writers.iter().filter_map(Writer::id).min().unwrap_or(self.next_id);
                let ended = if defect == Some(Defect::XmaxOfSnapshot) { self.last_ended } else { 0 };
                Progress::Seen { now, oldest: self.oldest(floor), running, ended }
            }
            Progress::Seen { now, oldest, running, ended } => {
                let oldest = oldest.filter(|_| defect != Some(Defect::NothingLeft));
                let next = match defect {
                    Some(Defect::NoWait) => FIRST,
                    Some(Defect::XmaxOfSnapshot) => ended + 1,
                    _ => self.next_id,
                };
                let candidate = oldest.map_or(now, |oldest| oldest.min(now));
                Progress::Told { oldest, candidate, running, next }
            }
            Progress::Told { oldest, candidate, running, next } => {
                let mut floor = Floor::new(Instant::now(), Time(self.reached));
                floor.pending = self.pending.map(|(candidate, next)| (Time(candidate), next));
                let look = Look { oldest: oldest.map(Time), candidate: Time(candidate), running, next };
                floor.saw(look, floor.looked, Duration::ZERO);
                self.reached = floor.reached.0;
                self.pending = floor.pending.map(|(candidate, next)| (candidate.0, next));
                Progress::Idle
            }
        };
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            clock: 0,
            next_id: FIRST,
            last_ended: 0,
            writers: vec![Writer::Idle; self.writers],
            looks: vec![Progress::Idle; self.looks],
            reached: Time::EARLIEST.0,
            pending: None,
            quiet: (0, 0),
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.clock < END {
            steps.push(Step::Tick);
        }
        let early = self.defect == Some(Defect::ClockBeforeId);
        for (at, writer) in state.writers.iter().enumerate() {
            match *writer {
                Writer::Idle if early => steps.extend([Step::Draw(at, 0)]),
                Writer::Idle | Writer::Open { id: None, .. } => steps.push(Step::Id(at)),
                Writer::Open { due: None, .. } => {
                    steps.extend([Step::Draw(at, 0), Step::Draw(at, 1), Step::RollBack(at)]);
                }
                Writer::Open { .. } => steps.extend([Step::Commit(at), Step::RollBack(at)]),
                Writer::Row { due, again } if due >= state.reached && due <= state.clock => {
                    steps.push(Step::Take(at));
                    if again && at == 0 && !early {
                        steps.push(Step::Id(at));
                    }
                }
                Writer::Row { .. } | Writer::Gone => {}
            }
        }
        steps.extend((0..self.looks).map(Step::Look));
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Tick => state.clock += 1,
            Step::Look(at) => state.look(at, self),
            Step::Id(at) | Step::Draw(at, _) | Step::Commit(at) | Step::RollBack(at) | Step::Take(at) => {
                let before = state.writers[at];
                state.quiet = (0, 0);
                state.writers[at] = match (step, before) {
                    (Step::Take(_), _) | (Step::RollBack(_), Writer::Open { old: None, .. }) => Writer::Gone,
                    (Step::RollBack(_), Writer::Open { old: Some(due), .. }) => Writer::Row { due, again: false },
                    (Step::Commit(_), Writer::Open { due: Some(due), old, .. }) => {
                        Writer::Row { due, again: old.is_none() }
                    }
                    (Step::Draw(_, delay), Writer::Open { id, old, .. }) => {
                        Writer::Open { id, due: Some(state.clock + delay), old }
                    }
                    (Step::Draw(_, delay), _) => Writer::Open { id: None, due: Some(state.clock + delay), old: None },
                    (_, Writer::Open { due, old, .. }) => Writer::Open { id: Some(state.next_id), due, old },
                    (_, before) => Writer::Open { id: Some(state.next_id), due: None, old: before.visible() },
                };
                if matches!(step, Step::Id(_)) {
                    state.next_id += 1;
                }
                if state.writers[at].id().is_none() {
                    state.last_ended = state.last_ended.max(before.id().unwrap_or(0));
                }
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(HIDDEN, |_, state: &State| {
                state.writers.iter().filter_map(Writer::visible).all(|due| due >= state.reached)
            }),
            Property::sometimes("the floor rises to the last of the clock", |_, state: &State| state.reached == END),
        ];
        if self.counted {
            properties.push(Property::sometimes("a row keeps it down", |_, state: &State| {
                state.quiet.0 == 3 && state.clock == END && state.reached == 0
            }));
            properties.push(Property::always(BOUND, |_, state: &State| {
                let low = state.oldest(state.reached).map_or(state.quiet.1, |oldest| oldest.min(state.quiet.1));
                let is_open = |writer: &Writer| matches!(writer, Writer::Open { .. });
                state.quiet.0 < 3 || state.writers.iter().any(is_open) || state.reached >= low
            }));
        }
        properties
    }
}

const HIDDEN: &str = "no row lies below the floor";
/// The model checks this when a third probe starts, because the answers of the first two have
/// arrived by then.
const BOUND: &str = "it follows within two looks, once no writer is left";

#[test]
fn floor_follows_and_no_row_is_below_in_any_order() {
    for (writers, looks, counted) in [(1, 1, true), (2, 1, false), (1, 2, false)] {
        let checked = Protocol { writers, looks, counted, defect: None }.checker().threads(2).spawn_bfs().join();
        checked.assert_properties();
        assert!(checked.unique_state_count() > 10_000, "{} states", checked.unique_state_count());
    }
}

#[test]
fn each_part_of_the_protocol_is_needed() {
    for defect in [Defect::NoWait, Defect::XmaxOfSnapshot, Defect::ClockBeforeId, Defect::NothingLeft] {
        let protocol = Protocol { writers: 2, looks: 1, counted: false, defect: Some(defect) };
        let checked = protocol.checker().finish_when(HasDiscoveries::AnyOf([HIDDEN].into())).spawn_bfs().join();
        assert!(checked.discovery(HIDDEN).is_some(), "{defect:?} hides no row");
    }
}
