//! Checks unique keys: only one message with a key exists at a time, until that message has ended.

use std::collections::HashMap;

use super::{
    Rule,
    index::{Enqueued, Index, Queue, effect_on},
};
use crate::{
    history::{Became, Micros, Op, Outcome, Verb},
    plan, tag,
};

pub fn check(index: &Index, rules: &mut Vec<Rule>) {
    let mut two = Rule::new("two messages with one unique key were there at the same time");
    let mut kept = Rule::new("a unique key was kept although its message had ended");
    let mut other = Rule::new("an enqueue was told of a message that has another unique key");
    let mut stale = Rule::new("a message was handed out as it was before it was replaced");
    if let Some(queue) = index.queues.get(plan::UNIQUE) {
        let messages = messages(queue);
        check_two(&messages, &mut two);
        check_told(index, &messages, &mut kept, &mut other);
        check_replaced(index, queue, &mut stale);
    }
    rules.extend([two, kept, other, stale]);
}

/// A message that was certainly new.
struct NewMessage<'a> {
    id: i64,
    key: String,
    enqueue: &'a Op,
    /// The earliest time at which the message may have ended.
    may_end: Micros,
    /// The time by which the message had certainly ended.
    has_ended: Micros,
}

fn messages<'a>(queue: &Queue<'a>) -> HashMap<i64, NewMessage<'a>> {
    let new = |(tag, enqueued): (&u64, &Enqueued<'a>)| {
        let Enqueued { op, id: Some(id) } = *enqueued else { return None };
        let (mut may_end, mut has_ended) = (Micros::MAX, Micros::MAX);
        for (end, _) in queue.named(id) {
            if end.call.verb.removes() || end.call.verb == Verb::Cancel {
                match effect_on(end, id) {
                    Some(true) => (may_end, has_ended) = (may_end.min(end.began), has_ended.min(end.ended)),
                    Some(false) => {}
                    None => may_end = may_end.min(end.began),
                }
            }
        }
        if queue.dead.contains(&id) {
            // A dead message ended with its last attempt, in whichever process that was.
            let given = queue.lives.get(&id).and_then(|life| life.deliveries.iter().map(|one| one.op.began).max());
            may_end = may_end.min(given.unwrap_or_default());
        }
        let message = NewMessage { id, key: tag::unique(*tag), enqueue: op, may_end, has_ended };
        (op.became == Became::New).then_some((id, message))
    };
    queue.enqueued.iter().filter_map(new).collect()
}

/// Checks that the lifetimes of two messages with one key do not overlap. A lifetime lasts from the
/// answer to the enqueue until a call may have ended the message.
fn check_two(messages: &HashMap<i64, NewMessage>, two: &mut Rule) {
    let mut there: Vec<&NewMessage> =
        messages.values().filter(|message| message.enqueue.ended < message.may_end).collect();
    there.sort_by_key(|message| (&message.key, message.enqueue.ended));
    let mut last: Option<&NewMessage> = None;
    for message in there {
        if let Some(last) = last.filter(|last| last.key == message.key && last.may_end > message.enqueue.ended) {
            let (one, by) = (last.enqueue.name(), message.enqueue.name());
            two.broken(|| format!("{}: message {} by {one}, and message {} by {by}", message.key, last.id, message.id));
        }
        // Keeps the earlier message that lasts longest.
        if last.is_none_or(|last| last.key != message.key || last.may_end < message.may_end) {
            last = Some(message);
        }
    }
}

fn check_told(index: &Index, messages: &HashMap<i64, NewMessage>, kept: &mut Rule, other: &mut Rule) {
    let told = |op: &&Op| op.call.queue == plan::UNIQUE && op.became != Became::New && op.outcome == Outcome::Ok;
    for op in index.evidence.ops.iter().filter(told) {
        let (Some(tag), Some(id)) = (op.call.tags.first(), op.ids.first()) else { continue };
        let key = tag::unique(*tag);
        // Skips a message whose own enqueue has an unknown outcome, because its id is in no
        // history.
        let Some(message) = messages.get(id) else { continue };
        if message.key != key || message.enqueue.began > op.ended {
            other.broken(|| format!("{}: of message {id}, which has {}, for {key}", op.name(), message.key));
        } else if message.has_ended < op.began {
            kept.broken(|| {
                format!(
                    "{key}: for message {id}, {} ms after its end, by {}",
                    (op.began - message.has_ended) / 1000,
                    op.name()
                )
            });
        }
    }
}

fn check_replaced(index: &Index, queue: &Queue, stale: &mut Rule) {
    let replaced = |op: &&Op| op.call.queue == plan::UNIQUE && op.became == Became::Replaced;
    for replacement in index.evidence.ops.iter().filter(replaced) {
        let Some((id, life)) = replacement.ids.first().and_then(|id| Some((id, queue.lives.get(id)?))) else {
            continue;
        };
        for delivery in life.deliveries.iter().filter(|delivery| delivery.op.began > replacement.ended) {
            let before = queue.enqueued.get(&delivery.tag).filter(|before| before.op.ended < replacement.began);
            if before.is_some() {
                stale.broken(|| format!("message {id} by {}, replaced by {}", delivery.op.name(), replacement.name()));
            }
        }
    }
}
