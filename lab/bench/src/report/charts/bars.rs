//! Draws figures with bars. Panels side by side share their contenders, each of which has one row.

use plotters::{
    coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter},
    coord::types::RangedCoordf64,
    prelude::*,
};

use super::{Area, DIM, Drawn, Figure, GRID, INK, OURS, WIDTH, absent, decades, ending, page, text, widest};
use crate::{
    report::{
        columns,
        measure::{MEAN, Measure, P50, P99, RATE},
        number,
        race::{Race, is_measured, is_ours, on_one_server, races},
    },
    results::{Results, Row, Told},
};

const ROW: i32 = 21;
/// The height of a panel's title and of the labels of the panel's axis.
const HEAD: i32 = 40;
const GAP: i32 = 18;

/// A bar up to `value`, with a whisker from `least` to `most`.
struct Bar {
    contender: String,
    value: f64,
    least: f64,
    most: f64,
    label: String,
}

struct Panel {
    title: String,
    bars: Vec<Bar>,
}

/// Panels with one shared logarithmic axis, or each with its own axis from zero.
struct Band {
    panels: Vec<Panel>,
    logarithmic: bool,
    show: fn(f64) -> String,
}

pub fn throughput(results: &Results) -> Figure {
    let rows = on_one_server(results, "throughput");
    let panel = |(case, title): (&str, &str)| {
        let of = rows.iter().filter(|row| row.told.case == case);
        let mut bars: Vec<Bar> = of.filter_map(|row| bar(row, &RATE)).collect();
        bars.sort_by(|a, b| b.value.total_cmp(&a.value));
        let mut known = Vec::new();
        bars.retain(|bar| {
            !known.contains(&bar.contender) && {
                known.push(bar.contender.clone());
                true
            }
        });
        Panel { title: format!("{title}, messages/s"), bars }
    };
    let panels = [("cycle", "both at once"), ("drain", "drained"), ("send", "sent")].map(panel).into();
    let about = "Messages a second, each contender with its fastest batch size and callers; the longer the better, on a logarithmic axis: \
                 equal lengths are equal factors. Whiskers: the least and the most of the rounds. Blue: Trunkline.";
    figure("Throughput", about, &rows, 3, vec![Band { panels, logarithmic: true, show: number::rate }])
}

pub fn latency(results: &Results) -> Figure {
    let rows = on_one_server(results, "latency");
    let races = races(rows.iter().copied());
    let bar = |row: &Row| {
        let (p50, p99) = (P50.median(row)?, P99.median(row)?);
        Some(Bar { most: p99, least: p50, label: number::span(p50, p99), ..bar(row, &P50)? })
    };
    let panel = |race: &Race| {
        let bars = race.ranked(&P50, &P50).into_iter().filter_map(bar).collect();
        Panel { title: race.name(&races), bars }
    };
    let panels = races.iter().map(panel).collect();
    let about = "From when a message was to be sent until the handler has it: the bar ends at the median, its whisker at the 99th percentile; \
                 the shorter the better, on a logarithmic axis. Blue: Trunkline.";
    figure("Latency", about, &rows, 2, vec![Band { panels, logarithmic: true, show: number::time }])
}

pub fn layers(results: &Results) -> Figure {
    let rows = on_one_server(results, "layer-comparison");
    let races = races(rows.iter().copied());
    let panel = |race: &Race| {
        let mut bars: Vec<Bar> = race.rows.iter().filter_map(|row| bar(row, &MEAN)).collect();
        let lowest = columns::lowest(race).and_then(|row| Some((&row.contender, MEAN.median(row)?)));
        if let Some((name, value)) = lowest {
            for bar in bars.iter_mut().filter(|bar| bar.contender != *name) {
                bar.label.extend([" ", &number::times(bar.value / value)]);
            }
        }
        Panel { title: race.name(&races), bars }
    };
    let panels = races.iter().map(panel).collect();
    let about = "Mean time of a step in each of Trunkline's layers, and how many times that of the lowest layer it is; a peer beside them, in grey. \
                 The shorter the better. Each panel has an axis of its own, from zero. Whiskers: the least and the most of the rounds.";
    figure("Layers", about, &rows, 3, vec![Band { panels, logarithmic: false, show: number::time }])
}

