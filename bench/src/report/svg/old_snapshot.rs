//! What a received message costs the server while a snapshot is held: a line a contender, named at its end.

use super::{
    page::{self, Anchor, Page, WIDTH},
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
const LABEL: f64 = 15.0;
const LEFT: f64 = 62.0;

struct Line<'a> {
    row: &'a Row,
    class: String,
    points: Vec<(f64, f64)>,
    label: String,
}

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
    plot(&mut page, &lines);
    let absent = race.rows.iter().filter_map(|row| Some((row, excuse(row)?)));
    let absent: Vec<String> =
        absent.map(|(row, (what, words))| format!("{} ({what}: {words})", row.contender)).collect();
    if !absent.is_empty() {
        page.y += 4.0;
        page.paragraph("dim", &format!("Without a line: {}.", absent.join("; ")));
    }
    Some(page.finish())
}

fn lines<'a>(race: &Race<'a>) -> Vec<Line<'a>> {
    let (mut ours, mut peers) = (0, 0);
    let mut lines = Vec::new();
    for row in race.rows.iter().copied().filter(|row| is_measured(row)) {
        let points = points(row);
        let Some((_, end)) = points.last() else { continue };
        let count = if is_ours(&row.contender) { &mut ours } else { &mut peers };
        let class = match is_ours(&row.contender) {
            true => format!("line us c-us d{}", *count % 3),
            // A kind of dash only comes back with another colour.
            false => format!("line c{} d{}", *count % 6, *count / 6 % 3),
        };
        *count += 1;
        // As in the table, not whatever the very last sample was.
        let (cost, dead) = tenths::tenths(row).map_or((*end, 0.0), |(_, last)| (last.cpu.unwrap_or(*end), last.dead));
        let label = format!("{} · {} dead", number::time(cost), number::rate(dead));
        lines.push(Line { row, class, points, label });
    }
    lines
}

fn plot(page: &mut Page, lines: &[Line]) {
    let labels = lines.iter().map(|line| page::bold_width(&line.row.contender, 12.0) + page::width(&line.label, 11.0));
    let right = labels.fold(0.0, f64::max).min(WIDTH / 2.0) + 46.0;
    let height = (lines.len() as f64 * (LABEL + 1.0)).max(300.0);
    let (top, bottom) = (page.y + 16.0, page.y + 16.0 + height);
    let all = || lines.iter().flat_map(|line| &line.points);
    let across = Scale::linear(all().map(|(at, _)| *at), WIDTH - LEFT - right);
    let up = Scale::logarithmic(all().map(|(_, cost)| *cost), height);
    for tick in up.ticks(30.0) {
        let y = bottom - up.at(tick);
        page.line("grid", (LEFT, y), (WIDTH - right, y));
        page.text("dim", LEFT - 6.0, y + 4.0, Anchor::End, &number::short(&number::time(tick)));
    }
    for tick in across.ticks(70.0) {
        page.text("dim", LEFT + across.at(tick), bottom + 16.0, Anchor::Middle, &elapsed(tick));
    }
    let place = |(at, cost): &(f64, f64)| (LEFT + across.at(*at), bottom - up.at(*cost));
    let places: Vec<Vec<(f64, f64)>> = lines.iter().map(|line| line.points.iter().map(place).collect()).collect();
    // Ours on top of the others.
    for ours in [false, true] {
        for (line, places) in lines.iter().zip(&places).filter(|(line, _)| is_ours(&line.row.contender) == ours) {
            page.path(&line.class, places);
        }
    }
    let ends: Vec<(f64, f64)> = places.iter().filter_map(|places| places.last().copied()).collect();
    let heights = spread(&ends.iter().map(|(_, y)| *y).collect::<Vec<_>>(), top, bottom);
    for ((line, end), y) in lines.iter().zip(&ends).zip(heights) {
        let x = WIDTH - right + 22.0;
        let colour = line.class.split(' ').find(|class| class.starts_with('c')).unwrap_or_default();
        page.path(&format!("lead {colour}"), &[*end, (WIDTH - right + 4.0, end.1), (x - 6.0, y), (x - 2.0, y)]);
        let class = if is_ours(&line.row.contender) { "ours" } else { "" };
        let name = page::cut(&line.row.contender, right - 46.0 - page::width(&line.label, 11.0), 12.0);
        page.text(class, x, y + 4.0, Anchor::Start, &name);
        page.text("dim", WIDTH - 12.0, y + 4.0, Anchor::End, &line.label);
    }
    page.y = bottom + 18.0;
}

/// Heights as near to the wanted ones as may be without one label on another.
fn spread(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut heights = wanted.to_vec();
    let mut least = top;
    for at in &order {
        heights[*at] = heights[*at].max(least);
        least = heights[*at] + LABEL;
    }
    let mut most = bottom;
    for at in order.iter().rev() {
        heights[*at] = heights[*at].min(most);
        most = heights[*at] - LABEL;
    }
    heights
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

#[cfg(test)]
mod tests {
    #[test]
    fn labels_keep_their_distance_and_stay_inside() {
        let heights = super::spread(&[100.0, 100.0, 101.0, 0.0, 300.0, 300.0], 10.0, 300.0);
        let mut sorted = heights.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= super::LABEL), "{heights:?}");
        assert!(sorted[0] >= 10.0 && sorted[5] <= 300.0, "{heights:?}");
    }
}
