//! Shows the origin of the results: their run, commit, arguments and build.

use std::fmt::Write;

use crate::{
    parts,
    report::{markdown::code, number},
    results::{Header, Made, Results, Row},
};

const HOW_TO_READ: &str = "\
A figure is the median of its rounds, in brackets the least and the most. Ours are **bold**. Ratios are between rows of the same case that met \
the same server. How long a round was, how many there were, and the commit and the arguments that made a row stand above each table, or in its \
columns where rows differ. The file of each suite has every round.

";

pub fn section(results: &Results) -> String {
    let mut text = String::from("# Trunkline and its peers, side by side\n\n");
    if results.runs.is_empty() {
        text += &of_unknown(&results.rows);
    } else {
        text += &of_runs(results);
    }
    text + HOW_TO_READ
}

/// Lists the runs with their suites. Parts of one run share a line.
fn of_runs(results: &Results) -> String {
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for run in &results.runs {
        let line = of_run(run);
        let of = results.rows.iter().filter(|row| row.run == run.id && row.made == run.made);
        let suites = of.map(|row| code(&parts::named(&row.suite, row.major)));
        let at = lines.iter().position(|(known, _)| *known == line).unwrap_or_else(|| {
            lines.push((line, Vec::new()));
            lines.len() - 1
        });
        for suite in suites {
            if !lines[at].1.contains(&suite) {
                lines[at].1.push(suite);
            }
        }
    }
    let mut text = String::from(
        "A suite on one version of PostgreSQL is one run: all of its rows were made by one commit, in turns. Rows of different runs are not compared.\n\n",
    );
    for (line, suites) in lines {
        let _ = writeln!(text, "- {}: {line}", suites.join(", "));
    }
    text + "\n"
}

fn of_run(run: &Header) -> String {
    let Made { commit, arguments, build } = &run.made;
    let mut text = format!(
        "run {}, of commit {} ({build} build), made by {}",
        code(&run.id),
        code(commit),
        code(&format!("trunkline-bench {arguments}"))
    );
    let sittings: Vec<String> =
        run.sittings.iter().map(|(from, to)| format!("{} to {}", number::date(*from), number::date(*to))).collect();
    let _ = write!(text, " from {}.", sittings.join(", and from "));
    if !run.left_out.is_empty() {
        let _ = write!(text, " It left out: {}.", run.left_out.join("; "));
    }
    text
}

/// Describes rows that do not say by which run they were made.
fn of_unknown(rows: &[Row]) -> String {
    match rows.len() {
        0 => String::new(),
        count => format!("**Of no run**: {count} rows do not say when, and by which commit, they were made.\n\n"),
    }
}
