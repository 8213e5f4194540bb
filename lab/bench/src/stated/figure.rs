use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of messages or statements: `555 k`.
    Count,
    /// A time in microseconds.
    Time,
    Bytes,
    /// A share of a whole: `12 %` is 0.12.
    Share,
    /// The ratio of two rows: `×12`, or `12 times`.
    Ratio,
}

#[derive(Debug, Clone, Copy)]
pub struct Value {
    pub number: f64,
    pub unit: Unit,
    /// The maximum error of the value, which was computed from rounded figures.
    pub rounded: f64,
}

impl From<Figure> for Value {
    fn from(figure: Figure) -> Self {
        Self { number: figure.value, unit: figure.unit.unwrap_or(Unit::Count), rounded: figure.step / 2.0 }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        use crate::report::number;
        out.write_str(&match self.unit {
            Unit::Count => number::rate(self.number),
            Unit::Time => number::time(self.number),
            Unit::Bytes => number::bytes(self.number),
            Unit::Share => number::percent(self.number),
            Unit::Ratio => number::times(self.number),
        })
    }
}

const UNITS: [(&str, Unit, f64); 12] = [
    ("k", Unit::Count, 1e3),
    ("M", Unit::Count, 1e6),
    ("million", Unit::Count, 1e6),
    ("µs", Unit::Time, 1.0),
    ("microseconds", Unit::Time, 1.0),
    ("ms", Unit::Time, 1e3),
    ("s", Unit::Time, 1e6),
    ("seconds", Unit::Time, 1e6),
    ("B", Unit::Bytes, 1.0),
    ("kB", Unit::Bytes, 1e3),
    ("MB", Unit::Bytes, 1e6),
    ("%", Unit::Share, 0.01),
];

/// A number as it is printed in a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub text: String,
    value: f64,
    /// The value of one unit in the last digit.
    step: f64,
    /// The unit, if the text has one.
    unit: Option<Unit>,
}

impl Figure {
    /// Finds the last figure of this text. A digit after a letter belongs to a name: `p99`.
    pub fn last(text: &str) -> Option<Self> {
        let mut last = None;
        let mut before = ' ';
        let mut at = 0;
        while let Some(letter) = text[at..].chars().next() {
            if letter.is_ascii_digit() && !before.is_alphanumeric() {
                let (figure, length) = Self::first(&text[at..])?;
                last = Some(Self { unit: figure.unit.or((before == '×').then_some(Unit::Ratio)), ..figure });
                (at, before) = (at + length, '0');
            } else {
                (at, before) = (at + letter.len_utf8(), letter);
            }
        }
        last
    }

    fn first(text: &str) -> Option<(Self, usize)> {
        let end = text.find(|letter: char| !(letter.is_ascii_digit() || ".,".contains(letter))).unwrap_or(text.len());
        let digits = text[..end].trim_end_matches(['.', ',']);
        let plain = digits.replace(',', "");
        let decimals = plain.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let rest = &text[digits.len()..];
        let word = rest.strip_prefix(' ').unwrap_or(rest);
        let word = &word[..word.find(|letter: char| !(letter.is_alphabetic() || letter == '%')).unwrap_or(word.len())];
        let unit = UNITS.iter().find(|(name, ..)| *name == word);
        let scale = unit.map_or(1.0, |(.., scale)| *scale);
        let text = unit.map_or_else(|| digits.to_owned(), |(name, ..)| format!("{digits} {name}"));
        let value = plain.parse::<f64>().ok()? * scale;
        let figure =
            Self { text, value, step: scale * 10_f64.powi(-(decimals as i32)), unit: unit.map(|(_, unit, _)| *unit) };
        Some((figure, digits.len()))
    }

    /// Returns true if the figure equals the value, rounded to the figure's last digit.
    pub fn states(&self, value: &Value) -> bool {
        let is_of = match (self.unit, value.unit) {
            (Some(unit), of) => unit == of,
            (None, of) => matches!(of, Unit::Count | Unit::Ratio),
        };
        is_of && (self.value - value.number).abs() <= (0.5 * self.step + value.rounded) * (1.0 + 1e-6)
    }
}
