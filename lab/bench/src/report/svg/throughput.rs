//! Throughput: a column for sending, draining and both at once, each contender by the fastest of
//! its rows.

use super::{
    mark::Mark,
    page::Page,
    panels::{self, Axis, Band, Panel},
};
use crate::{
    report::{
        measure::RATE,
        number,
        race::{excuse, is_measured, on_one_server},
    },
    results::{Results, Row},
};

/// What contenders are told to do, the whole life of a message first, and what that is called.
const KINDS: &[(&str, &str)] =
    &[("cycle", "both at once, messages/s"), ("drain", "drained, messages/s"), ("send", "sent, messages/s")];

pub fn draw(results: &Results) -> Option<String> {
    let rows = on_one_server(results, "throughput");
    let mut panels: Vec<Panel> = Vec::new();
    for (kind, title) in KINDS {
        let rows: Vec<&Row> = rows.iter().copied().filter(|row| row.told.case == *kind).collect();
        if rows.iter().any(|row| is_measured(row)) {
            panels.push(Panel { title: (*title).into(), marks: marks(&rows) });
        }
    }
    let mut contenders: Vec<String> = Vec::new();
    let first = panels.first()?;
    for (name, _) in first.marks.iter().chain(panels.iter().flat_map(|panel| &panel.marks)) {
        if !contenders.contains(name) {
            contenders.push(name.clone());
        }
    }
    let mut page = Page::new(
        "Throughput",
        "Messages a second, each contender with its fastest batch size and callers; the longer the better, on a logarithmic axis: equal \
         lengths are equal factors. Whiskers: the least and the most of the rounds. Heavy: Trunkline.",
    );
    let axis = Axis { logarithmic: true, shared: true, show: number::rate };
    panels::draw(&mut page, &Band { title: None, panels, contenders, axis, across: 3 });
    Some(page.finish())
}

/// The best row of each contender, the fastest first, those without figures last.
fn marks(rows: &[&Row]) -> Vec<(String, Mark)> {
    let mut best: Vec<&Row> = Vec::new();
    let worth = |row: &Row| if is_measured(row) { RATE.median(row).unwrap_or(0.0) } else { -1.0 };
    for row in rows {
        match best.iter_mut().find(|known| known.contender == row.contender) {
            Some(known) if worth(row) > worth(known) => *known = row,
            Some(_) => {}
            None => best.push(row),
        }
    }
    best.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
    best.into_iter().map(|row| (row.contender.clone(), mark(row))).collect()
}

fn mark(row: &Row) -> Mark {
    if let Some((what, words)) = excuse(row) {
        return Mark::Words(format!("{what}: {words}"));
    }
    match (RATE.of)(row) {
        Some(spread) => Mark::Bar {
            value: spread.median,
            least: spread.least,
            most: spread.most,
            label: number::rate(spread.median),
        },
        None => Mark::Words("nothing came out".into()),
    }
}
