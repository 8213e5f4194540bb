//! Lines over one axis, each named at its end.

use super::{
    page::{self, Anchor, Page, WIDTH},
    scale::Scale,
};
use crate::report::number;

/// Room for a name at the end of a line.
const LABEL: f64 = 15.0;
const LEFT: f64 = 62.0;

pub struct Line {
    pub name: String,
    pub ours: bool,
    /// From [`Classes`].
    pub class: String,
    pub points: Vec<(f64, f64)>,
    /// Said behind its name.
    pub label: String,
}

/// Colours and dashes, so that no two lines look alike.
#[derive(Default)]
pub struct Classes {
    ours: usize,
    peers: usize,
}

impl Classes {
    pub fn next(&mut self, ours: bool) -> String {
        let count = if ours { &mut self.ours } else { &mut self.peers };
        let class = match ours {
            true => format!("line us c-us d{}", *count % 3),
            // A kind of dash only comes back with another colour.
            false => format!("line c{} d{}", *count % 6, *count / 6 % 3),
        };
        *count += 1;
        class
    }
}

/// Lines, and the axes that they are drawn on; the one upwards is logarithmic.
pub struct Plot<'a> {
    pub lines: &'a [Line],
    /// Of all places and a length in pixels.
    pub across: fn(&[f64], f64) -> Scale,
    /// Of all places.
    pub ticks: fn(&[f64], &Scale) -> Vec<f64>,
    pub show_across: fn(f64) -> String,
    pub show_up: fn(f64) -> String,
    /// Lines with many names at their ends need more.
    pub least_height: f64,
    /// From [`room`]: plots below each other have the most of theirs.
    pub room: f64,
}

/// For the names and labels at the lines' ends.
pub fn room(lines: &[Line]) -> f64 {
    let labels = lines.iter().map(|line| page::bold_width(&line.name, 12.0) + page::width(&line.label, 11.0));
    labels.fold(0.0, f64::max).min(WIDTH / 2.0) + 46.0
}

impl Plot<'_> {
    pub fn draw(&self, page: &mut Page) {
        let right = self.room;
        let height = (self.lines.len() as f64 * (LABEL + 1.0)).max(self.least_height);
        let (top, bottom) = (page.y + 16.0, page.y + 16.0 + height);
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let all: Vec<f64> = points().map(|(at, _)| *at).collect();
        let across = (self.across)(&all, WIDTH - LEFT - right);
        let up = Scale::decades(points().map(|(_, value)| *value), height);
        for tick in up.ticks(30.0) {
            let y = bottom - up.at(tick);
            page.line("grid", (LEFT, y), (WIDTH - right, y));
            page.text("dim", LEFT - 6.0, y + 4.0, Anchor::End, &number::short(&(self.show_up)(tick)));
        }
        for tick in (self.ticks)(&all, &across) {
            page.text("dim", LEFT + across.at(tick), bottom + 19.0, Anchor::Middle, &(self.show_across)(tick));
        }
        let place = |(at, value): &(f64, f64)| (LEFT + across.at(*at), bottom - up.at(*value));
        let places: Vec<Vec<(f64, f64)>> =
            self.lines.iter().map(|line| line.points.iter().map(place).collect()).collect();
        // Ours on top of the others.
        for ours in [false, true] {
            for (line, places) in self.lines.iter().zip(&places).filter(|(line, _)| line.ours == ours) {
                page.path(&line.class, places);
            }
        }
        let ends: Vec<(f64, f64)> = places.iter().filter_map(|places| places.last().copied()).collect();
        let heights = spread(&ends.iter().map(|(_, y)| *y).collect::<Vec<_>>(), top, bottom);
        for ((line, end), y) in self.lines.iter().zip(&ends).zip(heights) {
            let x = WIDTH - right + 22.0;
            let colour = line.class.split(' ').find(|class| class.starts_with('c')).unwrap_or_default();
            page.path(&format!("lead {colour}"), &[*end, (WIDTH - right + 4.0, end.1), (x - 6.0, y), (x - 2.0, y)]);
            let class = if line.ours { "ours" } else { "" };
            let name = page::cut(&line.name, right - 46.0 - page::width(&line.label, 11.0), 12.0);
            page.text(class, x, y + 4.0, Anchor::Start, &name);
            page.text("dim", WIDTH - 12.0, y + 4.0, Anchor::End, &line.label);
        }
        page.y = bottom + 21.0;
    }
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
