//! What each layer takes for a step, beside the SQL under it.

use super::{
    mark::Mark,
    page::Page,
    panels::{self, Axis, Band, Panel},
};
use crate::{
    report::{
        measure::MEAN,
        number,
        race::{Race, excuse, on_one_server, races},
    },
    results::{Results, Row},
};

pub fn draw(results: &Results) -> Option<String> {
    let races = races(on_one_server(results, "layer-comparison"));
    let panels: Vec<Panel> = races.iter().map(|race| panel(race, &races)).collect();
    let is_figure = |mark: &Mark| matches!(mark, Mark::Bar { .. });
    panels.iter().flat_map(|panel| &panel.marks).find(|(_, mark)| is_figure(mark))?;
    let mut contenders: Vec<String> = Vec::new();
    for (name, _) in panels.iter().flat_map(|panel| &panel.marks) {
        if !contenders.contains(name) {
            contenders.push(name.clone());
        }
    }
    let mut page = Page::new(
        "Layers",
        "Mean time of a step in each of Trunkline's layers, and how many times that of the plain SQL it is; a peer \
         beside them. The shorter the better. \
         Each panel has an axis of its own, from nought. Whiskers: the least and the most of the rounds.",
    );
    let axis = Axis { logarithmic: false, shared: false, show: number::time };
    panels::draw(&mut page, &Band { title: None, panels, contenders, axis, across: 3 });
    Some(page.finish())
}

fn panel(race: &Race, among: &[Race]) -> Panel {
    let sql = race.measured().find(|row| row.contender == "sql").and_then(|row| MEAN.median(row));
    let marks = race.rows.iter().map(|row| (row.contender.clone(), mark(row, sql))).collect();
    Panel { title: race.name(among), marks }
}

fn mark(row: &Row, sql: Option<f64>) -> Mark {
    if let Some((what, words)) = excuse(row) {
        return Mark::Words(format!("{what}: {words}"));
    }
    let Some(spread) = (MEAN.of)(row) else { return Mark::Words("no time was told".into()) };
    let times = sql.filter(|sql| *sql > 0.0 && row.contender != "sql").map(|sql| number::times(spread.median / sql));
    let label = match times {
        Some(times) => format!("{} {times}", number::time(spread.median)),
        None => number::time(spread.median),
    };
    Mark::Bar { value: spread.median, least: spread.least, most: spread.most, label }
}
