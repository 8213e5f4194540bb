//! Checks for growth, slowdowns, and processes or calls that do not end.

use super::{Rule, index::Index};
use crate::{
    faults::Fault,
    history::{Micros, Op, Outcome, Verb},
    plan,
};

/// A process's memory may grow to one and a half times its early size, plus this number of
/// kilobytes.
const MEMORY: u64 = 64 << 10;
/// The factor by which a held snapshot may slow dequeues down.
const SLOWER: Micros = 8;
/// The duration in microseconds below which a dequeue never counts as slow.
const SLOW: Micros = 50_000;
/// The maximum duration of a call. While the database is unreachable, a call waits for half a
/// minute before it fails.
const LONGEST: Micros = 45_000_000;
/// The minimum number of samples for a comparison.
const ENOUGH: usize = 30;

pub fn check(index: &Index, rules: &mut Vec<Rule>) {
    let mut memory = Rule::new("memory grew");
    let mut held = Rule::new("connections or locks were left behind");
    let mut ended = Rule::new("a process ended by itself, or did not end");
    let mut hung = Rule::new("a call did not return");
    let mut slow = Rule::new("dequeues slowed down under a held snapshot");
    for text in &index.evidence.about.misbehaved {
        ended.broken(|| text.clone());
    }
    let tables = &index.evidence.tables;
    if tables.connections > 0 || tables.locks > 0 {
        held.broken(|| {
            format!("{} connections and {} locks when all processes had gone", tables.connections, tables.locks)
        });
    }
    check_returns(index, &mut hung);
    check_sessions(index, &mut held);
    check_memory(index, &mut memory);
    check_snapshots(index, &mut slow);
    rules.extend([memory, held, ended, hung, slow]);
}

/// Checks the calls that do not wait for messages.
fn check_returns(index: &Index, hung: &mut Rule) {
    let waits = |op: &Op| {
        let verb_waits = matches!(op.call.verb, Verb::HandedOver | Verb::TakeIn | Verb::Handle | Verb::Tick);
        op.call.queue == plan::BELL || verb_waits
    };
    for op in index
        .evidence
        .ops
        .iter()
        .filter(|op| !waits(op) && op.ended < Micros::MAX && op.ended.saturating_sub(op.began) > LONGEST)
    {
        hung.broken(|| format!("{} ({:?}) for {} s", op.name(), op.call.verb, (op.ended - op.began) / 1_000_000));
    }
}

/// Checks the connections and locks of all processes. Compares medians, because faults end some of
/// the processes.
fn check_sessions(index: &Index, held: &mut Rule) {
    /// A count may grow to one and a half times its early value, plus this number.
    const ROOM: u64 = 30;
    let samples = &index.evidence.samples;
    for (name, values) in [
        ("connections", samples.iter().map(|one| one.connections.unsigned_abs()).collect::<Vec<_>>()),
        ("locks", samples.iter().map(|one| one.locks.unsigned_abs()).collect()),
    ] {
        let quarter = values.len() / 4;
        if values.len() >= ENOUGH {
            let (early, last) = (median(&values[quarter..2 * quarter]), median(&values[values.len() - quarter..]));
            if last > early + early / 2 + ROOM {
                held.broken(|| format!("{name} grew from {early} to {last}"));
            }
        }
    }
}

/// Compares the second quarter of a process's samples with the last quarter.
fn check_memory(index: &Index, memory: &mut Rule) {
    let samples = &index.evidence.samples;
    let mut names: Vec<&str> = samples.iter().flat_map(|one| &one.memory).map(|(name, _)| &**name).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let of_it = |(other, size): &(String, u64)| (other == name).then_some(*size);
        let sizes: Vec<u64> = samples.iter().filter_map(|one| one.memory.iter().find_map(of_it)).collect();
        let quarter = sizes.len() / 4;
        if sizes.len() < ENOUGH {
            continue;
        }
        let (early, last) = (median(&sizes[quarter..2 * quarter]), median(&sizes[sizes.len() - quarter..]));
        if last > early + early / 2 + MEMORY {
            memory.broken(|| format!("{name}, from {early} kB to {last} kB"));
        }
    }
}

fn check_snapshots(index: &Index, slow: &mut Rule) {
    let is_dequeue = |op: &&Op| op.call.queue == plan::FIFO && matches!(op.call.verb, Verb::Take | Verb::Lease);
    let answered = index.evidence.ops.iter().filter(is_dequeue).filter(|op| op.outcome == Outcome::Ok);
    let calm: Vec<&Op> = answered.filter(|op| !index.is_troubled(op.began, op.ended)).collect();
    let took = |from: Micros, to: Micros| -> Vec<Micros> {
        calm.iter().filter(|op| op.began > from && op.ended < to).map(|op| op.ended.saturating_sub(op.began)).collect()
    };
    for fault in index.evidence.faults.iter().filter(|fault| fault.fault == Fault::Snapshot.name()) {
        let (without, with) = (took(0, fault.from), took(fault.from, fault.to));
        if without.len() < ENOUGH || with.len() < ENOUGH {
            continue;
        }
        let (without, with) = (median(&without), median(&with));
        if with > SLOWER * without && with > SLOW {
            slow.broken(|| format!("{with} µs against {without} µs in the median"));
        }
    }
}

fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
