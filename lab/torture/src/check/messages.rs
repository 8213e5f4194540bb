//! Finds messages that vanished, were never enqueued, or are in the wrong place.

use std::collections::HashMap;

use super::{
    Rule,
    index::{Enqueued, Index, Queue, effect_on},
};
use crate::{
    history::{Became, Micros, Op, Outcome, Verb},
    tag::DAMAGED,
};

pub fn check(index: &Index, rules: &mut Vec<Rule>) {
    let mut invented = Rule::new("a message came out of nowhere");
    let mut failed = Rule::new("an enqueue was said to have failed, and its message is there");
    let mut duplicate = Rule::new("a message is there although its enqueue was told of another");
    let mut moved = Rule::new("a message has an id that its enqueue did not return");
    let mut twice = Rule::new("two messages have one id");
    let mut vanished = Rule::new("a message vanished whose enqueue was Ok");
    let mut letters = Rule::new("a dead letter was lost");
    let mut archived = Rule::new("an archived message was lost");
    let mut back = Rule::new("a message is there that was acknowledged, taken or archived");
    let mut left = Rule::new("a message could not be drained");
    for (name, queue) in &index.queues {
        let mut ids: HashMap<i64, u64> = HashMap::new();
        for (id, tag, place) in seen(index, name, queue) {
            let case = |what: &str| format!("{name}: message {id} (tag {tag}), {place}{what}");
            match queue.enqueued.get(&tag) {
                _ if tag == DAMAGED => invented.broken(|| case(": its payload is damaged")),
                None => invented.broken(|| case("")),
                Some(Enqueued { op, .. }) if op.outcome == Outcome::Failed => {
                    failed.broken(|| case(&format!(", by {} ({})", op.name(), op.why)));
                }
                Some(Enqueued { op, .. }) if op.became == Became::Duplicate => {
                    duplicate.broken(|| case(&format!(", by {}", op.name())));
                }
                Some(Enqueued { id: Some(known), .. }) if *known != id => {
                    moved.broken(|| case(&format!(", enqueued as {known}")));
                }
                Some(_) => {}
            }
            // Omits messages that replaced another one: such a message keeps the id, and the id has
            // two tags, one after the other.
            let replaces = queue.enqueued.get(&tag).is_some_and(|one| one.op.call.verb == Verb::Replace);
            if !replaces && *ids.entry(id).or_insert(tag) != tag {
                twice.broken(|| case(&format!(", and tag {}", ids[&id])));
            }
        }
        for (tag, enqueued) in &queue.enqueued {
            if let Some(id) = enqueued.id
                && enqueued.op.call.verb != Verb::Replace
                && *ids.entry(id).or_insert(*tag) != *tag
            {
                twice.broken(|| format!("{name}: message {id} is tag {tag} and tag {}", ids[&id]));
            }
        }
        check_ends(name, queue, [&mut letters, &mut archived, &mut back]);
        check_vanished(index, name, queue, &mut vanished);
        for id in &queue.waiting {
            left.broken(|| format!("{name}: message {id}"));
        }
    }
    rules.extend([invented, failed, duplicate, moved, twice, vanished, letters, archived, back, left]);
}

/// Returns every place where a message was seen.
fn seen(index: &Index, name: &str, queue: &Queue) -> Vec<(i64, u64, String)> {
    let mut seen = Vec::new();
    for (id, life) in &queue.lives {
        seen.extend(life.deliveries.iter().map(|one| (*id, one.tag, format!("delivered to {}", one.op.name()))));
    }
    let tables = &index.evidence.tables;
    let of_queue = |other: &str| other == name;
    seen.extend(
        tables.waiting.iter().filter(|one| of_queue(&one.queue)).map(|one| (one.id, one.tag, "in the queue".into())),
    );
    seen.extend(
        tables.dead.iter().filter(|one| of_queue(&one.queue)).map(|one| (one.id, one.tag, "a dead letter".into())),
    );
    seen.extend(
        tables.archive.iter().filter(|one| of_queue(&one.queue)).map(|one| (one.id, one.tag, "in the archive".into())),
    );
    seen
}

