//! Translates the histories of adapters for the checker. A handler becomes a lease, followed by the
//! end that its library requests.

use std::collections::HashMap;

use super::turns::Turns;
use crate::history::{Micros, Op, Outcome, Verb};

/// Lets a late failure also count as an end of the next worker's lease. A handler that failed while
/// another worker held its message may have released that worker's lease. Then the next delivery
/// does not show that the lease was ignored. It shows that the late worker's end had an effect, for
/// which there is a separate rule.
pub fn end_for_holders(ops: &mut [Op], turns: &Turns) {
    for op in ops.iter_mut().filter(|op| op.call.verb == Verb::Retry && op.outcome == Outcome::Unknown) {
        let mut others = Vec::new();
        for (id, attempt) in &op.call.named {
            let of_message = turns.get(&(op.call.queue.clone(), *id)).into_iter().flatten();
            let held =
                of_message.filter(|turn| turn.attempt > *attempt && turn.since < op.began && op.began < turn.ended);
            others.extend(held.map(|turn| (*id, turn.attempt)));
        }
        op.call.named.extend(others);
    }
}

/// Drops extensions of leases that had ended. A library that does not compare the time may answer
/// such extensions with `Ok`, so they prove nothing.
pub fn drop_late_extensions(ops: &mut Vec<Op>, turns: &Turns) {
    ops.retain(|op| {
        let until = |(id, attempt): &(i64, i32)| {
            let of_message = turns.get(&(op.call.queue.clone(), *id)).into_iter().flatten();
            of_message.filter(|turn| turn.attempt == *attempt).filter_map(|turn| turn.until).max()
        };
        op.call.verb != Verb::Extend || op.call.named.iter().filter_map(until).all(|until| op.ended < until)
    });
}

/// Numbers the deliveries of a rival without attempt numbers, in chronological order.
pub fn number(ops: &mut [Op]) {
    let mut counts: HashMap<(String, i64), i32> = HashMap::new();
    let mut handlers: Vec<&mut Op> = ops.iter_mut().filter(|op| op.call.verb == Verb::Handle).collect();
    handlers.sort_by_key(|op| if op.call.since == 0 { op.began } else { op.call.since });
    for op in handlers {
        for (id, attempt) in op.call.named.iter_mut().filter(|(_, attempt)| *attempt == 0) {
            let count = counts.entry((op.call.queue.clone(), *id)).or_default();
            *count += 1;
            *attempt = *count;
        }
    }
}

/// Translates operations. The histories do not show whether the library's end took effect, so it
/// becomes an acknowledgement with an unknown outcome. A handler that did not return has requested
/// no end, so its message must be delivered again.
pub fn translate(ops: &[Op]) -> Vec<Op> {
    let mut translated: Vec<Op> = ops.iter().flat_map(one).collect();
    translated.sort_by(|a, b| (a.began, &a.process, a.nr).cmp(&(b.began, &b.process, b.nr)));
    translated
}

fn one(op: &Op) -> Vec<Op> {
    if op.call.verb != Verb::Handle {
        return vec![op.clone()];
    }
    let mut lease = op.clone();
    lease.call.verb = Verb::Lease;
    lease.call.named.clear();
    lease.call.tags.clear();
    lease.call.n = op.call.named.len() as u64;
    (lease.outcome, lease.ended) = (Outcome::Ok, op.began);
    if op.call.since > 0 {
        lease.began = op.call.since.min(op.began);
    } else {
        // Omits the length of the lease, because the start of the lease is unknown.
        lease.call.ms = 0;
    }
    let deliveries = op.call.named.iter().zip(&op.call.tags);
    lease.got = deliveries.map(|((id, attempt), tag)| (*id, *attempt, *tag)).collect();
    let asks = match op.outcome {
        Outcome::Ok => Verb::Ack,
        Outcome::Failed | Outcome::Dropped => Verb::Retry,
        Outcome::Unknown => return vec![lease],
    };
    let mut end = op.clone();
    (end.call.verb, end.call.ms) = (asks, 0);
    end.call.tags.clear();
    (end.outcome, end.began, end.ended) = (Outcome::Unknown, op.ended, Micros::MAX);
    end.got.clear();
    vec![lease, end]
}
