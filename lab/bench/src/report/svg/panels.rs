//! Small panels side by side that share their contenders: a row each, with a bar or a range a
//! panel.

use super::{
    mark::{Mark, Place},
    page::{self, Anchor, Page, WIDTH},
    scale::Scale,
};
use crate::report::{number, race::is_ours};

/// Panels that stand side by side; those that find no room go on below.
pub struct Band {
    pub title: Option<String>,
    pub panels: Vec<Panel>,
    /// From the top down.
    pub contenders: Vec<String>,
    pub axis: Axis,
    /// How many panels have room side by side.
    pub across: usize,
}

pub struct Panel {
    pub title: String,
    /// Of a contender; who has no mark was not asked.
    pub marks: Vec<(String, Mark)>,
}

pub struct Axis {
    pub logarithmic: bool,
    /// Whether all panels have the same.
    pub shared: bool,
    pub show: fn(f64) -> String,
}

const ROW: f64 = 22.0;
const GAP: f64 = 18.0;

pub fn draw(page: &mut Page, band: &Band) {
    if let Some(title) = &band.title {
        page.y += 22.0;
        page.text("head", 12.0, page.y, Anchor::Start, title);
    }
    for panels in band.panels.chunks(band.across) {
        side_by_side(page, band, panels);
    }
}

fn side_by_side(page: &mut Page, band: &Band, panels: &[Panel]) {
    let names = band.contenders.iter().map(|name| page::bold_width(name, 12.0)).fold(40.0, f64::max).min(200.0) + 10.0;
    let columns = band.panels.len().min(band.across) as f64;
    let width = (WIDTH - 24.0 - names - GAP * (columns - 1.0)) / columns;
    let y = page.y + 44.0;
    let left = 12.0 + names;
    for (at, panel) in panels.iter().enumerate() {
        // Room for the longest label behind the longest bar.
        let all = if band.axis.shared { &band.panels[..] } else { std::slice::from_ref(panel) };
        let label = all.iter().flat_map(|panel| &panel.marks).map(|(_, mark)| mark.label_width()).fold(0.0, f64::max);
        let length = (width - label - 8.0).max(40.0);
        let values = all.iter().flat_map(|panel| &panel.marks).flat_map(|(_, mark)| mark.values());
        let scale = match band.axis.logarithmic {
            true => Scale::logarithmic(values, length),
            false => Scale::linear(values, length),
        };
        let place = Place { x: left + (width + GAP) * at as f64, y, width, scale };
        panel.draw(page, band, &place, panels);
    }
    for (at, contender) in band.contenders.iter().enumerate() {
        let class = if is_ours(contender) { "ours" } else { "" };
        let y = y + ROW * (at as f64 + 0.5) + 4.0;
        page.text(class, left - 10.0, y, Anchor::End, &page::cut(contender, names - 10.0, 12.0));
        if let Some(words) = everywhere(contender, panels) {
            page.text("words", left + 4.0, y, Anchor::Start, &page::cut(words, WIDTH - 16.0 - left, 11.0));
        }
    }
    page.y = y + ROW * band.contenders.len() as f64 + 6.0;
}

/// The words that a contender has in all of the panels: they are told once, where there is room for
/// them.
fn everywhere<'a>(contender: &str, panels: &'a [Panel]) -> Option<&'a str> {
    let words = |panel: &'a Panel| match panel.mark(contender) {
        Some(Mark::Words(words)) => Some(words.as_str()),
        _ => None,
    };
    let first = words(panels.first()?)?;
    panels.iter().all(|panel| words(panel) == Some(first)).then_some(first)
}

impl Panel {
    fn mark(&self, contender: &str) -> Option<&Mark> {
        self.marks.iter().find(|(name, _)| name == contender).map(|(_, mark)| mark)
    }

    fn draw(&self, page: &mut Page, band: &Band, place: &Place, beside: &[Panel]) {
        let title = page::cut(&self.title, place.width / 1.12, 12.0);
        page.text("head", place.x, place.y - 22.0, Anchor::Start, &title);
        if self.marks.iter().any(|(_, mark)| !matches!(mark, Mark::Words(_))) {
            self.grid(page, band, place, beside);
        }
        for (at, contender) in band.contenders.iter().enumerate() {
            let middle = place.y + ROW * (at as f64 + 0.5);
            match self.mark(contender) {
                Some(Mark::Words(_)) if everywhere(contender, beside).is_some() => {}
                Some(mark) => mark.draw(page, place, middle, is_ours(contender)),
                None => page.text("dim", place.x + 4.0, middle + 4.0, Anchor::Start, "–"),
            }
        }
    }

    /// The axis' lines, which leave the words alone.
    fn grid(&self, page: &mut Page, band: &Band, place: &Place, beside: &[Panel]) {
        for tick in place.scale.ticks(46.0) {
            let x = place.x + place.scale.at(tick);
            let mut pieces = vec![(place.y - 2.0, place.y)];
            for (at, contender) in band.contenders.iter().enumerate() {
                let (from, to) = match self.mark(contender) {
                    Some(_) if everywhere(contender, beside).is_some() => (0.0, WIDTH),
                    Some(mark) => mark.label_place(place),
                    None => (0.0, 0.0),
                };
                let row = place.y + ROW * at as f64;
                if x < from || x > to {
                    pieces.push((row, row + ROW));
                }
            }
            page.upright("grid", x, &joined(&pieces));
            page.text("dim", x, place.y - 7.0, Anchor::Middle, &number::short(&(band.axis.show)(tick)));
        }
    }
}

/// Pieces that touch as one.
fn joined(pieces: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut joined: Vec<(f64, f64)> = Vec::new();
    for (from, to) in pieces {
        match joined.last_mut() {
            Some(last) if *from - last.1 < 0.1 => last.1 = *to,
            _ => joined.push((*from, *to)),
        }
    }
    joined
}
