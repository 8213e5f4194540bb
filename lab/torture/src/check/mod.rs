//! The checker reads histories and tables, and reports each broken promise. An operation with an
//! unknown outcome may or may not have happened, so its possible consequences are not violations.

mod index;
mod messages;
mod leases;
mod effects;
mod order;
pub mod keys;
mod unique;
mod limits;
mod pauses;
mod growth;
mod ticks;
mod successes;
#[cfg(test)]
pub mod tests;

use serde::Serialize;

use crate::folder::Evidence;
use index::Index;

/// The maximum number of cases that a finding names.
const NAMED: usize = 12;

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub rule: &'static str,
    /// The names of the first cases.
    pub cases: Vec<String>,
    pub count: usize,
}

/// Collects the cases of a rule.
#[derive(Debug)]
struct Rule {
    name: &'static str,
    cases: Vec<String>,
    count: usize,
}

impl Rule {
    fn new(name: &'static str) -> Self {
        Self { name, cases: Vec::new(), count: 0 }
    }

    fn broken(&mut self, case: impl FnOnce() -> String) {
        self.count += 1;
        if self.cases.len() < NAMED {
            self.cases.push(case());
        }
    }

    fn found(self) -> Option<Finding> {
        (self.count > 0).then_some(Finding { rule: self.name, cases: self.cases, count: self.count })
    }
}

/// Checks the promises. They count in every history, also in that of a rival.
pub fn check(evidence: &Evidence) -> Vec<Finding> {
    found(promises(&Index::of(evidence)))
}

/// Checks a whole run of the crew: the promises, and that each part of the product worked.
pub fn check_run(evidence: &Evidence) -> Vec<Finding> {
    let index = Index::of(evidence);
    let mut rules = promises(&index);
    ticks::check_end(&index, &mut rules);
    successes::check(&index, &mut rules);
    found(rules)
}

fn found(rules: Vec<Rule>) -> Vec<Finding> {
    rules.into_iter().filter_map(Rule::found).collect()
}

fn promises(index: &Index) -> Vec<Rule> {
    let mut rules = Vec::new();
    messages::check(index, &mut rules);
    leases::check(index, &mut rules);
    effects::check(index, &mut rules);
    order::check(index, &mut rules);
    keys::check(index, &mut rules);
    unique::check(index, &mut rules);
    limits::check(index, &mut rules);
    pauses::check(index, &mut rules);
    growth::check(index, &mut rules);
    ticks::check(index, &mut rules);
    rules
}
