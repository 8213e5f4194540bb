//! The report, as text for people and as a line of JSON.

mod text;
mod line;
mod verbs;
#[cfg(test)]
mod tests;

use trunkline_programs::say;

use crate::{
    check::Finding,
    folder::{Evidence, Folder},
};

/// Prints the report and the line of JSON, and writes both to the run's folder.
pub fn report(folder: &Folder, evidence: &Evidence, findings: &[Finding]) -> Result<(), String> {
    let text = text::text(evidence, findings).map_err(|error| error.to_string())?;
    let line = line::line(evidence, findings)?;
    say(format_args!("{text}\n{line}"));
    folder.write("report.txt", &text)?;
    folder.write("report.json", format!("{line}\n"))
}

/// Returns the command that runs again with the same faults.
fn replay(evidence: &Evidence) -> String {
    let about = &evidence.about;
    let faults = if about.faults.is_empty() { "none".to_owned() } else { about.faults.join(",") };
    let mutant = about.mutant.as_ref().map(|name| format!(" --mutant {name}")).unwrap_or_default();
    format!(
        "cargo run --release --manifest-path lab/Cargo.toml -p trunkline-torture -- run --minutes {} --seed {} --fault {faults}{mutant}",
        (about.seconds as f64 / 6.0).round() / 10.0,
        about.seed
    )
}
