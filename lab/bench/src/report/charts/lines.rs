//! Draws lines on two logarithmic axes. Each line has its name at its end.

use plotters::prelude::*;

use super::{Area, DIM, Drawn, Figure, GRID, INK, LINE, OURS, WIDTH, absent, decades, ending, page, text, widest};
use crate::{
    report::{
        fsync::{self, ContenderRows},
        measure::{Measure, P99, RATE},
        number,
        race::{is_measured, is_ours, on_one_server, races},
        tenths,
    },
    results::{Results, Row, Sample},
};

/// The maximum number of points of a line. More points would not be visible.
const POINTS: usize = 90;

struct Polyline {
    ours: bool,
    name: String,
    /// The text after the name.
    label: String,
    points: Vec<(f64, f64)>,
}

struct Plot {
    /// The title. If it is not empty, every point has a dot; otherwise only the last point has one.
    title: &'static str,
    lines: Vec<Polyline>,
    ticks: Vec<f64>,
    show_across: fn(f64) -> String,
    show_up: fn(f64) -> String,
    height: i32,
}

pub fn old_snapshot(results: &Results) -> Figure {
    let rows = on_one_server(results, "old-snapshot");
    let held = rows.iter().any(|row| row.told.held_snapshot);
    let races = races(rows.into_iter().filter(|row| row.told.held_snapshot == held));
    // The figure shows the case in which most contenders ran.
    let race = races.iter().max_by_key(|race| race.rows.iter().filter(|row| !costs(row).is_empty()).count());
    let Some(race) = race else { return Ok(None) };
    let line = |row: &Row| {
        let points = costs(row);
        let end = points.last()?.1;
        // Shows the figures of the last tenth, as the table does, rather than the last sample
        // alone.
        let (cost, dead) = tenths::tenths(row).map_or((end, 0.0), |(_, last)| (last.cpu.unwrap_or(end), last.dead));
        let label = format!("{} · {} dead", number::time(cost), number::rate(dead));
        Some(Polyline { ours: is_ours(&row.contender), name: row.contender.clone(), label, points })
    };
    let speed = race.first().told.rate;
    let speed = speed.map_or_else(String::new, |rate| format!(" at {} messages/s", number::whole(rate)));
    let about = format!(
        "Processor time of the server for each message that was received{speed}, over the time for which the snapshot is held, both axes \
         logarithmic; the lower the better. A dot ends each run. Behind each name: the time in the last tenth, and the dead tuples at the end. \
         Heavy: Trunkline."
    );
    let plot = Plot {
        title: "",
        lines: race.measured().filter_map(line).collect(),
        ticks: vec![1.0, 3.0, 10.0, 30.0, 60.0, 180.0, 600.0, 1800.0],
        show_across: |time| if time < 60.0 { format!("{time} s") } else { format!("{} min", time / 60.0) },
        show_up: number::time,
        height: 300,
    };
    figure("While a snapshot is held: server CPU a received message", &about, &absent(&race.rows), vec![plot])
}

/// Returns the points of a row: the time, and the cost of a received message. Each point is the
/// mean of its share of the samples.
fn costs(row: &Row) -> Vec<(f64, f64)> {
    let cost = |sample: &Sample| {
        let cost = Some((sample.at, sample.server_cpu_us));
        cost.filter(|(at, cost)| *at > 0.0 && sample.received > 0.0 && cost.is_finite() && *cost > 0.0)
    };
    let costs: Vec<(f64, f64)> = tenths::series(row).iter().filter_map(cost).collect();
    let mean = |costs: &[(f64, f64)]| {
        let (at, cost) = costs.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        (at / costs.len() as f64, cost / costs.len() as f64)
    };
    if is_measured(row) { costs.chunks(costs.len().div_ceil(POINTS).max(1)).map(mean).collect() } else { Vec::new() }
}

pub fn fsync(results: &Results) -> Figure {
    let rows = on_one_server(results, "fsync");
    let series = fsync::series(&rows);
    let plot = |title, measure: &Measure| {
        let line = |of: &ContenderRows| {
            let value = |least: f64| measure.median(of.row(least)?).filter(|value| *value > 0.0);
            let asis = fsync::as_it_is(&rows);
            let point = |least: f64| Some((if least > 0.0 { least } else { asis }, value(least)?));
            let points: Vec<(f64, f64)> = of.leasts().into_iter().filter_map(point).collect();
            Some(Polyline { ours: of.is_ours(), name: of.name(), label: (measure.show)(points.last()?.1), points })
        };
        let lines: Vec<Polyline> = series.iter().filter_map(line).collect();
        let mut ticks: Vec<f64> = lines.iter().flat_map(|line| line.points.iter().map(|(at, _)| *at)).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        let show_across = |time| number::short(&number::time(time * 1000.0));
        Plot { title, lines, ticks, show_across, show_up: measure.show, height: 190 }
    };
    let mut plots = vec![
        plot("messages sent a second: the higher the better", &RATE),
        plot("99th percentile of the time of a send: the lower the better", &P99),
    ];
    plots.retain(|plot| plot.ticks.len() > 1);
    let about = "Callers that each send one message and wait until it is durable, on a server whose fsyncs take at least the time below (at the \
                 left end: as long as the disk takes), both axes logarithmic. Behind each name: the figure where an fsync takes longest. \
                 Heavy: Trunkline.";
    let absent: Vec<String> = fsync::absent(&series).iter().map(|words| format!("Not shown: {words}.")).collect();
    figure("The time of an fsync", about, &absent, plots)
}

