//! The published figures, drawn from the rows with plotters.

mod bars;
mod lines;

use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::race::excuse;
use crate::{
    Failure,
    results::{Results, Row},
};

/// The text of a figure; `None` if there are no rows for it.
type Figure = Result<Option<String>, Failure>;
type Draw = fn(&Results) -> Figure;

/// Each figure's file and the function that draws it.
pub const FIGURES: &[(&str, Draw)] = &[
    ("throughput.svg", bars::throughput),
    ("latency.svg", bars::latency),
    ("old-snapshot.svg", lines::old_snapshot),
    ("layers.svg", bars::layers),
    ("distance.svg", bars::distance),
    ("fsync.svg", lines::fsync),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

const WIDTH: i32 = 840;
const LINE: i32 = 15;
const INK: RGBColor = RGBColor(0x1F, 0x23, 0x28);
const DIM: RGBColor = RGBColor(0x59, 0x63, 0x6E);
const GRID: RGBColor = RGBColor(0xD1, 0xD9, 0xE0);
/// The colours of our own contenders, which are blues. The peers use all other colours.
const OURS: [HSLColor; 4] =
    [HSLColor(0.59, 0.9, 0.44), HSLColor(0.51, 0.8, 0.36), HSLColor(0.66, 0.6, 0.55), HSLColor(0.54, 0.8, 0.55)];
/// The colours for dark pages. Plotters writes only one set of colours.
const DARK: &str = "<style>@media(prefers-color-scheme:dark){text[fill=\"#1F2328\"]{fill:#E6EDF3}\
text[fill=\"#59636E\"]{fill:#9DA7B1}[stroke=\"#1F2328\"]{stroke:#E6EDF3}[stroke=\"#D1D9E0\"]{stroke:#3D444D}}</style>";

/// Draws a page: a title, a caption, the body, and text below it. Returns `None` if `height` is 0.
fn page(title: &str, about: &str, below: &[String], height: i32, body: impl FnOnce(&Area, i32) -> Drawn) -> Figure {
    if height == 0 {
        return Ok(None);
    }
    let (about_lines, below) = (wrapped(about), below.iter().flat_map(|words| wrapped(words)).collect::<Vec<_>>());
    let top = 40 + LINE * about_lines.len() as i32;
    let whole = top + height + LINE * below.len() as i32 + 10;
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (WIDTH as u32, whole as u32)).into_drawing_area();
    root.draw_text(title, &text(16, INK, true), (12, 18))?;
    for (from, lines) in [(42, about_lines), (top + height + 8, below)] {
        for (at, line) in (0..).zip(lines) {
            root.draw_text(&line, &text(11, DIM, false), (12, from + LINE * at))?;
        }
    }
    body(&root, top)?;
    root.present()?;
    drop(root);
    let escape = |words: &str| words.replace('&', "&amp;").replace('<', "&lt;");
    let head = format!(
        " role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">{}</title>\n<desc id=\"desc\">{}</desc>\n{DARK}\n",
        escape(title),
        escape(about)
    );
    Ok(Some(svg.replacen(">\n", &head, 1)))
}

/// Returns the style of text that begins at its position and is vertically centred on it.
fn text(size: i32, colour: RGBColor, bold: bool) -> TextStyle<'static> {
    let family = FontFamily::Name("system-ui,Helvetica,Arial,sans-serif");
    let style = if bold { FontStyle::Bold } else { FontStyle::Normal };
    // Plotters divides sizes by this number.
    FontDesc::new(family, f64::from(size) * 1.24, style).color(&colour).pos(Pos::new(HPos::Left, VPos::Center))
}

fn ending(style: &TextStyle<'static>) -> TextStyle<'static> {
    style.pos(Pos::new(HPos::Right, VPos::Center))
}

/// Returns the maximum width in pixels of the widest of these texts, at size 12 in any of the usual
/// fonts.
fn widest<'a>(words: impl Iterator<Item = &'a String>) -> i32 {
    words.map(|words| words.chars().count() as i32 * 38 / 5).max().unwrap_or_default()
}

/// Wraps text of size 11 at the width of the page.
fn wrapped(words: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split(|letter: char| letter.is_whitespace() || letter.is_control()) {
        match lines.last_mut().filter(|line| line.chars().count() + word.chars().count() < 138) {
            Some(line) => line.extend([" ", word]),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Lists the contenders without a figure, or without a figure in some case, each with the reason.
fn absent(rows: &[&Row]) -> Vec<String> {
    let why = |row: &&Row| {
        let (what, words) = excuse(row)?;
        let has_others = rows.iter().any(|other| other.contender == row.contender && excuse(other).is_none());
        let case = if has_others { format!(" in {}", row.case) } else { String::new() };
        Some(format!("Not shown: {}{case} ({what}: {words}).", row.contender))
    };
    let mut all: Vec<String> = rows.iter().filter_map(why).collect();
    all.sort();
    all.dedup();
    all
}

/// Returns every `step`th power of ten within these bounds.
fn decades(least: f64, most: f64, step: i32) -> Vec<f64> {
    let (from, to) = ((least * 0.999).log10().ceil() as i32, (most * 1.001).log10().floor() as i32);
    (from..=to).step_by(step.max(1) as usize).map(|power| 10_f64.powi(power)).collect()
}