pub fn distance(results: &Results) -> Figure {
    let mut rows = on_one_server(results, "distance");
    rows.sort_by(|a, b| a.told.delay_ms.total_cmp(&b.told.delay_ms));
    rows.sort_by_key(|row| !is_ours(&row.contender));
    // Rows that differ only in these settings belong to one panel.
    let near =
        |row: &Row| Told { delay_ms: 0.0, seconds: 0.0, producers: 0, consumers: 0, backlog: 0, ..row.told.clone() };
    let mut cases: Vec<Vec<Race>> = Vec::new();
    for race in races(rows.iter().copied()) {
        match cases.iter_mut().find(|case| near(case[0].first()) == near(race.first())) {
            Some(case) => case.push(race),
            None => cases.push(vec![race]),
        }
    }
    let band = |case: &Vec<Race>| {
        // Cases that only count messages show their rate.
        let timed = case.iter().flat_map(Race::measured).any(|row| MEAN.median(row).is_some());
        let (measure, what) = if timed { (&MEAN, "") } else { (&RATE, " messages/s") };
        let panel = |race: &Race| {
            let Told { case, delay_ms, .. } = &race.first().told;
            let bars = race.rows.iter().filter_map(|row| bar(row, measure)).collect();
            Panel { title: format!("{case}{what}, {} ms away", number::whole(*delay_ms)), bars }
        };
        Band { panels: case.iter().map(panel).collect(), logarithmic: true, show: measure.show }
    };
    let about = "With a network between client and server that takes this time each way: the mean time of a call, the shorter the better, or \
                 messages a second, the longer the better, on logarithmic axes. Whiskers: the least and the most of the rounds. Blue: Trunkline.";
    figure("Distance", about, &rows, 3, cases.iter().map(band).collect())
}

fn bar(row: &Row, measure: &Measure) -> Option<Bar> {
    let spread = (measure.of)(row).filter(|spread| is_measured(row) && spread.median > 0.0)?;
    let (contender, label) = (row.contender.clone(), (measure.show)(spread.median));
    Some(Bar { contender, value: spread.median, least: spread.least, most: spread.most, label })
}

fn figure(title: &str, about: &str, rows: &[&Row], across: usize, mut bands: Vec<Band>) -> Figure {
    for band in &mut bands {
        band.panels.retain(|panel| !panel.bars.is_empty());
    }
    let height = |band: &Band| band.height() * band.panels.len().div_ceil(across) as i32;
    page(title, about, &absent(rows), bands.iter().map(height).sum(), |root, mut y| {
        for band in &bands {
            band.draw(root, y, across)?;
            y += height(band);
        }
        Ok(())
    })
}

impl Band {
    /// Returns the contenders from top to bottom.
    fn names(&self) -> Vec<&String> {
        let mut names = Vec::new();
        for bar in self.panels.iter().flat_map(|panel| &panel.bars) {
            if !names.contains(&&bar.contender) {
                names.push(&bar.contender);
            }
        }
        names
    }

    /// Returns the height of panels that are side by side.
    fn height(&self) -> i32 {
        HEAD + ROW * self.names().len() as i32 + 12
    }

