//! Judges a rival by the checker's rules, and by rules that only make sense in a comparison.

use std::{collections::BTreeMap, path::Path};

use super::{
    list::Rival,
    rules::RivalRule,
    table, translate,
    turns::{self, Done, Turn, Turns, holder},
    verdict::{Record, Seen, Verdict},
};
use crate::{
    check,
    folder::{Evidence, Folder},
    history::{Micros, Op, Outcome, Verb},
};

/// The queue whose effects are written to the ledger. The same transaction ends the message.
pub const EXACT: &str = "exact";

/// Judges a rival by the files of its run.
pub fn judge(rival: &'static Rival, folder: &Path) -> Result<Verdict, String> {
    let folder = Folder::open(folder);
    let mut evidence = folder.read()?;
    translate::number(&mut evidence.ops);
    let record: Record = folder.kept("record.json")?;
    let findings = against(&evidence, &record.done);
    let turns = turns::of(&evidence.ops);
    let mut counts = BTreeMap::new();
    for op in &evidence.ops {
        let (name, count) = match op.call.verb {
            Verb::Enqueue => ("enqueued", op.ids.len()),
            Verb::Handle => ("handled", 1),
            Verb::Lease => ("handled", op.got.len()),
            verb if verb.ends() => ("ended", 1),
            _ => continue,
        };
        *counts.entry(name).or_default() += count;
    }
    counts.insert("late", turns::late(&turns));
    counts.insert("contested", turns::contested(&turns));
    counts.insert("effects", evidence.tables.ledger.len());
    let mut faults = BTreeMap::new();
    for fault in &evidence.faults {
        *faults.entry(fault.fault.clone()).or_default() += 1;
    }
    let (about, seen) = (evidence.about, findings);
    let (seconds, server) = (about.seconds, about.server);
    let verdict = Verdict { rival, record, seed: about.seed, seconds, server, seen, counts, faults, skipped: None };
    folder.write("verdict.json", table::line(&verdict)? + "\n")?;
    Ok(verdict)
}

/// Returns the evidence against each rule. `evidence` contains the untranslated histories of the
/// adapters.
pub fn against(evidence: &Evidence, done: &[Done]) -> BTreeMap<RivalRule, Seen> {
    let mut seen: BTreeMap<RivalRule, Seen> = RivalRule::ALL.into_iter().map(|rule| (rule, Seen::default())).collect();
    let turns = turns::of(&evidence.ops);
    let mut translated = evidence.clone();
    translated.ops = translate::translate(&evidence.ops);
    translate::end_for_holders(&mut translated.ops, &turns);
    translate::drop_late_extensions(&mut translated.ops, &turns);
    for finding in check::check(&translated) {
        let Some(rule) = RivalRule::ALL.into_iter().find(|rule| rule.findings().contains(&finding.rule)) else {
            continue;
        };
        let seen = seen.entry(rule).or_default();
        seen.count += finding.count;
        seen.cases.extend(finding.cases);
    }
    let mut add = |rule: RivalRule, case: String| seen.entry(rule).or_default().add(case);
    check_places(&translated, done, &mut add);
    check_calls(&translated, &turns, &mut add);
    check_record(&turns, done, &mut add);
    check_failures(&turns, &mut add);
    check_effects(&translated, &mut add);
    seen
}

/// Finds lost messages. A lost message is not waiting and not dead, and no call or table reports it
/// as done.
fn check_places(evidence: &Evidence, done: &[Done], add: &mut impl FnMut(RivalRule, String)) {
    let tables = &evidence.tables;
    let waiting = tables.waiting.iter().map(|one| (&*one.queue, one.id));
    let dead = tables.dead.iter().map(|one| (&*one.queue, one.id));
    let done = done.iter().map(|one| (&*one.queue, one.id));
    let mut accounted: std::collections::HashSet<(&str, i64)> = waiting.chain(dead).chain(done).collect();
    let mut failed = std::collections::HashMap::new();
    for op in &evidence.ops {
        for (id, _) in &op.call.named {
            if op.call.verb.removes() && op.may_have_happened() && !(op.outcome == Outcome::Ok && op.lost.contains(id))
            {
                accounted.insert((&*op.call.queue, *id));
            } else if op.call.verb == Verb::Retry {
                failed.insert((&*op.call.queue, *id), op);
            }
        }
    }
    for op in evidence.ops.iter().filter(|op| op.call.verb == Verb::Enqueue && op.outcome == Outcome::Ok) {
        for (id, tag) in op.ids.iter().zip(&op.call.tags) {
            let at = (&*op.call.queue, *id);
            if accounted.contains(&at) {
                continue;
            }
            let case = format!("{}: message {id} (tag {tag}), enqueued by {}", op.call.queue, op.name());
            match failed.get(&at) {
                Some(by) => add(RivalRule::Dead, format!("{case}, is nowhere after it failed in {}", by.name())),
                None => add(RivalRule::Stored, case),
            }
        }
    }
}

