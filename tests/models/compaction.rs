//! A model of a compaction (`sql/functions/rewrite.sql`). It tries every order of the steps of a
//! few producers, a consumer, an older reader and two compactions. Each session runs one
//! transaction.

use stateright::{Checker, HasDiscoveries, Model, Property};

#[derive(Debug, Clone)]
struct Protocol {
    sessions: Vec<Role>,
    defect: Option<Defect>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Producer,
    Consumer,
    /// A reader whose snapshot is older than its first read of the queue (`repeatable read`).
    Older,
    Compactor,
}

/// Variants of the protocol, each without one of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    /// The compaction's snapshot is older than its lock.
    SnapshotFirst,
    /// The compaction's lock excludes no other session.
    SharedLock,
    /// The compaction truncates the table in a separate transaction.
    TwoTransactions,
    /// The compaction inserts each row twice.
    Twice,
    /// A consumer's snapshot is older than its lock, as in a stable function.
    StableConsumer,
}

/// A set of sessions.
type Sessions = u8;
/// A set of messages, each with the number of its producer.
type Messages = u8;

fn has(set: u8, one: usize) -> bool {
    set & (1 << one) != 0
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    sessions: Vec<Session>,
    committed: Sessions,
    rows: Vec<Row>,
    /// The messages that a committed consumer has deleted.
    taken: Messages,
    /// True if a consumer overlooked a message that existed the whole time.
    overlooked: bool,
    /// True if the older reader saw an empty queue.
    saw_nothing: bool,
}

/// The message of a producer, in one file of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Row {
    message: usize,
    /// The session that inserted the row: the producer, or a compaction.
    inserted: usize,
    deleted: Option<usize>,
}

