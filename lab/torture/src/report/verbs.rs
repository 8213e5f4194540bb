//! Counts operations by verb and outcome.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::history::{Op, Outcome};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    pub ok: usize,
    pub failed: usize,
    pub unknown: usize,
    pub dropped: usize,
    /// The number of messages in the successful calls.
    pub messages: usize,
}

pub fn count(ops: &[Op]) -> BTreeMap<String, Count> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for op in ops {
        let count = counts.entry(format!("{:?}", op.call.verb)).or_default();
        match op.outcome {
            Outcome::Ok => {
                count.ok += 1;
                count.messages += op.got.len().max(op.call.tags.len()).max(op.call.named.len()) - op.lost.len();
            }
            Outcome::Failed => count.failed += 1,
            Outcome::Unknown => count.unknown += 1,
            Outcome::Dropped => count.dropped += 1,
        }
    }
    counts
}
