//! Numbers, times and texts in the forms that people read and write.

use std::time::{Duration, SystemTime};

use super::json::{self, Piece};

/// Formats a number: `1,234,567`.
pub fn thousands(number: impl Into<i128>) -> String {
    let digits = number.into().to_string();
    let mut shown = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 && !shown.ends_with('-') {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Formats a duration: `850 ms`, `12 s`, `3 min 20 s`, `5 h 10 min`, `3 d 4 h`.
pub fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    let two = |big: u64, small: u64, of: &str, and: &str| match small {
        0 => format!("{big} {of}"),
        _ => format!("{big} {of} {small} {and}"),
    };
    match seconds {
        0 => format!("{} ms", age.as_millis()),
        1..60 => format!("{seconds} s"),
        60..3600 => two(seconds / 60, seconds % 60, "min", "s"),
        3600..86_400 => two(seconds / 3600, seconds / 60 % 60, "h", "min"),
        _ => two(seconds / 86_400, seconds / 3600 % 24, "d", "h"),
    }
}

/// Formats a time by its distance from now: `12 s ago` or `in 12 s`.
pub fn ago(time: SystemTime) -> String {
    match SystemTime::now().duration_since(time) {
        Ok(passed) => format!("{} ago", age(passed)),
        Err(ahead) => format!("in {}", age(ahead.duration())),
    }
}

/// Formats a time: `2026-11-24 09:27:33 UTC`.
pub fn time(time: SystemTime) -> String {
    match jiff::Timestamp::try_from(time) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => "outside the calendar's range".to_owned(),
    }
}

/// Formats a size: `12.5 MiB`.
pub fn bytes(count: i64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let (mut count, mut unit) = (count as f64, 0);
    while count >= 1024.0 && unit + 1 < UNITS.len() {
        (count, unit) = (count / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{count} bytes") } else { format!("{count:.1} {}", UNITS[unit]) }
}

/// Formats messages per second: `0`, `0.4`, `12`, `1,234`.
pub fn rate(rate: f64) -> String {
    match rate {
        _ if rate < 0.05 => "0".to_owned(),
        _ if rate < 10.0 => format!("{rate:.1}"),
        _ => thousands(rate.round() as i64),
    }
}

/// Formats a payload for a page. JSON is indented and coloured; other text does not change. The
/// second value is false if the payload was truncated.
pub fn payload(text: &str) -> (Vec<Piece>, bool) {
    const MOST: usize = 64 * 1024;
    let whole = text.len() <= MOST;
    let mut end = text.len().min(MOST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let pieces = Some(text).filter(|_| whole).and_then(json::pieces);
    let pieces = pieces.unwrap_or_else(|| vec![("", text[..end].to_owned())]);
    (pieces.into_iter().map(|(kind, text)| (kind, text.chars().map(visible).collect())).collect(), whole)
}

/// Formats a count with its noun: `1 message`, `2,000 messages`.
pub fn several(count: i64, what: &str) -> String {
    format!("{} {what}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// Makes a text from the database safe to display on a page.
pub fn shown(text: &str) -> String {
    text.chars().map(visible).collect()
}

/// Replaces a character that controls a terminal or changes the direction of writing.
pub fn visible(sign: char) -> char {
    match sign {
        '\n' | '\t' => sign,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => '\u{fffd}',
        _ if sign.is_control() => '\u{fffd}',
        _ => sign,
    }
}

/// Parses a whole number. `what` names it in the error.
///
/// # Errors
/// If the text is not a whole number.
pub fn number(what: &str, text: &str) -> Result<i64, String> {
    text.trim().parse().map_err(|_| format!("{what} {text:?} is not a whole number"))
}

/// Parses a number of seconds, or a number with a unit: `90`, `5m`, `1h`, `7d`. An empty text is
/// zero.
///
/// # Errors
/// If the text is not a time, or is longer than 36500 days.
pub fn seconds(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let wrong = || format!("{text:?} is not a time such as 90, 90s, 5m, 1h or 7d");
    let (digits, unit) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(digits) => (
            digits,
            match text.as_bytes().last() {
                Some(b'm') => 60.0,
                Some(b'h') => 3600.0,
                Some(b'd') => 86_400.0,
                _ => 1.0,
            },
        ),
        None if text.is_empty() => return Ok(0.0),
        None => (text, 1.0),
    };
    let number: f64 = digits.trim().parse().map_err(|_| wrong())?;
    let time = number * unit;
    if (0.0..=36_500.0 * 86_400.0).contains(&time) { Ok(time) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_as_people_read_them() {
        assert_eq!(
            [thousands(0), thousands(999), thousands(1000), thousands(1_234_567), thousands(-123_456)],
            ["0", "999", "1,000", "1,234,567", "-123,456"]
        );
        assert_eq!(age(Duration::from_millis(850)), "850 ms");
        assert_eq!(age(Duration::from_secs(200)), "3 min 20 s");
        assert_eq!(age(Duration::from_secs(90_000)), "1 d 1 h");
        assert_eq!([bytes(0), bytes(1536), bytes(5 << 30)], ["0 bytes", "1.5 KiB", "5.0 GiB"]);
        assert_eq!([rate(0.0), rate(0.44), rate(1234.4)], ["0", "0.4", "1,234"]);
        assert_eq!(time(SystemTime::UNIX_EPOCH), "1970-01-01 00:00:00 UTC");
    }

    #[test]
    fn times_have_units_and_bounds() {
        assert_eq!(seconds(""), Ok(0.0));
        assert_eq!(seconds("5m"), Ok(300.0));
        assert_eq!(seconds("1.5 h"), Ok(5400.0));
        for wrong in ["-1", "soon", "NaN", "inf", "36501d", "m"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_payload_directs_nothing_and_is_cut() {
        let text = |of: &str| payload(of).0.into_iter().map(|(_, text)| text).collect::<String>();
        assert_eq!(text("a\u{1b}[31m\u{202e}b"), "a\u{fffd}[31m\u{fffd}b");
        assert_eq!(text("{\"a\":\"\u{202e}\"}"), "{\n  \"a\": \"\u{fffd}\"\n}");
        let (shown, whole) = (text(&"ä".repeat(40_000)), payload(&"ä".repeat(40_000)).1);
        assert!(!whole && shown.len() <= 64 * 1024);
    }
}
