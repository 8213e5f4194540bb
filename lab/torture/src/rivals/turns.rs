//! The turns of a message: who had it from when to when, by the histories alone.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::history::{Micros, Op, Outcome, Verb};

/// A message that the rival's own tables, or a call, say was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub queue: String,
    pub id: i64,
    /// 0 where that is not known.
    pub at: Micros,
}

/// A message in the hands of a worker, from the lease to the end of the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// As reports name it.
    pub op: String,
    pub attempt: i32,
    /// The lease was asked for no earlier; unknown for a worker that does not say when it began.
    pub asked: Option<Micros>,
    /// No earlier than the lease began, and no later than the worker had it.
    pub since: Micros,
    /// The lease has not run out before, whatever happens; unknown for a worker that does not say
    /// when it began.
    pub until: Option<Micros>,
    /// When the work ended, and nothing was asked of the queue before; never, of one that the
    /// process did not live to see.
    pub ended: Micros,
    /// Whether the work succeeded.
    pub is_ok: bool,
    /// A handler: its library ends the message, and the outcome is not in the history.
    pub is_handler: bool,
}

pub type Turns = HashMap<(String, i64), Vec<Turn>>;

/// By queue and message, in the order of their beginnings.
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

/// Who certainly held the message at this time: had it, had not asked for its end, and the lease
/// had not run out.
pub fn holder(turns: &[Turn], at: Micros) -> Option<&Turn> {
    let holds = |turn: &&Turn| turn.since < at && at < turn.ended && turn.until.is_some_and(|until| at < until);
    turns.iter().filter(holds).max_by_key(|turn| (turn.since, turn.attempt))
}

/// Works that ended when somebody else had got their message already.
pub fn late(turns: &Turns) -> usize {
    let is_late = |of_message: &Vec<Turn>, turn: &Turn| {
        let after = |other: &Turn| other.attempt > turn.attempt && other.since < turn.ended;
        turn.ended < Micros::MAX && of_message.iter().any(after)
    };
    turns.values().map(|of_message| of_message.iter().filter(|turn| is_late(of_message, turn)).count()).sum()
}

/// Of these, those that ended while the other certainly held the message: where an end without a
/// fence would show.
pub fn contested(turns: &Turns) -> usize {
    let is_contested = |of_message: &[Turn], turn: &Turn| {
        turn.ended < Micros::MAX && holder(of_message, turn.ended).is_some_and(|held| held.attempt > turn.attempt)
    };
    turns.values().map(|all| all.iter().filter(|turn| is_contested(all, turn)).count()).sum()
}
