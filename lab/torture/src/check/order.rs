//! Checks what the only consumer of a queue sees: the order of messages, and messages that are
//! hidden or late.

use std::collections::{BTreeSet, HashMap};

use super::{
    Rule,
    index::{CLOCK, Index},
};
use crate::{
    history::{Micros, Op, Outcome, Verb},
    plan,
    tag::priority,
};

/// The maximum time for which a message may be hidden. The floor hides no message; this second
/// allows for the session of a lost connection.
const HIDDEN: Micros = 1_000_000;
/// The maximum time until a listener receives a message. A notification arrives immediately, while
/// the next poll is up to half a minute away.
const LATE: Micros = 2_000_000;
/// The time for which a statement may still hold its locks after its answer was lost.
const GRACE: Micros = 4_000_000;

pub fn check(index: &Index, rules: &mut Vec<Rule>) {
    let mut order = Rule::new("a message overtook another that was due before it and visible");
    let mut hidden = Rule::new("a message was hidden from dequeues for longer than the floor promises");
    let mut late = Rule::new("a consumer that listens slept over a message");
    check_order(index, plan::FIFO, &mut order, &mut hidden);
    check_order(index, plan::RANKED, &mut order, &mut hidden);
    check_bell(index, &mut late);
    rules.extend([order, hidden, late]);
}

/// The time at which a message became due and visible, as a range.
struct Due {
    low: Micros,
    high: Micros,
    /// The time from which the message is behind messages of the highest priority that are due at
    /// the same time.
    behind: Micros,
    /// Set if the message was enqueued or delivered while the server's clock was wrong, or shortly
    /// afterwards.
    is_skewed: bool,
    name: String,
}

/// Returns the time by which aging moves a message back in the order, and the possible error of
/// that time. The error arises because rows of two priorities are not fetched one by one.
fn head_start(queue: &str, tag: u64) -> (Micros, Micros) {
    let head_start = plan::AGING.as_micros() as Micros;
    let steps = plan::PRIORITIES - 1 - u32::from(priority(tag));
    if queue == plan::RANKED { (Micros::from(steps) * head_start, head_start / 16) } else { (0, 0) }
}

fn check_order(index: &Index, name: &str, order: &mut Rule, hidden: &mut Rule) {
    let Some(queue) = index.queues.get(name) else { return };
    let of_queue = |op: &&Op| op.call.queue == name;
    let dequeues: Vec<&Op> = index.evidence.ops.iter().filter(of_queue).filter(|op| op.call.verb.dequeues()).collect();
    // During these times, a call with an unknown outcome may hold a lock or a lease.
    let unsure: Vec<(Micros, Micros)> = index
        .evidence
        .ops
        .iter()
        .filter(of_queue)
        .filter(|op| !matches!(op.call.verb, Verb::Enqueue | Verb::EnqueueIn) && op.outcome != Outcome::Ok)
        .map(|op| (op.began, if op.ended == Micros::MAX { op.began } else { op.ended }.saturating_add(GRACE)))
        .collect();
    // The first delivery of each message, if the message was never leased before.
    let mut first: HashMap<u64, &Op> = HashMap::new();
    for op in dequeues.iter().filter(|op| op.outcome == Outcome::Ok) {
        for (_, attempt, tag) in &op.got {
            let untouched = *attempt == i32::from(op.call.verb == Verb::Lease);
            if untouched {
                first.entry(*tag).or_insert(op);
            }
        }
    }
    let mut due: HashMap<u64, Due> = HashMap::new();
    for (tag, enqueued) in queue.enqueued.iter().filter(|(_, enqueued)| enqueued.op.outcome == Outcome::Ok) {
        let (op, delay) = (enqueued.op, enqueued.op.call.ms * 1000);
        let name = format!("{name}: message {} (tag {tag})", enqueued.id.unwrap_or_default());
        let (behind, _) = head_start(&op.call.queue, *tag);
        let delivered = first.get(tag).map_or(op.ended, |delivered| delivered.ended);
        let is_skewed = index.is_clock_off(op.began.saturating_sub(CLOCK), delivered);
        due.insert(*tag, Due { low: op.began + delay, high: op.ended + delay, behind, is_skewed, name });
    }
    let mut to_come: Vec<(Micros, u64)> = first.keys().filter_map(|tag| Some((due.get(tag)?.high, *tag))).collect();
    to_come.sort_unstable_by(|a, b| b.cmp(a));
    let (mut visible, mut missed): (BTreeSet<(Micros, u64)>, HashMap<u64, Micros>) = (BTreeSet::new(), HashMap::new());
    for op in dequeues.iter().filter(|op| op.outcome == Outcome::Ok) {
        while let Some((high, tag)) = to_come.pop_if(|(high, _)| *high < op.began) {
            visible.insert((high + due[&tag].behind, tag));
        }
        for (_, _, tag) in &op.got {
            if let Some(due) = due.get(tag) {
                visible.remove(&(due.high + due.behind, *tag));
            }
            missed.remove(tag);
        }
        if unsure.iter().any(|(from, to)| *from < op.ended && *to > op.began) {
            missed.clear();
            continue;
        }
        let still = |(_, tag): &&(Micros, u64)| first.get(tag).is_some_and(|delivered| delivered.began > op.ended);
        let oldest = visible.iter().filter(still).find(|(_, tag)| !due[tag].is_skewed);
        if let Some((high, oldest)) = oldest {
            let (_, inexact) = head_start(name, *oldest);
            let overtook = op
                .got
                .iter()
                .filter_map(|(_, _, tag)| due.get(tag))
                .find(|other| other.low + other.behind > *high + inexact && !other.is_skewed);
            if let Some(overtook) = overtook {
                order.broken(|| format!("{} by {}, in {}", due[oldest].name, overtook.name, op.name()));
            }
        }
        if (op.got.len() as u64) < op.call.n {
            for (_, tag) in visible.iter().filter(still) {
                let since = *missed.entry(*tag).or_insert(op.began);
                let longest = if due[tag].is_skewed { CLOCK } else { HIDDEN };
                if op.began.saturating_sub(since) > longest {
                    missed.insert(*tag, Micros::MAX / 2); // reports each message only once
                    hidden.broken(|| format!("{}, {} ms, by {}", due[tag].name, (op.began - since) / 1000, op.name()));
                }
            }
        }
    }
}

fn check_bell(index: &Index, late: &mut Rule) {
    let Some(queue) = index.queues.get(plan::BELL) else { return };
    for (id, life) in &queue.lives {
        for delivery in life.deliveries.iter().filter(|delivery| delivery.op.outcome == Outcome::Ok) {
            let Some(enqueued) = queue.enqueued.get(&delivery.tag) else { continue };
            let (from, to) = (enqueued.op.ended, delivery.op.ended);
            let waited = to.saturating_sub(from);
            let listened = delivery.op.began < from && !delivery.op.process.starts_with("drain");
            if enqueued.id.is_some() && listened && waited > LATE && !index.is_troubled(from, to) {
                late.broken(|| {
                    format!("message {id}, {} ms after its enqueue, by {}", waited / 1000, delivery.op.name())
                });
            }
        }
    }
}
