//! Checks pauses: no message is delivered between the answer to `pause` and the start of `resume`.

use super::{Rule, index::Index};
use crate::history::{Micros, Op, Outcome, Verb};

pub fn check(index: &Index, rules: &mut Vec<Rule>) {
    let mut given = Rule::new("a message was given out while its queue was paused");
    for (pause, until) in pauses(index) {
        let meanwhile =
            |op: &&Op| op.call.queue == pause.call.queue && op.began > pause.ended && op.ended < until && gives_out(op);
        for op in index.evidence.ops.iter().filter(meanwhile) {
            let (name, verb, after) = (op.name(), op.call.verb, (op.began - pause.ended) / 1000);
            given.broken(|| {
                format!("{}: {verb:?} {name}, {after} ms after the pause {}", pause.call.queue, pause.name())
            });
        }
    }
    rules.push(given);
}

/// Returns each pause, and the earliest time at which a call can have ended it.
fn pauses<'a>(index: &'a Index) -> Vec<(&'a Op, Micros)> {
    let of = |verb: Verb| index.evidence.ops.iter().filter(move |op| op.call.verb == verb);
    let resumes: Vec<&Op> = of(Verb::Resume).filter(|op| op.may_have_happened()).collect();
    let until = |pause: &'a Op| {
        let ends = resumes.iter().filter(|op| op.call.queue == pause.call.queue && op.ended > pause.began);
        // A pause without a resume ends with the run, because then all queues are resumed.
        let until = ends.map(|op| op.began).fold(index.evidence.about.ended, Micros::min);
        (until > pause.ended).then_some((pause, until))
    };
    of(Verb::Pause).filter(|op| op.outcome == Outcome::Ok).filter_map(until).collect()
}

/// Returns true if a statement of this call delivered messages. A stream's messages were leased
/// earlier, and a message that is delivered directly was never in the queue.
fn gives_out(op: &Op) -> bool {
    let is_stream = op.call.verb == Verb::Lease && op.call.ms == 0;
    op.call.verb.dequeues() && op.call.verb != Verb::HandedOver && !is_stream && !op.got.is_empty()
}
