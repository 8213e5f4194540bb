//! The verdict on a rival.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{list::Rival, rules::RivalRule, turns::Done};

/// The maximum number of cases that a rule names.
const NAMED: usize = 12;
/// The part of a rival's results that Trunkline's own runs do not have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub version: String,
    pub settings: String,
    pub done: Vec<Done>,
}

/// The evidence against a rule.
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
    pub seen: BTreeMap<RivalRule, Seen>,
    /// Counts by name: `enqueued`, `handled`, `ended`, `late`, `contested` and `effects`.
    pub counts: BTreeMap<&'static str, usize>,
    pub faults: BTreeMap<String, usize>,
    /// The reason why the rival did not run.
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

    /// Returns true if the evidence can show a violation of the rule. A library that ends messages
    /// by itself does not report refusals.
    pub fn is_seen(&self, rule: RivalRule) -> bool {
        rule != RivalRule::Refused || self.counts.contains_key("ended")
    }

    /// Returns true if there is no evidence against any promise.
    pub fn is_kept(&self) -> bool {
        self.seen.iter().all(|(rule, seen)| seen.count == 0 || self.rival.excuse(*rule).is_some())
    }
}
