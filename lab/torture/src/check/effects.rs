//! Checks effects: exactly once in the ledger, and at most once in queues whose messages are taken.

use std::collections::HashMap;

use super::{
    Rule,
    index::{Enqueued, Index, effect_on},
};
use crate::{
    history::{Op, Outcome, Verb},
    plan, tag,
};

pub fn check(index: &Index, rules: &mut Vec<Rule>) {
    let mut missing = Rule::new("an exactly-once effect is missing");
    let mut double = Rule::new("an exactly-once effect is double");
    let mut undone = Rule::new("an effect is there whose transaction was rolled back");
    let mut sums = Rule::new("the sums of the ledger are not those of its entries");
    let mut taken = Rule::new("a message that was taken came again");
    let ops: HashMap<String, &Op> = index
        .evidence
        .ops
        .iter()
        .filter(|op| op.call.queue == plan::EXACT && matches!(op.call.verb, Verb::TakeIn | Verb::AckIn))
        .map(|op| (op.name(), op))
        .collect();
    let mut entries: HashMap<u64, usize> = HashMap::new();
    let mut accounts: HashMap<i32, (i64, i64)> = HashMap::new();
    for entry in &index.evidence.tables.ledger {
        *entries.entry(entry.tag).or_default() += 1;
        let account = accounts.entry(tag::account(entry.tag)).or_default();
        *account = (account.0 + entry.amount, account.1 + 1);
        if ops.get(&entry.op).is_none_or(|op| !op.may_have_happened()) {
            undone.broken(|| format!("tag {}, entered by {}", entry.tag, entry.op));
        }
        if entry.amount != tag::amount(entry.tag) {
            sums.broken(|| format!("tag {} was entered with {}", entry.tag, entry.amount));
        }
    }
    for (nr, sum, count) in &index.evidence.tables.accounts {
        let (entered, times) = accounts.get(nr).copied().unwrap_or_default();
        if (entered, times) != (*sum, *count) {
            sums.broken(|| {
                format!("account {nr} holds {sum} of {count} entries, the entries are {entered} of {times}")
            });
        }
    }
    for (tag, count) in entries.iter().filter(|(_, count)| **count > 1) {
        double.broken(|| format!("tag {tag} has {count} entries"));
    }
    for op in ops.values().filter(|op| op.outcome == Outcome::Ok) {
        for (id, _, tag) in op.got.iter().filter(|(_, _, tag)| !entries.contains_key(tag)) {
            missing.broken(|| format!("message {id} (tag {tag}), committed by {}", op.name()));
        }
    }
    if let Some(queue) = index.queues.get(plan::EXACT) {
        for (tag, enqueued) in &queue.enqueued {
            let Enqueued { op, id: Some(id) } = *enqueued else { continue };
            let cancelled = |(op, _): &(&Op, i32)| op.call.verb == Verb::Cancel && effect_on(op, id) != Some(false);
            match (entries.contains_key(tag), queue.is_there(id)) {
                (false, false) if !queue.named(id).iter().any(cancelled) => {
                    missing.broken(|| format!("message {id} (tag {tag}), enqueued by {}, is gone", op.name()));
                }
                (true, true) => double.broken(|| format!("message {id} (tag {tag}) has its effect and is there still")),
                _ => {}
            }
        }
    }
    check_taken(index, &mut taken);
    rules.extend([missing, double, undone, sums, taken]);
}

fn check_taken(index: &Index, taken: &mut Rule) {
    for (name, queue) in &index.queues {
        for (id, life) in &queue.lives {
            let is_take = |op: &Op| op.call.verb.takes() && op.outcome == Outcome::Ok;
            let Some(first) = life.deliveries.iter().filter(|one| is_take(one.op)).min_by_key(|one| one.op.ended)
            else {
                continue;
            };
            let again = life.deliveries.iter().find(|other| {
                !std::ptr::eq(other.op, first.op) && (is_take(other.op) || other.op.began > first.op.ended)
                    || std::ptr::eq(other.op, first.op) && !std::ptr::eq(*other, first)
            });
            if let Some(again) = again {
                taken.broken(|| format!("{name}: message {id}, by {} and {}", first.op.name(), again.op.name()));
            }
        }
    }
}
