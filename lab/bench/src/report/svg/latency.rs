//! Latency: from the median to the 99th percentile, a panel a race.

use super::{
    mark::Mark,
    page::Page,
    panels::{self, Axis, Band, Panel},
};
use crate::{
    report::{
        measure::{P50, P99},
        number,
        race::{Race, excuse, on_one_server, races},
    },
    results::{Results, Row},
};

pub fn draw(results: &Results) -> Option<String> {
    let races = races(on_one_server(results, "latency"));
    let panels: Vec<Panel> = races.iter().map(|race| panel(race, &races)).collect();
    let is_figure = |mark: &Mark| matches!(mark, Mark::Range { .. });
    let first = panels.iter().find(|panel| panel.marks.iter().any(|(_, mark)| is_figure(mark)))?;
    let mut contenders: Vec<String> = Vec::new();
    for (name, _) in first.marks.iter().chain(panels.iter().flat_map(|panel| &panel.marks)) {
        if !contenders.contains(name) {
            contenders.push(name.clone());
        }
    }
    let mut page = Page::new(
        "Latency",
        "From when a message was to be sent until the handler has it: the box is the median, the far end the 99th percentile, \
         the further left the better, on a logarithmic axis. Heavy: Trunkline.",
    );
    let axis = Axis { logarithmic: true, shared: true, show: number::time };
    panels::draw(&mut page, &Band { title: None, panels, contenders, axis, across: 2 });
    Some(page.finish())
}

/// The soonest first, those without figures last.
fn panel(race: &Race, among: &[Race]) -> Panel {
    let mut rows = race.ranked(&P50, &P50);
    rows.extend(race.rows.iter().copied().filter(|row| excuse(row).is_some()));
    Panel { title: race.name(among), marks: rows.into_iter().map(|row| (row.contender.clone(), mark(row))).collect() }
}

fn mark(row: &Row) -> Mark {
    if let Some((what, words)) = excuse(row) {
        return Mark::Words(format!("{what}: {words}"));
    }
    match P50.median(row).zip(P99.median(row)) {
        Some((from, to)) => Mark::Range { from, to, label: number::span(from, to) },
        None => Mark::Words("no latency was told".into()),
    }
}
