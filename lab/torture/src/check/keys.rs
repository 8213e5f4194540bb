//! Checks keys: the messages of a key are handled in order, one after another, and a partition has
//! one holder.

use std::collections::HashMap;

use super::{
    Rule,
    index::{CLOCK, Enqueued, Index, Life, Queue, effect_on},
};
use crate::{
    history::{Micros, Op, Outcome, Verb},
    plan::{self, LEASE},
    tag,
};

pub(super) fn check(index: &Index, rules: &mut Vec<Rule>) {
    let mut overtook = Rule::new("a message of a key began before one ahead of it was done");
    let mut together = Rule::new("two messages of a key were handled at the same time");
    let mut late = Rule::new("a lane was read on when its holder's time was over");
    if let Some(queue) = index.queues.get(plan::KEYED) {
        for (key, messages) in messages(queue) {
            check_order(index, &key, &messages, &mut overtook);
            check_together(index, &key, &messages, &mut together);
        }
    }
    check_late(index, &mut late);
    rules.extend([overtook, together, late]);
}

struct Message<'a> {
    id: i64,
    enqueue: &'a Op,
    /// The message's position among the messages of its call.
    at: usize,
    /// The earliest time that can be the message's position in the order.
    low: Micros,
    /// The latest time that can be this position.
    high: Micros,
    /// The earliest time at which the message may have been handled or ended.
    done: Micros,
    begins: Vec<&'a Op>,
}

fn messages<'a>(queue: &Queue<'a>) -> HashMap<String, Vec<Message<'a>>> {
    let mut keys: HashMap<String, Vec<Message>> = HashMap::new();
    for (tag, enqueued) in &queue.enqueued {
        let Enqueued { op, id: Some(id) } = *enqueued else { continue };
        let delay = op.call.ms * 1000;
        let none = Life::default();
        let life = queue.lives.get(&id).unwrap_or(&none);
        let begins = life.named.iter().map(|(op, _)| *op).filter(|op| handles(op)).collect();
        let at = op.call.tags.iter().position(|other| other == tag).unwrap_or_default();
        let (low, high) = (op.began + delay, op.ended.saturating_add(delay));
        let done = done(queue, life, id);
        keys.entry(tag::key(*tag)).or_default().push(Message { id, enqueue: op, at, low, high, done, begins });
    }
    for messages in keys.values_mut() {
        messages.sort_by_key(|message| (message.high, message.at));
    }
    keys
}

fn handles(op: &Op) -> bool {
    matches!(op.call.verb, Verb::Handle | Verb::Start)
}

/// Returns the earliest time at which the message was handled, or may have ended in another way.
fn done(queue: &Queue, life: &Life, id: i64) -> Micros {
    let released = |attempt: i32| {
        let gives_back = |op: &Op| op.call.verb == Verb::Release && effect_on(op, id) == Some(true);
        life.named.iter().any(|(op, named)| *named == attempt && gives_back(op))
    };
    let mut done = Micros::MAX;
    for (op, attempt) in &life.named {
        let verb = op.call.verb;
        let ended = match op.outcome {
            Outcome::Ok if handles(op) && !released(*attempt) => op.ended,
            Outcome::Failed if handles(op) && op.why == DEAD => op.ended,
            _ if (verb.removes() || verb == Verb::Cancel) && effect_on(op, id) != Some(false) => op.began,
            _ => Micros::MAX,
        };
        done = done.min(ended);
    }
    if queue.dead.contains(&id) {
        // A dead message ended with its last attempt, in whichever process that was.
        let last = life.deliveries.iter().map(|delivery| delivery.op.began).max();
        done = done.min(last.unwrap_or_default());
    }
    done
}

/// The error of a handler that gives up a message for good.
pub const DEAD: &str = "dead";

fn check_order(index: &Index, key: &str, messages: &[Message], overtook: &mut Rule) {
    for (nr, message) in messages.iter().enumerate() {
        // Selects the messages that were certainly enqueued earlier, or that precede this message
        // in the same call.
        let ahead = |other: &&Message| {
            other.high < message.low || std::ptr::eq(other.enqueue, message.enqueue) && other.at < message.at
        };
        let Some(last) = messages[..nr].iter().filter(ahead).max_by_key(|other| other.done) else { continue };
        for begin in message.begins.iter().filter(|begin| begin.began < last.done) {
            if !index.is_clock_off(last.enqueue.began.saturating_sub(CLOCK), begin.began) {
                overtook.broken(|| {
                    format!("{key}: message {} by {}, before message {} was", message.id, begin.name(), last.id)
                });
            }
        }
    }
}

fn check_together(index: &Index, key: &str, messages: &[Message], together: &mut Rule) {
    /// The time for which a partition is certainly held after a handler begins: a quarter of a
    /// lease.
    const SURE: Micros = LEASE.as_micros() as Micros / 4;
    let mut begins: Vec<(&Op, i64)> = Vec::new();
    for message in messages {
        begins.extend(message.begins.iter().map(|begin| (*begin, message.id)));
    }
    begins.sort_by_key(|(begin, _)| begin.began);
    for (nr, (first, one)) in begins.iter().enumerate().filter(|(_, (first, _))| first.ended < Micros::MAX) {
        for (second, two) in begins[nr + 1..].iter().take_while(|(second, _)| second.began < first.ended) {
            let sure = second.began < first.began + SURE && !index.is_troubled(first.began, second.began);
            if first.process == second.process || sure {
                together.broken(|| {
                    format!("{key}: message {one} by {}, and message {two} by {}", first.name(), second.name())
                });
            }
        }
    }
}

fn check_late(index: &Index, late: &mut Rule) {
    let reads_on = |op: &&Op| op.call.over > 0 && op.call.over < op.began && !op.got.is_empty();
    for op in index.evidence.ops.iter().filter(reads_on) {
        if !index.is_clock_off(op.call.over.saturating_sub(CLOCK), op.began) {
            late.broken(|| {
                format!("{}: {} messages, {} ms after it", op.name(), op.got.len(), (op.began - op.call.over) / 1000)
            });
        }
    }
}
