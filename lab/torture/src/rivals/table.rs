//! Writes the table of kept and broken promises, and a line of JSON for each rival.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::{rules::RivalRule, verdict::Verdict};

/// Returns the line of JSON for a rival.
pub fn line(verdict: &Verdict) -> Result<String, String> {
    let mut rules = Map::new();
    for (rule, seen) in &verdict.seen {
        let name = serde_json::to_value(rule).map_err(|error| error.to_string())?;
        let excuse = verdict.rival.excuse(*rule).map(|excuse| json!({ "why": excuse.why, "link": excuse.link }));
        let is_judged = excuse.is_none() && verdict.is_seen(*rule);
        let held = if is_judged { json!(seen.count == 0) } else { Value::Null };
        let said = json!({ "held": held, "seen": seen.count, "cases": seen.cases, "not_promised": excuse });
        rules.insert(name.as_str().unwrap_or_default().to_owned(), said);
    }
    let line = json!({
        "rival": verdict.rival.name,
        "version": verdict.record.version,
        "settings": verdict.record.settings,
        "skipped": verdict.skipped,
        "seed": verdict.seed,
        "seconds": verdict.seconds,
        "postgres": verdict.server,
        "faults": verdict.faults,
        "counts": verdict.counts,
        "rules": rules,
        "replay": replay(verdict),
    });
    serde_json::to_string(&line).map_err(|error| format!("the verdict cannot be written: {error}"))
}

fn replay(verdict: &Verdict) -> String {
    let minutes = verdict.seconds as f64 / 60.0;
    let name = verdict.rival.name;
    format!(
        "cargo run --manifest-path lab/Cargo.toml -p trunkline-torture -- rivals --rival {name} --minutes {minutes} --seed {}",
        verdict.seed
    )
}

/// Returns the table, with one column per rival.
pub fn markdown(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    write_to(&mut text, verdicts).unwrap_or_default(); // writing to a String cannot fail
    text
}

fn write_to(text: &mut String, verdicts: &[Verdict]) -> std::fmt::Result {
    let ran: Vec<&Verdict> = verdicts.iter().filter(|verdict| verdict.skipped.is_none()).collect();
    writeln!(
        text,
        "# What held, and what did not\n\nWritten by the command, from the histories of one run each. [README.md](README.md#rivals) says how to read it.\n"
    )?;
    writeln!(text, "```\n{}\n```\n", command(&ran))?;
    let names: Vec<&str> = ran.iter().map(|verdict| verdict.rival.name).collect();
    writeln!(text, "| | {} |\n|---|{}", names.join(" | "), "---|".repeat(ran.len()))?;
    let mut notes: Vec<String> = Vec::new();
    for rule in RivalRule::ALL {
        let cells: Vec<String> = ran.iter().map(|verdict| cell(verdict, rule, &mut notes)).collect();
        writeln!(text, "| {} | {} |", rule.says(), cells.join(" | "))?;
    }
    for (name, says) in [
        ("enqueued", "messages whose enqueue was `Ok`"),
        ("handled", "handed to a worker"),
        ("late", "of these, works that ended when another had the message"),
        ("contested", "of these, while its lease ran and its work went on"),
        ("effects", "effects in the transaction that ends the message"),
    ] {
        let cells: Vec<String> =
            ran.iter().map(|verdict| verdict.counts.get(name).copied().unwrap_or_default().to_string()).collect();
        writeln!(text, "| {says} | {} |", cells.join(" | "))?;
    }
    for fault in ["kill", "stop", "terminate", "crash"] {
        let cells: Vec<String> =
            ran.iter().map(|verdict| verdict.faults.get(fault).copied().unwrap_or_default().to_string()).collect();
        writeln!(text, "| faults: {fault} | {} |", cells.join(" | "))?;
    }
    writeln!(
        text,
        "\n`–`: the library ends messages by itself, and whether it was refused is not seen.\n\n## Not promised\n"
    )?;
    for (nr, note) in notes.iter().enumerate() {
        writeln!(text, "{}. {note}", nr + 1)?;
    }
    writeln!(text, "\n## Settings\n\n| | version | settings | server | seed | seconds |\n|---|---|---|---|---|---|")?;
    for verdict in &ran {
        let (record, seconds) = (&verdict.record, verdict.seconds);
        writeln!(
            text,
            "| {} | {} | {} | PostgreSQL {} | {} | {seconds} |",
            verdict.rival.name, record.version, record.settings, verdict.server, verdict.seed
        )?;
    }
    for verdict in verdicts {
        if let Some(why) = &verdict.skipped {
            writeln!(text, "\nSKIPPED: {}: {why}", verdict.rival.name)?;
        }
    }
    writeln!(text, "\n## Cases")?;
    for verdict in &ran {
        for (rule, seen) in verdict.seen.iter().filter(|(_, seen)| seen.count > 0) {
            writeln!(text, "\n{}: {}, {} times. `{}`\n", verdict.rival.name, rule.says(), seen.count, replay(verdict))?;
            for case in seen.cases.iter().take(3) {
                writeln!(text, "- {case}")?;
            }
        }
    }
    Ok(())
}

fn command(ran: &[&Verdict]) -> String {
    let (seed, minutes) = ran.first().map_or((0, 0.0), |verdict| (verdict.seed, verdict.seconds as f64 / 60.0));
    format!(
        "cargo run --manifest-path lab/Cargo.toml -p trunkline-torture -- rivals --minutes {minutes} --seed {seed} --table lab/torture/rivals.md"
    )
}

fn cell(verdict: &Verdict, rule: RivalRule, notes: &mut Vec<String>) -> String {
    let seen = verdict.seen.get(&rule).map_or(0, |seen| seen.count);
    if !verdict.is_seen(rule) {
        return "–".to_owned();
    }
    if let Some(excuse) = verdict.rival.excuse(rule) {
        let note = format!("{}: {} ([source]({}))", verdict.rival.name, excuse.why, excuse.link);
        let nr = notes.iter().position(|other| *other == note).unwrap_or_else(|| {
            notes.push(note);
            notes.len() - 1
        });
        let seen = if seen == 0 { String::new() } else { format!(", seen {seen}") };
        return format!("not promised ({}){seen}", nr + 1);
    }
    if seen == 0 { "held".to_owned() } else { format!("did not hold: {seen}") }
}
