//! Checks the ticks of schedules: each tick is made exactly once, even if processes die.

use std::collections::BTreeMap;

use super::{Rule, index::Index};
use crate::plan;

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
