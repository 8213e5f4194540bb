//! What a received message costs the server while a snapshot is held: a line a contender, named at
//! its end.

use super::{
    lines::{Classes, Line, Plot, room},
    page::Page,
    scale::Scale,
};
use crate::{
    report::{
        number,
        race::{Race, excuse, is_measured, is_ours, on_one_server, races},
        tenths,
    },
    results::{Results, Row},
};

/// Points of a line; more would not be seen.
const POINTS: usize = 90;

pub fn draw(results: &Results) -> Option<String> {
    let rows = on_one_server(results, "old-snapshot");
    let held = rows.iter().any(|row| row.told.held_snapshot);
    let races = races(rows.into_iter().filter(|row| row.told.held_snapshot == held));
    // The case in which most of them ran.
    let race = races.iter().max_by_key(|race| race.rows.iter().filter(|row| !points(row).is_empty()).count())?;
    let lines = lines(race);
    if lines.is_empty() {
        return None;
    }
    let speed =
        race.first().told.rate.map_or_else(String::new, |rate| format!(" at {} messages/s", number::whole(rate)));
    let mut page = Page::new(
        "While a snapshot is held: server CPU a received message",
        &format!(
            "Processor time of the server for each message that was received{speed}, the lower the better, on a logarithmic axis. \
             Behind each name: the time in the last tenth, and how many dead tuples there were at the end. Heavy: Trunkline."
        ),
    );
    let plot = Plot {
        lines: &lines,
        across: |all, length| Scale::linear(all.iter().copied(), length),
        ticks: |_, across| across.ticks(70.0),
        show_across: elapsed,
        show_up: number::time,
        least_height: 300.0,
        room: room(&lines),
    };
    plot.draw(&mut page);
    let absent = race.rows.iter().filter_map(|row| Some((row, excuse(row)?)));
    let absent: Vec<String> =
        absent.map(|(row, (what, words))| format!("{} ({what}: {words})", row.contender)).collect();
    if !absent.is_empty() {
        page.y += 4.0;
        page.paragraph("dim", &format!("Without a line: {}.", absent.join("; ")));
    }
    Some(page.finish())
}

fn lines(race: &Race) -> Vec<Line> {
    let mut classes = Classes::default();
    let mut lines = Vec::new();
    for row in race.rows.iter().copied().filter(|row| is_measured(row)) {
        let points = points(row);
        let Some((_, end)) = points.last() else { continue };
        let ours = is_ours(&row.contender);
        // As in the table, not whatever the very last sample was.
        let (cost, dead) = tenths::tenths(row).map_or((*end, 0.0), |(_, last)| (last.cpu.unwrap_or(*end), last.dead));
        let label = format!("{} · {} dead", number::time(cost), number::rate(dead));
        lines.push(Line { name: row.contender.clone(), ours, class: classes.next(ours), points, label });
    }
    lines
}

/// Time and cost of a received message, each point the mean of its share of the samples.
fn points(row: &Row) -> Vec<(f64, f64)> {
    let samples: Vec<_> = tenths::series(row)
        .iter()
        .filter(|sample| sample.received > 0.0 && sample.server_cpu_us.is_finite() && sample.server_cpu_us > 0.0)
        .collect();
    let mean = |samples: &[&crate::results::Sample]| {
        let count = samples.len() as f64;
        (
            samples.iter().map(|sample| sample.at).sum::<f64>() / count,
            samples.iter().map(|sample| sample.server_cpu_us).sum::<f64>() / count,
        )
    };
    samples.chunks(samples.len().div_ceil(POINTS).max(1)).map(mean).collect()
}

fn elapsed(seconds: f64) -> String {
    match seconds {
        0.0 => "0".into(),
        seconds if seconds % 60.0 == 0.0 => format!("{} min", seconds / 60.0),
        seconds => format!("{seconds:.0} s"),
    }
}
