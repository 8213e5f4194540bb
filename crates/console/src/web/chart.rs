//! Draws charts of the last hour as SVG.

use super::words;

/// The number of minutes that a chart shows.
pub const MINUTES: f64 = 60.0;
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 100.0;

/// Lines on a common scale.
#[derive(Debug, Clone)]
pub struct Chart {
    pub title: &'static str,
    pub lines: Vec<Line>,
    /// The value at the top of the scale, formatted.
    pub most: String,
}

#[derive(Debug, Clone)]
pub struct Line {
    pub name: &'static str,
    /// The last value, formatted.
    pub last: String,
    /// The points of the polylines, in a box of 600 by 100. Each gap starts another polyline.
    pub pieces: Vec<String>,
}

/// Pairs of an age in minutes and a value, the oldest first.
pub type Values = Vec<(f64, f64)>;

impl Chart {
    /// Draws the lines, with zero at the bottom and the highest value at the top. Values more than
    /// `gap` minutes apart are not connected, because they have no samples between them.
    pub fn of(title: &'static str, words: fn(f64) -> String, gap: f64, lines: &[(&'static str, Values)]) -> Self {
        let most = lines.iter().flat_map(|(_, values)| values).map(|(_, value)| *value).fold(0.0, f64::max);
        let lines = lines.iter().map(|(name, values)| Line {
            name,
            last: values.last().map_or_else(|| "–".to_owned(), |(_, value)| words(*value)),
            pieces: pieces(values, most, gap),
        });
        Self { title, lines: lines.collect(), most: words(most) }
    }

    /// Describes the chart for readers who cannot see it.
    pub fn in_words(&self) -> String {
        let lines: Vec<String> = self.lines.iter().map(|line| format!("{} {} now", line.name, line.last)).collect();
        format!("{}, last hour: {}; at most {}", self.title, lines.join(", "), self.most)
    }
}

fn pieces(values: &[(f64, f64)], most: f64, gap: f64) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut before = None;
    for (ago, value) in values {
        let x = (1.0 - ago / MINUTES).max(0.0) * WIDTH;
        let y = (HEIGHT - 1.0) - (HEIGHT - 2.0) * value / most.max(f64::MIN_POSITIVE);
        let point = format!("{x:.0},{y:.0} ");
        match pieces.last_mut() {
            Some(piece) if before.is_some_and(|before: f64| before - ago <= gap) => *piece += &point,
            _ => pieces.push(point.repeat(2)), // drawn even if the piece has a single point
        }
        before = Some(*ago);
    }
    pieces
}

/// Formats a number of seconds.
pub fn seconds(seconds: f64) -> String {
    match std::time::Duration::try_from_secs_f64(seconds.max(0.0)) {
        Ok(time) if seconds < 0.001 => format!("{} µs", time.as_micros()),
        Ok(time) => words::age(time),
        Err(_) => "–".to_owned(),
    }
}

/// Formats a number.
pub fn number(number: f64) -> String {
    words::thousands(number.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_now_and_has_gaps_where_nobody_looked() {
        let values = vec![(60.0, 0.0), (59.0, 5.0), (30.0, 10.0), (29.0, 10.0), (0.0, 5.0)];
        let chart = Chart::of("Depth", number, 10.0, &[("depth", values), ("none", Vec::new())]);
        assert_eq!(chart.lines[0].pieces, ["0,99 0,99 10,50 ", "300,1 300,1 310,1 ", "600,50 600,50 "]);
        assert!(chart.lines[1].pieces.is_empty());
        assert_eq!(chart.in_words(), "Depth, last hour: depth 5 now, none – now; at most 10");
        let flat = Chart::of("Depth", number, 10.0, &[("depth", vec![(1.0, 0.0), (0.0, 0.0)])]);
        assert_eq!((flat.lines[0].pieces[0].as_str(), flat.most.as_str()), ("590,99 590,99 600,99 ", "0"));
        assert_eq!([seconds(0.000_25), seconds(0.25), seconds(90.0)], ["250 µs", "250 ms", "1 min 30 s"]);
    }
}