fn figure(title: &str, about: &str, below: &[String], mut plots: Vec<Plot>) -> Figure {
    plots.retain(|plot| !plot.lines.is_empty());
    let lines = || plots.iter().flat_map(|plot| &plot.lines);
    let beside = widest(lines().map(|line| &line.name)) + widest(lines().map(|line| &line.label)) + 46;
    let colour = |line: &Polyline| {
        // Finds the lines of the same kind in the first plot, which contains all lines.
        let kin = plots[0].lines.iter().filter(|other| other.ours == line.ours);
        let at = kin.take_while(|other| other.name != line.name).count();
        // Spreads the hues by steps of the golden ratio, which keep any number of hues apart.
        let peer = HSLColor((0.72 + 0.75 * (at as f64 * 0.618).fract()) % 1.0, 0.65, [0.52, 0.4, 0.36][at % 3]);
        if line.ours { OURS[at % OURS.len()] } else { peer }
    };
    page(title, about, below, plots.iter().map(Plot::whole).sum(), |root, mut y| {
        for plot in &plots {
            plot.draw(root, y, beside, &colour)?;
            y += plot.whole();
        }
        Ok(())
    })
}

impl Plot {
    fn head(&self) -> i32 {
        if self.title.is_empty() { 0 } else { 26 }
    }

    /// Returns the height of the plot with its title and the labels of its axis.
    fn whole(&self) -> i32 {
        self.head() + self.height.max(self.lines.len() as i32 * (LINE + 1)) + 42
    }

    fn draw(&self, root: &Area, y: i32, beside: i32, colour: &impl Fn(&Polyline) -> HSLColor) -> Drawn {
        if !self.title.is_empty() {
            root.draw_text(self.title, &text(12, INK, true), (12, y + 16))?;
        }
        let (top, height) = (y + self.head(), self.whole() - self.head());
        let bounds = |of: fn(&(f64, f64)) -> f64, around: f64| {
            let all = self.lines.iter().flat_map(|line| &line.points).map(of);
            let (least, most) = all.fold((f64::MAX, 0.0_f64), |(least, most), it| (least.min(it), most.max(it)));
            (least / around, most * around)
        };
        let ((from, to), (least, most)) = (bounds(|point| point.0, 1.03), bounds(|point| point.1, 1.15));
        let steps = if most / least < 1000.0 { &[1.0, 2.0, 5.0][..] } else { &[1.0] };
        let up =
            decades(least / 10.0, most, 1).into_iter().flat_map(|power| steps.iter().map(move |step| power * step));
        let up: Vec<f64> = up.filter(|tick| *tick > least && *tick < most).collect();
        let across: Vec<f64> = self.ticks.iter().copied().filter(|tick| *tick > from && *tick < to).collect();
        let area = root.clone().shrink((0, top), (WIDTH - beside, height));
        let mut builder = ChartBuilder::on(&area);
        builder.margin_top(8).margin_bottom(6).x_label_area_size(22).y_label_area_size(58);
        let across = (from..to).log_scale().with_key_points(across);
        let mut chart = builder.build_cartesian_2d(across, (least..most).log_scale().with_key_points(up))?;
        let below = |at: &f64| (self.show_across)(*at);
        let left = |value: &f64| number::short(&(self.show_up)(*value));
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh().light_line_style(GRID.mix(0.0)).bold_line_style(GRID).axis_style(GRID);
        mesh.set_all_tick_mark_size(4).x_label_formatter(&below).y_label_formatter(&left);
        mesh.label_style(text(11, DIM, false)).draw()?;
        // Our lines come first in the list and are drawn last, so that they are on top of the other
        // lines.
        for line in self.lines.iter().rev() {
            let style = colour(line).filled().stroke_width(if line.ours { 3 } else { 2 });
            chart.draw_series(LineSeries::new(line.points.iter().copied(), style))?;
            let plain = if self.title.is_empty() { line.points.len() - 1 } else { 0 };
            chart.draw_series(line.points[plain..].iter().map(|at| Circle::new(*at, 3, style)))?;
        }
        let ends = self.lines.iter().filter_map(|line| line.points.last());
        let ends: Vec<(i32, i32)> = ends.map(|end| chart.plotting_area().map_coordinate(end)).collect();
        let heights = spread(&ends.iter().map(|(_, y)| *y).collect::<Vec<_>>(), top + 8, top + height - 28);
        for ((line, (x, y)), height) in self.lines.iter().zip(ends).zip(heights) {
            let name = WIDTH - beside + 24;
            let lead = [(x, y), (name - 20, y), (name - 8, height), (name - 3, height)];
            root.draw(&PathElement::new(lead, colour(line).mix(0.5)))?;
            root.draw_text(&line.name, &text(12, INK, line.ours), (name, height))?;
            root.draw_text(&line.label, &ending(&text(11, DIM, false)), (WIDTH - 12, height))?;
        }
        Ok(())
    }
}

/// Returns heights as close to the wanted heights as possible, without overlapping labels.
fn spread(wanted: &[i32], top: i32, bottom: i32) -> Vec<i32> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|at| wanted[*at]);
    let mut heights = wanted.to_vec();
    let (mut least, mut most) = (top, bottom);
    for at in &order {
        heights[*at] = heights[*at].max(least);
        least = heights[*at] + LINE;
    }
    for at in order.iter().rev() {
        heights[*at] = heights[*at].min(most);
        most = heights[*at] - LINE;
    }
    heights
}

#[test]
fn labels_keep_their_distance_and_stay_inside() {
    let mut heights = spread(&[100, 100, 101, 0, 300, 300], 10, 300);
    heights.sort_unstable();
    assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= LINE), "{heights:?}");
    assert!(heights[0] >= 10 && heights[5] <= 300, "{heights:?}");
}
