//! What becomes of sends when the disk takes its time: messages a second, and the slowest of a
//! hundred, over the time of an fsync.

use super::{
    lines::{Classes, Line, Plot, room},
    page::{Anchor, Page},
    scale::Scale,
};
use crate::{
    report::{
        fsync::{self, Series},
        measure::{Measure, P99, RATE},
        number,
        race::on_one_server,
    },
    results::Results,
};

pub fn draw(results: &Results) -> Option<String> {
    let rows = on_one_server(results, "fsync");
    let series = fsync::series(&rows);
    let (asis, absent) = (fsync::as_it_is(&rows), fsync::absent(&series));
    let (sent, slowest) = (lines(&series, &RATE, asis), lines(&series, &P99, asis));
    if sent.iter().all(|line| line.points.len() < 2) {
        return None;
    }
    let mut page = Page::new(
        "The time of an fsync",
        "Callers that each send one message and wait until it is durable, on a server whose fsyncs take at least so long (at the left end: as \
         long as the disk takes), both axes logarithmic. Behind each name: the figure where an fsync takes longest. Heavy: Trunkline.",
    );
    for (title, lines, show_up) in [
        ("messages sent a second: the higher the better", &sent, number::rate as fn(f64) -> String),
        ("99th percentile of the time of a send: the lower the better", &slowest, number::time),
    ] {
        if lines.iter().all(|line| line.points.is_empty()) {
            continue;
        }
        page.y += 20.0;
        page.text("head", 12.0, page.y, Anchor::Start, title);
        let plot = Plot {
            lines,
            across: |all, length| Scale::logarithmic_from(all.iter().copied(), length),
            ticks: |all, _| apart(all),
            show_across: milliseconds,
            show_up,
            least_height: 170.0,
            room: room(&sent).max(room(&slowest)),
        };
        plot.draw(&mut page);
        page.y += 8.0;
    }
    if !absent.is_empty() {
        page.paragraph("dim", &format!("Without a line: {}.", absent.join("; ")));
    }
    Some(page.finish())
}

fn lines(series: &[Series], measure: &Measure, asis: f64) -> Vec<Line> {
    let mut classes = Classes::default();
    let mut known: Vec<(&str, String)> = Vec::new();
    let mut lines = Vec::new();
    for of in series {
        // Its own in both plots, and with every number of callers.
        let class = match known.iter().find(|(contender, _)| *contender == of.contender()) {
            Some((_, class)) => class.clone(),
            None => classes.next(of.is_ours()),
        };
        known.push((of.contender(), class.clone()));
        let value = |least: f64| of.row(least).and_then(|row| measure.median(row));
        let points: Vec<(f64, f64)> = of
            .leasts()
            .into_iter()
            .filter_map(|least| Some((if least > 0.0 { least } else { asis }, value(least)?)))
            .filter(|(_, value)| *value > 0.0)
            .collect();
        let Some((_, last)) = points.last() else { continue };
        lines.push(Line { name: of.name(), ours: of.is_ours(), class, label: (measure.show)(*last), points });
    }
    lines
}

/// Every time of an fsync that somebody has a point at.
fn apart(all: &[f64]) -> Vec<f64> {
    let mut times = all.to_vec();
    times.sort_by(f64::total_cmp);
    times.dedup();
    times
}

fn milliseconds(time: f64) -> String {
    number::short(&number::time(time * 1000.0))
}
