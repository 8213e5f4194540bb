//! The verdict on a rival.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{list::Rival, rules::Rule, turns::Done};

/// Cases that are named of each rule.
const NAMED: usize = 12;
/// The files of a rival's run that a run of Trunkline's own has not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub version: String,
    pub settings: String,
    pub done: Vec<Done>,
}

/// What was seen against a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Seen {
    pub count: usize,
    pub cases: Vec<String>,
}

impl Seen {
    pub fn add(&mut self, case: String) {
        self.count += 1;
        if self.cases.len() < NAMED {
            self.cases.push(case);
        }
    }
}

#[derive(Debug, Clone)]
pub struct Verdict {
    pub rival: &'static Rival,
    pub record: Record,
    pub seed: u64,
    pub seconds: u64,
    pub server: String,
    pub seen: BTreeMap<Rule, Seen>,
    /// Calls and handlers by name, and how often each happened.
    pub counts: BTreeMap<&'static str, usize>,
    pub faults: BTreeMap<String, usize>,
    /// Why there is none.
    pub skipped: Option<String>,
}

impl Verdict {
    pub fn skipped(rival: &'static Rival, why: String) -> Self {
        Self {
            rival,
            record: Record::default(),
            seed: 0,
            seconds: 0,
            server: String::new(),
            seen: BTreeMap::new(),
            counts: BTreeMap::new(),
            faults: BTreeMap::new(),
            skipped: Some(why),
        }
    }

    /// Whether the rule can be judged by what was seen: a library that ends messages by itself is
    /// not heard to be refused.
    pub fn is_seen(&self, rule: Rule) -> bool {
        rule != Rule::Refused || self.counts.contains_key("ended")
    }

    /// Whether nothing was seen against anything that is promised.
    pub fn is_kept(&self) -> bool {
        self.seen.iter().all(|(rule, seen)| seen.count == 0 || self.rival.excuse(*rule).is_some())
    }
}
