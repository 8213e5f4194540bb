//! Checks the limits of a queue over all processes: the number of leased messages, and the messages
//! per second.

use super::{
    Rule,
    index::{Index, effect_on},
    leases::runs_until,
};
use crate::{
    history::{Micros, Op, Outcome, Verb},
    plan::{self, BURST, MAX_LEASED, PER_SECOND},
};

/// The maximum duration over which messages are counted. An excess in a longer period also shows in
/// a shorter part of it.
const WINDOW: Micros = 5_000_000;

pub fn check(index: &Index, rules: &mut Vec<Rule>) {
    let mut leased = Rule::new("more messages were leased than the limit allows");
    let mut rate = Rule::new("more messages were dequeued in a time than the limit allows");
    check_leased(index, &mut leased);
    check_rate(index, &mut rate);
    rules.extend([leased, rate]);
}

/// Returns true if the limits apply to the call. They do not apply to the final drain of the
/// queues.
fn is_limited(op: &Op) -> bool {
    op.outcome == Outcome::Ok && !op.process.starts_with("drain")
}

/// Counts the messages that were certainly leased. A lease counts from the answer until the time at
/// which it may have ended.
fn check_leased(index: &Index, leased: &mut Rule) {
    let Some(queue) = index.queues.get(plan::CAPPED) else { return };
    let mut changes: Vec<(Micros, i64, &Op)> = Vec::new();
    for (id, life) in &queue.lives {
        for delivery in life.deliveries.iter().filter(|one| one.is_lease() && is_limited(one.op)) {
            let Some(runs_until) = runs_until(life, *id, delivery) else { continue };
            let ends = life.named.iter().filter(|(op, attempt)| {
                let names = *attempt == delivery.attempt && op.call.verb.ends() || op.call.verb == Verb::Cancel;
                names && effect_on(op, *id) != Some(false)
            });
            let until = ends.map(|(op, _)| op.began).fold(runs_until, Micros::min);
            if until > delivery.by() && !index.is_clock_off(delivery.op.began, until) {
                changes.extend([(delivery.by(), 1, delivery.op), (until, -1, delivery.op)]);
            }
        }
    }
    changes.sort_by_key(|(at, change, _)| (*at, *change));
    let mut held = 0;
    for (_, change, op) in changes {
        held += change;
        if change > 0 && held > i64::from(MAX_LEASED) {
            leased.broken(|| format!("{held} of {MAX_LEASED}, with the answer to {}", op.name()));
        }
    }
}

/// Checks each period from the start of one call to the end of another. Only calls within the
/// period count.
fn check_rate(index: &Index, rate: &mut Rule) {
    let gave = |op: &&Op| {
        let dequeues = op.call.queue == plan::METERED && op.call.verb.dequeues() && !op.got.is_empty();
        dequeues && is_limited(op)
    };
    let ops: Vec<&Op> = index.evidence.ops.iter().filter(gave).collect();
    let mut told = 0;
    for (at, first) in ops.iter().enumerate() {
        if first.began < told {
            continue;
        }
        let mut within: Vec<&&Op> = ops[at..].iter().take_while(|op| op.began < first.began + WINDOW).collect();
        within.sort_by_key(|op| op.ended);
        let mut count = 0;
        for last in within {
            count += last.got.len();
            let time = last.ended - first.began;
            let allowed = f64::from(BURST) + PER_SECOND * time as f64 / 1e6;
            if count as f64 > allowed + 0.01 && !index.is_clock_off(first.began, last.ended) {
                rate.broken(|| {
                    format!(
                        "{count} in {} ms, {allowed:.1} allowed, from {} to {}",
                        time / 1000,
                        first.name(),
                        last.name()
                    )
                });
                told = last.ended;
                break;
            }
        }
    }
}
