//! Checks the ticks of schedules: each tick is made exactly once, even if processes die.

use std::collections::BTreeMap;

use super::{Rule, index::Index};
use crate::{history::Micros, plan};

/// The time that the processes have at the end to connect again and to make the ticks that they
/// missed. Only the last seconds of a run are certainly without faults.
const NEAR: Micros = 30_000_000;

pub fn check(index: &Index<'_>, rules: &mut Vec<Rule>) {
    let mut twice = Rule::new("a tick of a schedule was made twice");
    let mut missing = Rule::new("a tick of a schedule was left out");
    let mut by_schedule: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for (schedule, second) in &index.evidence.tables.ticks {
        by_schedule.entry(schedule).or_default().push(*second);
    }
    if !by_schedule.is_empty() && by_schedule.len() < plan::SCHEDULES {
        missing.broken(|| {
            format!("{} of {} schedules made no tick", plan::SCHEDULES - by_schedule.len(), plan::SCHEDULES)
        });
    }
    for (schedule, mut seconds) in by_schedule {
        seconds.sort_unstable();
        for pair in seconds.windows(2) {
            match pair[1] - pair[0] {
                0 => twice.broken(|| format!("{schedule}: {} s", pair[0])),
                1 => {}
                _ => missing.broken(|| format!("{schedule}: between {} s and {} s", pair[0], pair[1])),
            }
        }
    }
    rules.extend([twice, missing]);
}

/// Checks that each schedule ticked until the end of the run. A schedule without ticks counts as if
/// it had ticked only when the run began.
pub fn check_end(index: &Index<'_>, rules: &mut Vec<Rule>) {
    let mut stopped = Rule::new("a schedule did not tick until the end of the run");
    let about = &index.evidence.about;
    let began = (0..plan::SCHEDULES).map(|nr| (plan::schedule(nr), about.began));
    let mut last: BTreeMap<String, Micros> = began.collect();
    for (schedule, second) in &index.evidence.tables.ticks {
        if let Some(last) = last.get_mut(schedule) {
            *last = (*last).max(second.unsigned_abs() * 1_000_000);
        }
    }
    for (schedule, last) in last.into_iter().filter(|(_, last)| last + NEAR < about.ended) {
        stopped.broken(|| format!("{schedule}: no tick in the last {} s", (about.ended - last) / 1_000_000));
    }
    rules.push(stopped);
}
