use std::{fmt::Write, time::Duration};

use super::{
    Report,
    number::{away, short, times},
};
use crate::{
    measured::{Measured, Spread},
    ways::{OURS, is_rival},
    work::Kind,
    workloads::WORKLOADS,
};

/// A page: its file name, its title, its explanation, and its workloads.
type Page = (&'static str, &'static str, &'static str, &'static [Kind]);

/// The pages for the workloads of hasql's benchmark.
const PAGES: [Page; 3] = [
    (
        "results-parsing.html",
        "Results parsing",
        "A statement without parameters returns 10,000 rows of six columns, and the client decodes every column.",
        &[Kind::Results],
    ),
    (
        "parameters-rendering.html",
        "Parameters rendering",
        "Statements have six parameters per row, and discard them. A thousand statements compare the encoding and the round trips, one statement \
         with all parameters compares the encoding alone.",
        &[Kind::Parameters, Kind::ManyParameters],
    ),
    (
        "writing-transaction.html",
        "Writing transaction",
        "Money is transferred in transactions of two updates, each of which returns a balance, one transaction after another.",
        &[Kind::Transfers],
    ),
];

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2328;--dim:#59636e;--line:#d1d9e0;--ours:#0b6bcb;--theirs:#8c959f}\
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9da7b1;--line:#3d444d;--ours:#58a6ff;--theirs:#6e7681}}\
body{max-width:64rem;margin:2rem auto;padding:0 1rem;font:15px/1.5 system-ui,Helvetica,Arial,sans-serif;color:var(--ink)}\
.about{color:var(--dim)}table{width:100%;border-collapse:collapse;margin-bottom:2rem}\
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
th:first-child,td:first-child{text-align:left}.ours{font-weight:600}svg{display:block}\
rect{fill:var(--theirs)}.ours rect{fill:var(--ours)}path{stroke:var(--ink);fill:none}";

/// Makes the pages whose workloads were measured. Returns the name and the text of each file. A
/// page loads no other file.
pub fn pages(report: &Report) -> Vec<(&'static str, String)> {
    let made = |(file, title, about, kinds): Page| {
        let mut tables = String::new();
        for workload in WORKLOADS.iter().filter(|workload| kinds.contains(&workload.kind)) {
            for delay in report.delays() {
                let rows: Vec<&Measured> = report.at(delay, workload.name).collect();
                if !rows.is_empty() {
                    tables += &table(workload.name, delay, &rows);
                }
            }
        }
        (!tables.is_empty()).then(|| (file, page(report, title, about, &tables)))
    };
    PAGES.into_iter().filter_map(made).collect()
}

fn page(report: &Report, title: &str, about: &str, tables: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}: ways of driving Postgres</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p>{about}</p>\n\
         <p class=\"about\">A bar is the median of a way's turns, its line reaches from the least to the most, or to the edge. A way whose turns scatter \
         more than threefold says nothing, and has no bar. CPU is the client's, in microseconds per statement, or per six parameters. Client and \
         server share the machine.</p>\n<p class=\"about\">{}</p>\n<p class=\"about\">{}</p>\n{tables}</body>\n</html>\n",
        escaped(report.made.told().trim()).replace('`', ""),
        escaped(&report.machine),
    )
}

/// Shows all ways for one workload and one delay, the fastest first.
fn table(workload: &str, delay: Duration, rows: &[&Measured]) -> String {
    let mut rows: Vec<(&Measured, Spread)> = rows.iter().filter_map(|row| Some((*row, row.milliseconds()?))).collect();
    rows.sort_by(|(_, one), (_, other)| {
        one.scatters().cmp(&other.scatters()).then(one.median.total_cmp(&other.median))
    });
    let steady = |spread: &Spread| (!spread.scatters()).then_some(spread.median);
    let longest = rows.iter().map(|(_, spread)| spread.median).fold(0.0, f64::max);
    let ours = rows.iter().find(|(row, _)| row.way == OURS).and_then(|(_, spread)| steady(spread));
    let mut text = format!(
        "<h2>{}, {}</h2>\n<table>\n<tr><th>way<th>median, ms<th>least to most<th>to {OURS}<th>CPU<th>\n",
        escaped(workload),
        away(delay)
    );
    for (row, spread) in &rows {
        let class = if is_rival(row.way) { "" } else { " class=\"ours\"" };
        let median = steady(spread);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "<tr{class}><td>{}<td>{}<td>{} to {}<td>{}<td>{}<td>{}",
            escaped(row.way),
            median.map_or_else(|| "says nothing".to_owned(), short),
            short(spread.least),
            short(spread.most),
            times(median, ours),
            row.cpu().map_or_else(|| "-".to_owned(), short),
            bar(spread, longest)
        );
    }
    text + "</table>\n"
}

/// Draws the median as a bar, and the minimum and maximum as a line across the bar.
fn bar(spread: &Spread, longest: f64) -> String {
    const WIDTH: f64 = 200.0;
    let at = |value: f64| (value / (1.1 * longest) * WIDTH).min(WIDTH);
    let (least, most) = (at(spread.least), at(spread.most));
    let bar = match spread.scatters() {
        true => String::new(),
        false => format!("<rect y=\"2\" width=\"{:.1}\" height=\"12\"/>", at(spread.median)),
    };
    format!(
        "<svg width=\"{WIDTH}\" height=\"16\" aria-hidden=\"true\">{bar}<path d=\"M{least:.1} 5v6M{least:.1} 8H{most:.1}M{most:.1} 5v6\"/></svg>"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
