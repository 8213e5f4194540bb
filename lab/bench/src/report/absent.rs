//! Lists the contenders that could not be measured, each with its message.

use crate::{
    report::{
        markdown::{Table, code, plain},
        race::excuse,
    },
    results::Results,
};

/// A contender's message, and the number of cases and the suites in which it appeared.
struct Absent<'a> {
    contender: &'a str,
    what: &'static str,
    words: &'a str,
    suites: Vec<(&'a str, usize)>,
}

pub fn section(results: &Results) -> String {
    let mut all: Vec<Absent> = Vec::new();
    for row in &results.rows {
        let Some((what, words)) = excuse(row) else { continue };
        let same = |known: &Absent| (known.contender, known.what, known.words) == (row.contender.as_str(), what, words);
        let at = all.iter().position(same).unwrap_or_else(|| {
            all.push(Absent { contender: &row.contender, what, words, suites: Vec::new() });
            all.len() - 1
        });
        match all[at].suites.iter_mut().find(|(suite, _)| *suite == row.suite) {
            Some((_, cases)) => *cases += 1,
            None => all[at].suites.push((&row.suite, 1)),
        }
    }
    let mut table = Table::of_words(["contender", "", "in its own words", "where, and in how many cases"]);
    for absent in &all {
        let places: Vec<String> =
            absent.suites.iter().map(|(suite, cases)| format!("{} {cases}", code(suite))).collect();
        table.row([code(absent.contender), absent.what.into(), plain(absent.words), places.join(", ")].map(Some));
    }
    let table = table.text();
    if table.is_empty() { table } else { format!("## Who could not be measured\n\n{table}") }
}