/// Checks the ends of leases that were requested by successful calls.
fn check_calls(evidence: &Evidence, turns: &Turns, add: &mut impl FnMut(RivalRule, String)) {
    let ends = |op: &&Op| op.call.verb.ends() && op.outcome == Outcome::Ok;
    for op in evidence.ops.iter().filter(ends) {
        for (id, attempt) in op.call.named.iter().filter(|(id, _)| !op.lost.contains(id)) {
            let Some(turns) = turns.get(&(op.call.queue.clone(), *id)) else { continue };
            let case = |what: String| {
                format!(
                    "{}: message {id}, {:?} of attempt {attempt} by {} was Ok, {what}",
                    op.call.queue,
                    op.call.verb,
                    op.name()
                )
            };
            // Finds a later turn that held the message during the whole call.
            let held = holder(turns, op.began).filter(|held| held.attempt > *attempt);
            if let Some(held) =
                held.filter(|held| op.ended < held.ended && held.until.is_some_and(|until| op.ended < until))
            {
                add(RivalRule::Fence, case(format!("and {} held attempt {}", held.op, held.attempt)));
            }
            let again = |turn: &&Turn| turn.attempt > *attempt && turn.asked.is_some_and(|asked| asked > op.ended);
            if let Some(again) = turns.iter().find(again).filter(|_| op.call.verb.removes()) {
                add(RivalRule::Again, case(format!("then attempt {} went to {}", again.attempt, again.op)));
            }
        }
    }
}

/// Checks the ends that a library requested by itself. The library's own tables show when these
/// ends took effect.
fn check_record(turns: &Turns, done: &[Done], add: &mut impl FnMut(RivalRule, String)) {
    for done in done.iter().filter(|done| done.at > 0) {
        let Some(turns) = turns.get(&(done.queue.clone(), done.id)) else { continue };
        let case = |what: String| format!("{}: message {}, done at {}, {what}", done.queue, done.id, done.at);
        if let Some(held) = holder(turns, done.at) {
            let by = turns
                .iter()
                .filter(|turn| turn.is_ok && turn.ended <= done.at && turn.attempt < held.attempt)
                .max_by_key(|turn| turn.ended);
            if let Some(by) = by {
                add(
                    RivalRule::Fence,
                    case(format!(
                        "by attempt {} of {}, while {} held attempt {}",
                        by.attempt, by.op, held.op, held.attempt
                    )),
                );
            }
        }
        if let Some(again) = turns.iter().find(|turn| turn.asked.is_some_and(|asked| asked > done.at)) {
            add(RivalRule::Again, case(format!("then attempt {} went to {}", again.attempt, again.op)));
        }
    }
}

/// Finds handlers that failed too late, and thereby released a message that another worker held.
fn check_failures(turns: &Turns, add: &mut impl FnMut(RivalRule, String)) {
    for ((queue, id), turns) in turns {
        let ended = turns.iter().filter(|turn| turn.is_handler && !turn.is_ok && turn.ended < Micros::MAX);
        for failed in ended {
            let Some(held) = holder(turns, failed.ended).filter(|held| held.attempt > failed.attempt) else { continue };
            let until = held.until.map_or(0, |until| until.min(held.ended));
            let given = |turn: &&Turn| {
                let is_after = turn.asked.is_some_and(|asked| failed.ended < asked);
                turn.attempt > held.attempt && is_after && turn.since < until
            };
            if let Some(given) = turns.iter().find(given) {
                add(
                    RivalRule::Fence,
                    format!(
                        "{queue}: message {id}, attempt {} of {} failed, and attempt {} went to {}, while {} held attempt {}",
                        failed.attempt, failed.op, given.attempt, given.op, held.op, held.attempt
                    ),
                );
            }
        }
    }
}

/// Checks that each message reported as done has exactly one entry in the ledger.
fn check_effects(evidence: &Evidence, add: &mut impl FnMut(RivalRule, String)) {
    let mut entries: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for entry in &evidence.tables.ledger {
        entries.entry(entry.tag).or_default().push(&entry.op);
    }
    for (tag, by) in entries.iter().filter(|(_, by)| by.len() > 1) {
        add(RivalRule::Effects, format!("tag {tag} was entered {} times: by {}", by.len(), by.join(", ")));
    }
    let left = |id: i64| {
        let there = evidence.tables.waiting.iter().any(|one| one.queue == EXACT && one.id == id);
        there || evidence.tables.dead.iter().any(|one| one.queue == EXACT && one.id == id)
    };
    let enqueued = |op: &&Op| op.call.verb == Verb::Enqueue && op.call.queue == EXACT && op.outcome == Outcome::Ok;
    for op in evidence.ops.iter().filter(enqueued) {
        for (id, tag) in op.ids.iter().zip(&op.call.tags).filter(|(id, tag)| !entries.contains_key(tag) && !left(**id))
        {
            add(RivalRule::Effects, format!("tag {tag} (message {id}) is gone and was never entered"));
        }
    }
}
