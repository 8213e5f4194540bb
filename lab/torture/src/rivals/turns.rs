//! Derives the turns of a message from the histories alone: which worker had the message, and in
//! which period.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::history::{Micros, Op, Outcome, Verb};

/// A message that was done, according to the rival's own tables or to a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub queue: String,
    pub id: i64,
    /// The time at which the message was done, or 0 if that is unknown.
    pub at: Micros,
}

/// A worker's turn with a message, from the lease to the end of the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The operation's name in reports.
    pub op: String,
    pub attempt: i32,
    /// The earliest time at which the lease can have been requested; `None` if the worker does not
    /// report it.
    pub asked: Option<Micros>,
    /// A time between the start of the lease and the worker's receipt of the message.
    pub since: Micros,
    /// The earliest time at which the lease can expire; `None` if the worker does not report the
    /// start of the lease.
    pub until: Option<Micros>,
    /// The time at which the work ended. Before it, the worker requested nothing from the queue.
    /// The time is `Micros::MAX` if the process died first.
    pub ended: Micros,
    pub is_ok: bool,
    /// Set for a handler, whose library ends the message. The history lacks the outcome of that
    /// end.
    pub is_handler: bool,
}

pub type Turns = HashMap<(String, i64), Vec<Turn>>;

/// Returns the turns by queue and message, ordered by their start.
pub fn of(ops: &[Op]) -> Turns {
    let mut turns = Turns::new();
    for op in ops {
        match op.call.verb {
            Verb::Handle => {
                let since = if op.call.since == 0 { op.began } else { op.call.since.min(op.began) };
                let until = (op.call.since > 0 && op.call.ms > 0).then(|| since + op.call.ms * 1000);
                for (id, attempt) in &op.call.named {
                    let is_ok = op.outcome == Outcome::Ok;
                    let asked = (op.call.since > 0).then_some(since);
                    let (by, attempt, ended) = (op.name(), *attempt, op.ended);
                    let turn = Turn { op: by, attempt, asked, since, until, ended, is_ok, is_handler: true };
                    turns.entry((op.call.queue.clone(), *id)).or_default().push(turn);
                }
            }
            Verb::Lease if op.outcome == Outcome::Ok => {
                for (id, attempt, _) in &op.got {
                    let until = Some(op.began + op.call.ms * 1000);
                    let (by, attempt, asked) = (op.name(), *attempt, Some(op.began));
                    let turn = Turn {
                        op: by,
                        attempt,
                        asked,
                        since: op.ended,
                        until,
                        ended: Micros::MAX,
                        is_ok: false,
                        is_handler: false,
                    };
                    turns.entry((op.call.queue.clone(), *id)).or_default().push(turn);
                }
            }
            _ => {}
        }
    }
    for (op, (id, attempt)) in ops.iter().flat_map(|op| op.call.named.iter().map(move |named| (op, *named))) {
        let asked = if op.call.verb.ends() { turns.get_mut(&(op.call.queue.clone(), id)) } else { None };
        for turn in asked.into_iter().flatten().filter(|turn| turn.attempt == attempt && turn.ended > op.began) {
            turn.ended = op.began;
        }
    }
    for of_message in turns.values_mut() {
        of_message.sort_by_key(|turn| (turn.since, turn.attempt));
    }
    turns
}

/// Returns the turn that certainly held the message at this time. Its worker had the message and
/// had not requested its end, and the lease had not expired.
pub fn holder(turns: &[Turn], at: Micros) -> Option<&Turn> {
    let holds = |turn: &&Turn| turn.since < at && at < turn.ended && turn.until.is_some_and(|until| at < until);
    turns.iter().filter(holds).max_by_key(|turn| (turn.since, turn.attempt))
}

/// Counts the turns whose work ended after another worker had received the message.
pub fn late(turns: &Turns) -> usize {
    let is_late = |of_message: &Vec<Turn>, turn: &Turn| {
        let after = |other: &Turn| other.attempt > turn.attempt && other.since < turn.ended;
        turn.ended < Micros::MAX && of_message.iter().any(after)
    };
    turns.values().map(|of_message| of_message.iter().filter(|turn| is_late(of_message, turn)).count()).sum()
}

/// Counts the late turns whose work ended while another worker certainly held the message. These
/// turns would reveal an end without a fence.
pub fn contested(turns: &Turns) -> usize {
    let is_contested = |of_message: &[Turn], turn: &Turn| {
        turn.ended < Micros::MAX && holder(of_message, turn.ended).is_some_and(|held| held.attempt > turn.attempt)
    };
    turns.values().map(|all| all.iter().filter(|turn| is_contested(all, turn)).count()).sum()
}
