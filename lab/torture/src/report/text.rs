//! Writes the report for people.

use std::fmt::{Error, Write};

use super::{replay, verbs};
use crate::{check::Finding, folder::Evidence, history::Micros};

pub fn text(evidence: &Evidence, findings: &[Finding]) -> Result<String, Error> {
    let (about, mut text) = (&evidence.about, String::new());
    let seconds = |at: Micros| at.saturating_sub(about.began) as f64 / 1e6;
    writeln!(
        text,
        "{} s with seed {}, PostgreSQL {}, {} operations",
        about.seconds,
        about.seed,
        about.server,
        evidence.ops.len()
    )?;
    if let Some(mutant) = &about.mutant {
        writeln!(text, "with the seeded defect {mutant}")?;
    }
    for skipped in &about.skipped {
        writeln!(text, "SKIPPED {skipped}")?;
    }
    if !evidence.faults.is_empty() {
        writeln!(text, "\nFaults\n      from    lasted")?;
    }
    for fault in &evidence.faults {
        let lasted = fault.to.saturating_sub(fault.from) as f64 / 1e6;
        writeln!(text, "  {:6.1} s  {lasted:6.1} s  {:12} {}", seconds(fault.from), fault.fault, fault.detail)?;
    }
    writeln!(text, "\nOperations{:>18}{:>9}{:>9}{:>9}{:>10}", "ok", "failed", "unknown", "dropped", "messages")?;
    for (verb, count) in verbs::count(&evidence.ops) {
        let (ok, failed, unknown, dropped) = (count.ok, count.failed, count.unknown, count.dropped);
        writeln!(text, "  {verb:16}{ok:10}{failed:9}{unknown:9}{dropped:9}{:10}", count.messages)?;
    }
    let tables = &evidence.tables;
    let (left, dead, kept) = (tables.waiting.len(), tables.dead.len(), tables.archive.len());
    writeln!(
        text,
        "\nLeft: {left} waiting, {dead} dead letters, {kept} archived, {} entries in the ledger\n",
        tables.ledger.len()
    )?;
    for finding in findings {
        writeln!(text, "VIOLATED: {}, {} times", finding.rule, finding.count)?;
        for case in &finding.cases {
            writeln!(text, "    {case}")?;
        }
        if finding.count > finding.cases.len() {
            writeln!(text, "    and {} more", finding.count - finding.cases.len())?;
        }
    }
    if findings.is_empty() {
        writeln!(text, "Every promise was kept.")?;
    }
    writeln!(text, "The same faults again: {}", replay(evidence))?;
    Ok(text)
}
