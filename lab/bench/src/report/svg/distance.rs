//! What becomes of each call when the network takes its time: a band a case, a panel a delay.

use super::{
    mark::Mark,
    page::Page,
    panels::{self, Axis, Band, Panel},
};
use crate::{
    report::{
        measure::{MEAN, Measure, RATE},
        number,
        race::{Race, excuse, is_ours, on_one_server, races},
    },
    results::{Results, Row, Told},
};

pub fn draw(results: &Results) -> Option<String> {
    let rows = on_one_server(results, "distance");
    let mut bands: Vec<Vec<Race>> = Vec::new();
    for race in races(rows.iter().copied()) {
        match bands.iter_mut().find(|band| near(band[0].first()) == near(race.first())) {
            Some(band) => band.push(race),
            None => bands.push(vec![race]),
        }
    }
    let mut page = Page::new(
        "Distance",
        "With a network between client and server that takes so long each way: the mean time of a call, the shorter the better, \
         or messages a second, the longer the better, on logarithmic axes. Whiskers: the least and the most of the rounds. \
         Heavy: Trunkline.",
    );
    let mut drawn = false;
    for mut races in bands {
        races.sort_by(|a, b| a.first().told.delay_ms.total_cmp(&b.first().told.delay_ms));
        // Who only counts messages is drawn by their number.
        let timed = races.iter().flat_map(Race::measured).any(|row| MEAN.median(row).is_some());
        let (measure, what) = if timed { (&MEAN, "mean time") } else { (&RATE, "messages/s") };
        let panels: Vec<Panel> = races.iter().map(|race| panel(race, measure)).collect();
        if !panels.iter().flat_map(|panel| &panel.marks).any(|(_, mark)| matches!(mark, Mark::Bar { .. })) {
            continue;
        }
        let title = Some(format!("{}, {what}", races[0].first().told.case));
        let axis = Axis { logarithmic: true, shared: true, show: measure.show };
        panels::draw(&mut page, &Band { title, panels, contenders: contenders(&races), axis, across: 3 });
        drawn = true;
    }
    drawn.then(|| page.finish())
}

/// Everything but the distance and what each chooses for itself.
fn near(row: &Row) -> Told {
    Told { delay_ms: 0.0, seconds: 0.0, producers: 0, consumers: 0, backlog: 0, ..row.told.clone() }
}

/// Ours first.
fn contenders(races: &[Race]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in races.iter().flat_map(|race| &race.rows) {
        if !names.contains(&row.contender) {
            names.push(row.contender.clone());
        }
    }
    names.sort_by_key(|name| !is_ours(name));
    names
}

fn panel(race: &Race, measure: &Measure) -> Panel {
    let delay = race.first().told.delay_ms;
    let marks = race.rows.iter().map(|row| (row.contender.clone(), mark(row, measure))).collect();
    Panel { title: format!("{} ms each way", number::whole(delay)), marks }
}

fn mark(row: &Row, measure: &Measure) -> Mark {
    if let Some((what, words)) = excuse(row) {
        return Mark::Words(format!("{what}: {words}"));
    }
    match (measure.of)(row) {
        Some(spread) => Mark::Bar {
            value: spread.median,
            least: spread.least,
            most: spread.most,
            label: (measure.show)(spread.median),
        },
        None => Mark::Words("no figure was told".into()),
    }
}
