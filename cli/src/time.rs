//! Times and durations as people and scripts read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// RFC 3339 in UTC, to the millisecond.
pub fn rfc3339(time: SystemTime) -> String {
    let millis = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_millis() as i64,
        Err(before) => -(before.duration().as_millis() as i64),
    };
    let (days, second) = (millis.div_euclid(86_400_000), millis.div_euclid(1_000).rem_euclid(86_400));
    // Years that begin in March end with the leap day, which makes the months' lengths regular.
    let from_era = days + 719_468;
    let (era, day_of_era) = (from_era.div_euclid(146_097), from_era.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", millis.rem_euclid(1_000))
}

/// An argument: a point in time as RFC 3339 writes it, with its offset, from 1970 to 9999.
pub fn instant(text: &str) -> Result<SystemTime, String> {
    let wrong = || "a point in time is wanted, as 2030-01-01T08:00:00Z or 2030-01-01T08:00:00+02:00".to_owned();
    let text = text.trim();
    let (local, offset) = if let Some(local) = text.strip_suffix(['Z', 'z']) {
        (local, 0)
    } else {
        let parts = text.len().checked_sub(6).and_then(|at| text.split_at_checked(at));
        let (local, offset) = parts.ok_or_else(wrong)?;
        let sign = if offset.starts_with('-') { -1 } else { 1 };
        let [hours, minutes] = numbers(offset.strip_prefix(['+', '-']).ok_or_else(wrong)?, ':').ok_or_else(wrong)?;
        if hours > 23 || minutes > 59 {
            return Err(wrong());
        }
        (local, sign * (hours * 3_600 + minutes * 60))
    };
    let (date, clock) = local.split_once(['T', 't', ' ']).ok_or_else(wrong)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [year, month, day] = numbers(date, '-').ok_or_else(wrong)?;
    let [hour, minute, second] = numbers(clock, ':').ok_or_else(wrong)?;
    let fraction =
        Some(fraction).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())).ok_or_else(wrong)?;
    let fraction: f64 = format!("0.{fraction}").parse().map_err(|_| wrong())?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let month_days = usize::try_from(month - 1).ok().and_then(|at| days.get(at)).ok_or_else(wrong)?;
    if !(1970..=9999).contains(&year) || !(1..=*month_days).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return Err(wrong());
    }
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let before: i64 = days[..(month - 1) as usize].iter().sum();
    let day = (year - 1970) * 365 + leaps(year - 1) - leaps(1969) + before + day - 1;
    let since = day * 86_400 + hour * 3_600 + minute * 60 + second - offset;
    let since = u64::try_from(since).map_err(|_| wrong())?;
    Ok(UNIX_EPOCH + Duration::from_secs(since) + Duration::from_secs_f64(fraction))
}

/// As many numbers as are wanted, of digits alone.
fn numbers<const N: usize>(text: &str, between: char) -> Option<[i64; N]> {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?;
    let numbers: Option<Vec<i64>> = text.split(between).map(digits).collect();
    numbers?.try_into().ok()
}

/// For a table.
pub fn age(age: Duration) -> String {
    match age.as_secs() {
        0..60 => format!("{:.1} s", age.as_secs_f64()),
        60..3_600 => format!("{:.1} min", age.as_secs_f64() / 60.0),
        3_600..86_400 => format!("{:.1} h", age.as_secs_f64() / 3_600.0),
        _ => format!("{:.1} d", age.as_secs_f64() / 86_400.0),
    }
}

/// The longest time that an argument can be.
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// An argument: seconds, or numbers with units, fractions included; zero to a year.
pub fn duration(text: &str) -> Result<Duration, String> {
    in_unit(text, "seconds", 1.0)
}

/// An argument that is more than zero.
pub fn more_than_zero(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be more than zero".to_owned()),
        more => Ok(more),
    }
}

/// An argument whose numbers without units are in another unit than seconds.
pub fn in_unit(text: &str, unit: &str, seconds: f64) -> Result<Duration, String> {
    let wrong = || format!("a time is wanted: a number of {unit}, or one with a unit, as 250ms, 90s, 5m, 1h30m, 7d");
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
    // Also false for what is no number.
    if !(0.0..=YEAR.as_secs_f64()).contains(&total) {
        return Err("between 0 and 365 days are possible".to_owned());
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
        let before = |seconds, millis: u32| rfc3339(UNIX_EPOCH - Duration::new(seconds, millis * 1_000_000));
        assert_eq!(before(0, 1), "1969-12-31T23:59:59.999Z");
        assert_eq!(before(86_400 * 365, 0), "1969-01-01T00:00:00.000Z");
        assert_eq!(before(11_644_473_600, 0), "1601-01-01T00:00:00.000Z");
        assert_eq!(before(62_135_596_800, 0), "0001-01-01T00:00:00.000Z");
    }

    #[test]
    fn points_in_time_are_read_as_they_are_written() {
        let again = |text| instant(text).map(rfc3339);
        for (text, wanted) in [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
            ("2000-02-29T12:34:56.789Z", "2000-02-29T12:34:56.789Z"),
            ("2100-03-01 00:00:00+00:30", "2100-02-28T23:30:00.000Z"),
            ("2024-12-31t23:59:59-01:00", "2025-01-01T00:59:59.000Z"),
            (" 9999-12-31T23:59:59Z ", "9999-12-31T23:59:59.000Z"),
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
            "2030-00-01T00:00:00Z",
            "2030-01-01T24:00:00Z",
            "2030-01-01T08:00Z",
            "2030-01-01T08:00:00+2:00",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
            "+030-01-01T00:00:00Z",
            "2030-01-01T08:00:00.1e5Z",
            "2030-01-01T08:00:00é+02:00",
            "\u{e9}\u{e9}\u{e9}\u{e9}",
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
            ("365d", 31_536_000.0),
            (" 7 ", 7.0),
            ("1e3", 1_000.0),
        ] {
            assert_eq!(seconds(text), Ok(wanted), "{text}");
        }
        let wrong = ["", " ", "-1", "-1s", "inf", "NaN", "1e9", "soon", "5x", "h", "1h30", "366d", "1s-1s", "s5"];
        assert_eq!(wrong.iter().find(|text| duration(text).is_ok()), None);
        assert!(more_than_zero("0ms").is_err() && more_than_zero("1ms").is_ok());
        assert_eq!(in_unit("2.5", "milliseconds", 1e-3), Ok(Duration::from_micros(2500)));
        assert_eq!(in_unit("2.5s", "milliseconds", 1e-3), Ok(Duration::from_millis(2500)));
    }
}
