//! Plans rows that send messages while each fsync takes a minimum time.

use super::{NEAREST, Plan, named, plan, throughput::among};
use crate::Choice;

/// The minimum durations of an fsync in milliseconds; 0 leaves the disk as it is.
const LEAST: [f64; 4] = [0.0, 1.0, 5.0, 20.0];
const OURS: [&str; 2] = ["trunkline", "trunkline-bytea"];
/// A number of callers that every peer supports, because each of its callers needs a connection.
const CALLERS: usize = 64;
/// A number of callers for Trunkline alone, whose callers share connections and commits.
const MORE_CALLERS: usize = 1024;

pub(super) fn fsync(choice: &Choice) -> Vec<Plan> {
    let everybody: Vec<&str> = OURS.into_iter().chain(NEAREST).collect();
    let crowds: Vec<(usize, &[&str])> = match choice.callers.as_slice() {
        [] => vec![(CALLERS, &everybody), (MORE_CALLERS, &OURS)],
        asked => asked.iter().map(|callers| (*callers, everybody.as_slice())).collect(),
    };
    let mut plans = Vec::new();
    for (callers, contenders) in crowds {
        for least in LEAST {
            for contender in contenders {
                let time = if least > 0.0 { format!("{least} ms an fsync") } else { "the disk as it is".to_owned() };
                let case = format!("{}, {time}", among("send", callers));
                let mut plan = plan("fsync", case, named(contender), "send", choice);
                (plan.told.producers, plan.told.fsync_ms) = (callers, Some(least));
                (plan.rounds, plan.told.seconds) = if choice.quick { (1, 2.0) } else { (plan.rounds, 5.0) };
                plans.push(plan);
            }
        }
    }
    plans
}
