//! Times and durations in the forms that people and scripts read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Formats a time as RFC 3339 in UTC, to the millisecond, for people.
pub fn rfc3339(time: SystemTime) -> String {
    to_digits(time, 3)
}

/// Formats a time as RFC 3339 in UTC, to the microsecond (Postgres' precision), for programs.
pub fn exact(time: SystemTime) -> String {
    to_digits(time, 6)
}

/// Formats a time. Replaces a time outside the years -9999 to 9999 by the nearest time that can be
/// formatted.
fn to_digits(time: SystemTime, digits: usize) -> String {
    let last = if time < UNIX_EPOCH { Timestamp::MIN } else { Timestamp::MAX };
    format!("{:.digits$}", Timestamp::try_from(time).unwrap_or(last))
}

/// Parses a point in time in RFC 3339, with its offset, up to the year 9999.
pub fn instant(text: &str) -> Result<SystemTime, String> {
    let time = text.trim().parse::<Timestamp>();
    time.map(SystemTime::from)
        .map_err(|_| "expected a point in time, such as 2030-01-01T08:00:00Z or 2030-01-01T08:00:00+02:00".to_owned())
}

pub fn age(age: Duration) -> String {
    match age.as_secs() {
        0..60 => format!("{:.1} s", age.as_secs_f64()),
        60..3_600 => format!("{:.1} min", age.as_secs_f64() / 60.0),
        3_600..86_400 => format!("{:.1} h", age.as_secs_f64() / 3_600.0),
        _ => format!("{:.1} d", age.as_secs_f64() / 86_400.0),
    }
}

/// The maximum duration of an argument. The library refuses a duration that is too long for a
/// lease.
const LONGEST: Duration = Duration::from_secs(36_500 * 86_400);

/// Parses a number of seconds, or numbers with units. Accepts fractions, and durations from zero to
/// a hundred years.
pub fn duration(text: &str) -> Result<Duration, String> {
    in_unit(text, "seconds", 1.0)
}

/// Parses a duration greater than zero.
pub fn more_than_zero(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be more than zero".to_owned()),
        more => Ok(more),
    }
}

/// Parses a duration. A number without a unit is in `unit`, which is `seconds` seconds long.
pub fn in_unit(text: &str, unit: &str, seconds: f64) -> Result<Duration, String> {
    let wrong =
        || format!("expected a time: a number of {unit}, or a number with a unit, such as 250ms, 90s, 5m, 1h30m, 7d");
    let mut total = 0.0;
    let mut rest = text.trim();
    let alone = rest.parse::<f64>().ok().filter(|_| !rest.ends_with(|c: char| c.is_ascii_alphabetic()));
    if let Some(number) = alone {
        (total, rest) = (number * seconds, "");
    } else if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?);
        let (unit, after) = after.split_at(after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len()));
        let seconds = match unit {
            "ms" => 1e-3,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return Err(wrong()),
        };
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        if number < 0.0 {
            return Err(wrong());
        }
        total += number * seconds;
        rest = after.trim_start();
    }
    // This check also refuses NaN.
    if !(0.0..=LONGEST.as_secs_f64()).contains(&total) {
        return Err("expected 0 to 36500 days".to_owned());
    }
    Ok(Duration::from_secs_f64(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        let at = |seconds, millis: u32| rfc3339(UNIX_EPOCH + Duration::new(seconds, millis * 1_000_000));
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_827_696, 789), "2000-02-29T12:34:56.789Z");
        assert_eq!(at(1_735_689_599, 0), "2024-12-31T23:59:59.000Z");
        assert_eq!(exact(UNIX_EPOCH + Duration::from_micros(1)), "1970-01-01T00:00:00.000001Z");
        let before = |seconds, millis: u32| rfc3339(UNIX_EPOCH - Duration::new(seconds, millis * 1_000_000));
        assert_eq!(before(0, 1), "1969-12-31T23:59:59.999Z");
        assert_eq!(before(62_135_596_800, 0), "0001-01-01T00:00:00.000Z");
        assert!(at(300_000_000_000, 0).starts_with("9999-12-30T"), "the last that has a text");
    }

    #[test]
    fn points_in_time_are_read_as_they_are_written() {
        let again = |text| instant(text).map(exact);
        for (text, wanted) in [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"),
            ("2000-02-29T12:34:56.789012Z", "2000-02-29T12:34:56.789012Z"),
            ("2100-03-01 00:00:00+00:30", "2100-02-28T23:30:00.000000Z"),
            ("2024-12-31t23:59:59-01:00", "2025-01-01T00:59:59.000000Z"),
            (" 1969-12-31T23:59:59.5Z ", "1969-12-31T23:59:59.500000Z"),
        ] {
            assert_eq!(again(text).as_deref(), Ok(wanted), "{text}");
        }
        for wrong in [
            "",
            "Z",
            "now",
            "2030-01-01",
            "2030-01-01T08:00:00",
            "2030-02-29T00:00:00Z",
            "2030-13-01T00:00:00Z",
            "2030-01-01T24:00:00Z",
            "2030-01-01T08:00:00+2:00",
            "2030-01-01T08:00:00.1e5Z",
            "2030-01-01T08:00:00é+02:00",
            "10000-01-01T00:00:00Z",
        ] {
            assert!(instant(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_seconds_or_have_units() {
        let seconds = |text| duration(text).map(|time| time.as_secs_f64());
        for (text, wanted) in [
            ("0.25", 0.25),
            ("250ms", 0.25),
            ("90s", 90.0),
            ("5m", 300.0),
            ("5 min", 300.0),
            ("1h30m", 5_400.0),
            ("1.5h", 5_400.0),
            ("36500d", 3_153_600_000.0),
            (" 7 ", 7.0),
            ("1e3", 1_000.0),
        ] {
            assert_eq!(seconds(text), Ok(wanted), "{text}");
        }
        let wrong = ["", " ", "-1", "-1s", "inf", "NaN", "1e10", "soon", "5x", "h", "1h30", "36501d", "1s-1s", "s5"];
        assert_eq!(wrong.iter().find(|text| duration(text).is_ok()), None);
        assert!(more_than_zero("0ms").is_err() && more_than_zero("1ms").is_ok());
        assert_eq!(in_unit("2.5", "milliseconds", 1e-3), Ok(Duration::from_micros(2500)));
        assert_eq!(in_unit("2.5s", "milliseconds", 1e-3), Ok(Duration::from_millis(2500)));
    }
}