impl Row {
    fn is_in(&self, snapshot: Sessions) -> bool {
        has(snapshot, self.inserted) && !self.deleted.is_some_and(|by| has(snapshot, by))
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Session {
    stage: Stage,
    /// The sessions that had committed when the snapshot was taken.
    snapshot: Option<Sessions>,
    /// The messages that existed when the transaction began.
    before: Messages,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
enum Stage {
    #[default]
    Begun,
    Locked,
    Worked,
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Snapshot(usize),
    Lock(usize),
    Work(usize),
    Commit(usize),
    RollBack(usize),
}

impl State {
    /// Returns the messages that a new snapshot shows.
    fn there(&self) -> Vec<usize> {
        self.rows.iter().filter(|row| row.is_in(self.committed)).map(|row| row.message).collect()
    }

    fn take(&mut self, at: usize) {
        let Session { snapshot, before, .. } = self.sessions[at];
        let (snapshot, committed) = (snapshot.expect("taken"), self.committed);
        let is_locked = |row: &Row| row.deleted.is_some();
        let found = self.rows.iter().position(|row| row.is_in(snapshot) && !is_locked(row));
        match found {
            Some(found) => self.rows[found].deleted = Some(at),
            None => {
                self.overlooked |= self
                    .rows
                    .iter()
                    .any(|row| has(before, row.message) && has(committed, row.inserted) && !is_locked(row));
            }
        }
    }

    fn rewrite(&mut self, at: usize, defect: Option<Defect>) {
        let snapshot = self.sessions[at].snapshot.expect("taken");
        let copy = |row: &Row| Row { message: row.message, inserted: at, deleted: None };
        let copies: Vec<Row> = self.rows.iter().filter(|row| row.is_in(snapshot)).map(copy).collect();
        if defect == Some(Defect::TwoTransactions) {
            self.rows.clear();
        }
        self.rows.extend(copies.iter().cycle().take(copies.len() * if defect == Some(Defect::Twice) { 2 } else { 1 }));
    }
}

impl Protocol {
    fn takes_snapshot_first(&self, at: usize) -> bool {
        match self.sessions[at] {
            Role::Producer => false,
            Role::Consumer => self.defect == Some(Defect::StableConsumer),
            Role::Older => true,
            Role::Compactor => self.defect == Some(Defect::SnapshotFirst),
        }
    }

    /// Returns true if the session can get its lock immediately.
    fn may_lock(&self, state: &State, at: usize) -> bool {
        let is_exclusive = |at: usize| self.sessions[at] == Role::Compactor && self.defect != Some(Defect::SharedLock);
        let holds = |at: &usize| matches!(state.sessions[*at].stage, Stage::Locked | Stage::Worked);
        (0..self.sessions.len()).filter(holds).all(|holder| !is_exclusive(holder) && !is_exclusive(at))
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let sessions = vec![Session::default(); self.sessions.len()];
        vec![State { sessions, committed: 0, rows: Vec::new(), taken: 0, overlooked: false, saw_nothing: false }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for (at, session) in state.sessions.iter().enumerate() {
            let needs_snapshot = session.snapshot.is_none() && self.sessions[at] != Role::Producer;
            match session.stage {
                Stage::Begun if needs_snapshot && self.takes_snapshot_first(at) => steps.push(Step::Snapshot(at)),
                Stage::Begun => {
                    if self.may_lock(state, at) {
                        steps.push(Step::Lock(at));
                    }
                    if self.sessions[at] == Role::Compactor {
                        steps.push(Step::RollBack(at)); // a compaction may give up, as after a lock timeout
                    }
                }
                Stage::Locked if needs_snapshot => steps.push(Step::Snapshot(at)),
                Stage::Locked => steps.push(Step::Work(at)),
                Stage::Worked => steps.extend([Step::Commit(at), Step::RollBack(at)]),
                Stage::Ended => {}
            }
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Snapshot(at) => state.sessions[at].snapshot = Some(state.committed),
            Step::Lock(at) => state.sessions[at].stage = Stage::Locked,
            Step::Work(at) => {
                match self.sessions[at] {
                    Role::Producer => state.rows.push(Row { message: at, inserted: at, deleted: None }),
                    Role::Consumer => state.take(at),
                    Role::Older => {
                        let snapshot = state.sessions[at].snapshot.expect("taken");
                        state.saw_nothing |= snapshot != 0 && !state.rows.iter().any(|row| row.is_in(snapshot));
                    }
                    Role::Compactor => state.rewrite(at, self.defect),
                }
                state.sessions[at].stage = Stage::Worked;
            }
            Step::Commit(at) => {
                state.committed |= 1 << at;
                let taken = state.rows.iter().filter(|row| row.deleted == Some(at)).map(|row| 1 << row.message);
                state.taken = taken.fold(state.taken, |all, message| all | message);
                if self.sessions[at] == Role::Compactor {
                    state.rows.retain(|row| row.inserted == at);
                }
                state.sessions[at].stage = Stage::Ended;
            }
            Step::RollBack(at) => {
                state.rows.retain(|row| row.inserted != at);
                for row in state.rows.iter_mut().filter(|row| row.deleted == Some(at)) {
                    row.deleted = None;
                }
                state.sessions[at].stage = Stage::Ended;
            }
        }
        if let Step::Snapshot(at) | Step::Lock(at) = step
            && last.sessions[at] == Session::default()
        {
            state.sessions[at].before = last.there().into_iter().fold(0, |all, message| all | 1 << message);
        }
        state.rows.sort_unstable();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONCE, |model: &Self, state: &State| {
                let there = state.there();
                (0..model.sessions.len()).filter(|at| model.sessions[*at] == Role::Producer).all(|message| {
                    let count = there.iter().filter(|one| **one == message).count();
                    count + usize::from(has(state.taken, message)) == usize::from(has(state.committed, message))
                })
            }),
            Property::always(FOUND, |_, state: &State| !state.overlooked),
            Property::sometimes("an older snapshot shows an empty queue", |_, state: &State| state.saw_nothing),
            Property::sometimes("two compactions commit", |model: &Self, state: &State| {
                let committed = |at: &usize| model.sessions[*at] == Role::Compactor && has(state.committed, *at);
                (0..model.sessions.len()).filter(committed).count() == 2
            }),
        ]
    }
}

const ONCE: &str = "each message is there or was taken, once";
const FOUND: &str = "a consumer finds a message that is there";

#[test]
fn no_message_is_lost_or_doubled_or_overlooked_in_any_order() {
    use Role::{Compactor, Consumer, Older, Producer};
    let sessions = vec![Producer, Producer, Consumer, Older, Compactor, Compactor];
    let checked = Protocol { sessions, defect: None }.checker().threads(2).spawn_bfs().join();
    checked.assert_properties();
    assert!(checked.unique_state_count() > 50_000, "{} states", checked.unique_state_count());
}

#[test]
fn each_part_of_the_compaction_is_needed() {
    for (defect, broken) in [
        (Defect::SnapshotFirst, ONCE),
        (Defect::SharedLock, ONCE),
        (Defect::TwoTransactions, ONCE),
        (Defect::Twice, ONCE),
        (Defect::StableConsumer, FOUND),
    ] {
        let sessions = vec![Role::Producer, Role::Producer, Role::Consumer, Role::Compactor];
        let protocol = Protocol { sessions, defect: Some(defect) };
        let checked = protocol.checker().finish_when(HasDiscoveries::AnyOf([broken].into())).spawn_bfs().join();
        assert!(checked.discovery(broken).is_some(), "{defect:?} breaks nothing");
    }
}
