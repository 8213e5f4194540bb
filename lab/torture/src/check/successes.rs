//! Checks that each kind of call succeeds. The other rules are about answers, so they do not find a
//! part of the product that never works.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;

use super::{Rule, index::Index};
use crate::history::{Op, Outcome, Verb};

/// The number of calls that do not all fail by chance: of the calls of a run, fewer than a third
/// fail because of faults, or because their transactions are rolled back.
const MANY: usize = 10;

/// The calls of one kind.
#[derive(Default)]
struct Tries<'a> {
    count: usize,
    have_succeeded: bool,
    last: Option<&'a Op>,
}

impl Tries<'_> {
    fn have_failed(&self) -> bool {
        self.count >= MANY && !self.have_succeeded
    }
}

pub fn check(index: &Index, rules: &mut Vec<Rule>) {
    let mut never = Rule::new("a kind of call never succeeded");
    // A kind is a role's calls of a verb to one queue, or to all queues, because some calls are too
    // rare to be counted for each queue.
    let mut kinds: BTreeMap<(&str, Verb, Option<&str>), Tries> = BTreeMap::new();
    let mut successes: BTreeSet<Verb> = BTreeSet::new();
    for op in index.evidence.ops.iter().filter(|op| op.outcome != Outcome::Dropped) {
        let role = op.process.split('-').next().unwrap_or_default();
        if has_succeeded(op) {
            successes.insert(op.call.verb);
        }
        for queue in [None, Some(&*op.call.queue)] {
            let tries = kinds.entry((role, op.call.verb, queue)).or_default();
            tries.count += 1;
            tries.have_succeeded |= has_succeeded(op);
            tries.last = Some(op);
        }
    }
    for ((role, verb, queue), tries) in kinds.iter().filter(|(_, tries)| tries.have_failed()) {
        let of_all = &kinds[&(*role, *verb, None)];
        if queue.is_none() || !of_all.have_failed() {
            let (count, last) = (tries.count, tries.last.map_or_else(String::new, Op::name));
            let why = tries.last.map_or("", |op| &*op.why);
            never.broken(|| {
                format!("{role}: {verb:?} of {}, {count} calls, the last {last} {why}", queue.unwrap_or("any queue"))
            });
        }
    }
    let about = &index.evidence.about;
    let is_missing = |verb: &&Verb| about.seconds >= long(**verb) && !successes.contains(*verb);
    for verb in Verb::value_variants().iter().filter(is_missing) {
        never.broken(|| format!("{verb:?}: no success in {} s", about.seconds));
    }
    rules.push(never);
}

/// Returns true if the call had an effect. A call whose leases were all refused had none.
fn has_succeeded(op: &Op) -> bool {
    op.outcome == Outcome::Ok && (op.call.named.is_empty() || op.lost.len() < op.call.named.len())
}

/// Returns the length of a run, in seconds, in which the crew certainly succeeds with a verb.
fn long(verb: Verb) -> u64 {
    match verb {
        // In a minute, the crew makes fewer than ten of these calls.
        Verb::Archived | Verb::Discard | Verb::Find | Verb::Prune => 600,
        _ => 90,
    }
}
