//! Writes the report for programs, as one line.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{replay, verbs};
use crate::{check::Finding, folder::Evidence};

#[derive(Debug, Serialize)]
struct ReportLine<'a> {
    kept: bool,
    seed: u64,
    seconds: u64,
    postgres: &'a str,
    mutant: Option<&'a str>,
    /// The number of times that each fault happened.
    faults: BTreeMap<&'a str, usize>,
    skipped: &'a [String],
    operations: BTreeMap<String, verbs::Count>,
    violations: &'a [Finding],
    replay: String,
}

pub fn line(evidence: &Evidence, findings: &[Finding]) -> Result<String, String> {
    let about = &evidence.about;
    let mut faults = BTreeMap::new();
    for fault in &evidence.faults {
        *faults.entry(&*fault.fault).or_default() += 1;
    }
    let line = ReportLine {
        kept: findings.is_empty(),
        seed: about.seed,
        seconds: about.seconds,
        postgres: &about.server,
        mutant: about.mutant.as_deref(),
        faults,
        skipped: &about.skipped,
        operations: verbs::count(&evidence.ops),
        violations: findings,
        replay: replay(evidence),
    };
    serde_json::to_string(&line).map_err(|error| format!("the report cannot be written: {error}"))
}
