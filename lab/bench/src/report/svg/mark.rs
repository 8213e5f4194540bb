//! What a contender has in a panel.

use super::{
    page::{self, Anchor, Page},
    scale::Scale,
};

pub enum Mark {
    /// From the axis' beginning, with its least and its most.
    Bar { value: f64, least: f64, most: f64, label: String },
    /// From one figure to another.
    Range { from: f64, to: f64, label: String },
    /// Why there is no figure.
    Words(String),
}

/// Where a panel is, and how much of it the marks have.
pub struct Place {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub scale: Scale,
}

/// Between a mark and its label.
const SPACE: f64 = 6.0;

impl Mark {
    pub fn values(&self) -> Vec<f64> {
        match self {
            Self::Bar { value, least, most, .. } => vec![*value, *least, *most],
            Self::Range { from, to, .. } => vec![*from, *to],
            Self::Words(_) => Vec::new(),
        }
    }

    pub fn label_width(&self) -> f64 {
        match self {
            Self::Bar { label, .. } | Self::Range { label, .. } => page::bold_width(label, 12.0),
            Self::Words(_) => 0.0,
        }
    }

    /// From where to where there are words.
    pub fn label_place(&self, place: &Place) -> (f64, f64) {
        let end = match self {
            Self::Bar { value, most, .. } => value.max(*most),
            Self::Range { to, .. } => *to,
            Self::Words(_) => return (place.x + 1.0, place.x + place.width),
        };
        let end = place.x + place.scale.at(end) + SPACE - 2.0;
        (end, end + self.label_width())
    }

    pub fn draw(&self, page: &mut Page, place: &Place, y: f64, ours: bool) {
        let at = |value: f64| place.x + place.scale.at(value);
        let us = if ours { " us" } else { "" };
        let (end, label) = match self {
            Self::Bar { value, least, most, label } => {
                page.bar(&format!("bar{us}"), (place.x, y - 6.0), (at(*value) - place.x).max(1.0), 12.0);
                if least < most {
                    page.line("whisker", (at(*least), y), (at(*most), y));
                    for end in [least, most] {
                        page.line("whisker", (at(*end), y - 3.0), (at(*end), y + 3.0));
                    }
                }
                (at(value.max(*most)), label)
            }
            Self::Range { from, to, label } => {
                page.line(&format!("range{us}"), (at(*from), y), (at(*to).max(at(*from) + 1.0), y));
                page.bar(&format!("bar{us}"), (at(*from) - 4.0, y - 5.0), 8.0, 10.0);
                page.line(&format!("range{us}"), (at(*to), y - 5.0), (at(*to), y + 5.0));
                (at(*to), label)
            }
            Self::Words(words) => {
                page.text("words", place.x + 4.0, y + 4.0, Anchor::Start, &page::cut(words, place.width - 4.0, 11.0));
                return;
            }
        };
        page.text(if ours { "ours" } else { "" }, end + SPACE, y + 4.0, Anchor::Start, label);
    }
}