/// Checks where messages are after a call that succeeded.
fn check_ends(name: &str, queue: &Queue, [letters, archived, back]: [&mut Rule; 3]) {
    for (id, life) in &queue.lives {
        let replayed = |since: &Op| {
            let after = |op: &Op| op.ended > since.began && op.may_have_happened();
            life.named.iter().any(|(op, _)| matches!(op.call.verb, Verb::Replay | Verb::Discard) && after(op))
        };
        let case = |op: &Op| format!("{name}: message {id}, {:?} by {}", op.call.verb, op.name());
        for (op, _) in life.named.iter().filter(|(op, _)| effect_on(op, *id) == Some(true)) {
            match op.call.verb {
                Verb::Bury if !queue.dead.contains(id) && !replayed(op) => letters.broken(|| case(op)),
                Verb::Archive if !queue.archive.contains(id) => archived.broken(|| case(op)),
                Verb::Archive if queue.waiting.contains(id) || queue.dead.contains(id) => back.broken(|| case(op)),
                Verb::Ack | Verb::AckIn | Verb::Cancel if queue.is_there(*id) => back.broken(|| case(op)),
                _ => {}
            }
        }
        for delivery in &life.deliveries {
            let takes = delivery.op.call.verb.takes() || delivery.op.call.verb == Verb::TakeIn;
            if takes && delivery.op.outcome == Outcome::Ok && queue.is_there(*id) {
                back.broken(|| case(delivery.op));
            }
        }
    }
}

/// Returns true if a call may have removed the message for good.
fn is_accounted_for(queue: &Queue, id: i64, enqueued: &Op) -> bool {
    let removed_by_name = queue.named(id).iter().any(|(op, _)| {
        let removes = op.call.verb.removes() || matches!(op.call.verb, Verb::Cancel | Verb::Discard | Verb::Handle);
        removes && op.may_have_happened() && effect_on(op, id) != Some(false)
    });
    let taken = |op: &Op| (op.call.verb.takes() || op.call.verb == Verb::TakeIn) && op.may_have_happened();
    let taken = queue.lives.get(&id).is_some_and(|life| life.deliveries.iter().any(|delivery| taken(delivery.op)));
    removed_by_name || taken || queue.may_be_purged(enqueued.began, Micros::MAX)
}

fn check_vanished(index: &Index, name: &str, queue: &Queue, vanished: &mut Rule) {
    // The contract allows a take with an unknown outcome to lose its messages. Without a fault, a
    // dropped call puts its messages back, and a waiting take takes only once.
    let excused = |take: &&&Op| {
        take.outcome == Outcome::Unknown
            || index.is_troubled(take.began.saturating_sub(1_000_000), take.ended + 3_000_000)
    };
    let unsure: Vec<&Op> = queue.unsure_takes.iter().filter(excused).copied().collect();
    let mut room: u64 = unsure.iter().map(|take| take.call.n).sum();
    for (tag, enqueued) in &queue.enqueued {
        let Enqueued { op, id: Some(id) } = *enqueued else { continue };
        // Omits messages that were delivered directly, because they were never stored.
        if op.call.verb == Verb::HandOver || queue.is_there(id) || is_accounted_for(queue, id, op) {
            continue;
        }
        if room > 0 && unsure.iter().any(|take| take.ended > op.began) {
            room -= 1;
            continue;
        }
        vanished.broken(|| {
            let last = queue.lives.get(&id).and_then(|life| {
                let delivered = life.deliveries.iter().map(|delivery| delivery.op);
                delivered.chain(life.named.iter().map(|(op, _)| *op)).max_by_key(|op| op.began)
            });
            let last = last
                .map_or("never delivered".to_owned(), |op| format!("last seen by {} ({:?})", op.name(), op.call.verb));
            format!("{name}: message {id} (tag {tag}), enqueued by {}, {last}", op.name())
        });
    }
}
