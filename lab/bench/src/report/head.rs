//! Shows the origin of the results: their run, commit, arguments and build.

use std::fmt::Write;

use crate::{
    report::{markdown::code, number},
    results::{Header, Made, Results, Row},
};

const HOW_TO_READ: &str = "\
A figure is the median of its rounds, in brackets the least and the most. Ours are **bold**. Ratios are between rows of the same case that met \
the same server. How long a round was, how many there were, and the commit and the arguments that made a row stand above each table, or in its \
columns where rows differ. `results.json` (packed where it is published) has every round, `results.csv` a line a round.

";

pub fn section(results: &Results) -> String {
    let mut text = String::from("# Trunkline and its peers, side by side\n\n");
    match &results.run {
        Some(run) => text += &of_one(run),
        None if results.rows.is_empty() => {}
        None => text += &of_several(&results.rows),
    }
    text + HOW_TO_READ
}

fn of_one(run: &Header) -> String {
    let Made { commit, arguments, build } = &run.made;
    let mut text = format!(
        "One run, {}, of commit {} ({build} build), made by {}",
        code(&run.id),
        code(commit),
        code(&format!("trunkline-bench {arguments}"))
    );
    let sittings: Vec<String> =
        run.sittings.iter().map(|(from, to)| format!("{} to {}", number::date(*from), number::date(*to))).collect();
    let _ = writeln!(text, " from {}.\n", sittings.join(", and from "));
    if !run.left_out.is_empty() {
        let _ = writeln!(text, "It left out: {}.\n", run.left_out.join("; "));
    }
    text
}

/// Describes rows that come from several runs.
fn of_several(rows: &[Row]) -> String {
    let unknown = rows.iter().filter(|row| row.made == Made::default()).count();
    let mut runs: Vec<&str> = rows.iter().map(|row| row.run.as_str()).filter(|run| !run.is_empty()).collect();
    runs.sort_unstable();
    runs.dedup();
    let mut text = format!("**Not one run**: {} rows", rows.len());
    if !runs.is_empty() {
        let _ = write!(text, " of {} runs", runs.len());
    }
    if unknown > 0 {
        let _ = write!(text, "; {unknown} of them do not say by which run, commit and arguments they were made");
    }
    text + ". Lengths and rounds differ from table to table.\n\n"
}
