//! Checks figures that documents state. A mark after each figure names the figure's row: `555 k<!--
//! row: throughput/drain/trunkline messages_per_s -->`.
//!
//! A mark on its own line after a table names a column of that table: `<!-- row: throughput/drain/*
//! messages_per_s, column 2 -->`. The star stands for the name in each row's first cell. The word
//! `over` means the ratio of two rows: `<!-- row: throughput/drain/trunkline messages_per_s over
//! throughput/drain/river -->`. Ways of driving Postgres are also rows: `drivers/get ×100/trunkline
//! ms`, and with a network delay `drivers@5/get ×100/trunkline ms`.

mod figure;
mod sources;

use std::path::PathBuf;

use trunkline_programs::say;

use self::{figure::Figure, sources::Sources};
use crate::{Failure, tree};

/// Checks every figure of these documents that has a mark.
pub fn run(documents: &[PathBuf]) -> Result<(), Failure> {
    let sources = Sources::read(&tree::published())?;
    let (mut stated, mut wrong) = (0, Vec::new());
    for document in documents {
        let text = std::fs::read_to_string(document)?;
        let (count, problems) = check(&text, &sources);
        stated += count;
        wrong.extend(problems.into_iter().map(|problem| format!("{}: {problem}", document.display())));
    }
    match wrong.is_empty() {
        true => {
            say(format_args!("{stated} figures are what their rows say"));
            Ok(())
        }
        false => Err(wrong.join("\n").into()),
    }
}

const MARK: &str = "<!-- row: ";
const END: &str = " -->";

/// Returns the number of figures with a mark, and a description of each figure that differs from
/// its row.
pub fn check(text: &str, sources: &Sources) -> (usize, Vec<String>) {
    let (mut count, mut problems) = (0, Vec::new());
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let mut rest = *line;
        while let Some((before, after)) = rest.split_once(MARK) {
            let Some((words, next)) = after.split_once(END) else {
                problems.push(format!("line {}: a mark without its end", at + 1));
                break;
            };
            // Skips a mark inside code, which is only an example.
            let ahead = line.len() - rest.len() + before.len();
            if line[..ahead].matches('`').count() % 2 == 1 {
                rest = next;
                continue;
            }
            let outcome = match words.rsplit_once(", column ") {
                Some((words, column)) => table(&lines[..at], words, column, sources),
                None => stated(before, words, sources).map(|()| 1),
            };
            match outcome {
                Ok(checked) => count += checked,
                Err(why) => problems.push(format!("line {}: {why} (row: {words})", at + 1)),
            }
            rest = next;
        }
    }
    (count, problems)
}

/// Checks the last figure before the mark.
fn stated(before: &str, words: &str, sources: &Sources) -> Result<(), String> {
    let figure = Figure::last(before).ok_or("there is no figure before the mark")?;
    let value = sources.value(words)?;
    match figure.states(&value) {
        true => Ok(()),
        false => Err(format!("it says {}, and the row {value}", figure.text)),
    }
}

/// Checks a column of the table above the mark.
fn table(above: &[&str], words: &str, column: &str, sources: &Sources) -> Result<usize, String> {
    let column: usize = column.trim().parse().map_err(|_| format!("{column:?} is no column"))?;
    let above: Vec<&str> = above.iter().rev().skip_while(|line| line.trim().is_empty()).copied().collect();
    let rows: Vec<&str> =
        above.into_iter().take_while(|line| line.starts_with('|') || line.starts_with(MARK)).collect();
    let rows: Vec<&str> = rows
        .into_iter()
        .filter(|line| line.starts_with('|'))
        .take_while(|line| !line.starts_with("|--") && !line.starts_with("| --"))
        .collect();
    if rows.is_empty() {
        return Err("there is no table above the mark".to_owned());
    }
    for row in &rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let cell = cells.get(column.wrapping_sub(1)).ok_or_else(|| format!("the table has no column {column}"))?;
        let name = cells[0].split('`').nth(1).unwrap_or(cells[0]);
        stated(cell, &words.replace('*', name), sources).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(rows.len())
}

#[cfg(test)]
mod tests;