    fn draw(&self, root: &Area, mut y: i32, across: usize) -> Drawn {
        let left = 22 + widest(self.names().into_iter()).max(40);
        let columns = self.panels.len().min(across) as i32;
        let wide = (WIDTH - 12 - left - GAP * (columns - 1)) / columns;
        for panels in self.panels.chunks(across) {
            for (at, name) in self.names().into_iter().enumerate() {
                let place = (left - 8, y + HEAD + ROW * at as i32 + ROW / 2);
                root.draw_text(name, &ending(&text(12, INK, is_ours(name))), place)?;
            }
            for (at, panel) in panels.iter().enumerate() {
                let x = left + (wide + GAP) * at as i32;
                let area = root.clone().shrink((x, y), (wide, self.height() - 12));
                area.draw_text(&panel.title, &text(12, INK, true), (0, 10))?;
                self.panel(&area, panel, f64::from(wide))?;
            }
            y += self.height();
        }
        Ok(())
    }

    fn panel(&self, area: &Area, panel: &Panel, wide: f64) -> Drawn {
        let of = if self.logarithmic { &self.panels[..] } else { std::slice::from_ref(panel) };
        let bars = || of.iter().flat_map(|panel| &panel.bars);
        // Leaves room for the longest label next to the longest bar.
        let share = wide / (wide - f64::from(widest(bars().map(|bar| &bar.label))) - 10.0).max(30.0);
        let most = bars().map(|bar| bar.most.max(bar.value)).fold(0.0, f64::max);
        if self.logarithmic {
            let least = bars().map(|bar| bar.least.min(bar.value)).fold(most, f64::min);
            let from = 10_f64.powf((least * 0.7).log10().floor());
            let end = from * (most / from).powf(share);
            let step = (46.0 / wide * (end / from).log10()).ceil() as i32;
            self.chart(area, panel, (from..end).log_scale().with_key_points(decades(from, most, step)), from)
        } else {
            let end = most * share;
            let mut ticks = RangedCoordf64::from(0.0..end).key_points(6);
            ticks.retain(|tick| *tick <= most);
            self.chart(area, panel, (0.0..end).with_key_points(ticks).partial_axis(0.0..most), 0.0)
        }
    }

    fn chart<X: AsRangedCoord<Value = f64>>(&self, area: &Area, panel: &Panel, across: X, from: f64) -> Drawn
    where
        X::CoordDescType: ValueFormatter<f64>,
    {
        let names = self.names();
        let mut builder = ChartBuilder::on(area);
        builder.margin_top(HEAD / 2).top_x_label_area_size(HEAD - HEAD / 2);
        let mut chart = builder.build_cartesian_2d(across, names.len() as f64..0.0)?;
        let show = |value: &f64| number::short(&(self.show)(*value));
        let mut mesh = chart.configure_mesh();
        mesh.disable_y_mesh().disable_y_axis().light_line_style(GRID.mix(0.0)).bold_line_style(GRID);
        mesh.axis_style(GRID.mix(0.0)).set_all_tick_mark_size(3).x_label_formatter(&show);
        mesh.label_style(text(11, DIM, false)).draw()?;
        let plot = chart.plotting_area();
        for (at, name) in names.into_iter().enumerate() {
            let (top, middle, ours) = (at as f64, at as f64 + 0.5, is_ours(name));
            let (mut end, mut label) = (from, Text::new(number::NONE.to_owned(), (6, 0), text(11, DIM, false)));
            if let Some(bar) = panel.bars.iter().find(|bar| bar.contender == *name) {
                let colour = if ours { OURS[0].to_rgba() } else { RGBColor(0x8C, 0x95, 0x9F).to_rgba() };
                plot.draw(&Rectangle::new([(from, top + 0.2), (bar.value, top + 0.8)], colour.filled()))?;
                if bar.least < bar.most {
                    plot.draw(&PathElement::new([(bar.least, middle), (bar.most, middle)], INK))?;
                    for end in [bar.least, bar.most] {
                        plot.draw(&PathElement::new([(end, top + 0.35), (end, top + 0.65)], INK))?;
                    }
                }
                (end, label) = (bar.value.max(bar.most), Text::new(bar.label.clone(), (6, 0), text(12, INK, ours)));
            }
            plot.draw(&(EmptyElement::at((end, middle)) + label))?;
        }
        Ok(())
    }
}
