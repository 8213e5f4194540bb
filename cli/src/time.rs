//! Times and durations as people and scripts read them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// RFC 3339 in UTC, to the millisecond.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Years that begin in March end with the leap day, which makes the months' lengths regular.
    let from_era = days + 719_468;
    let (era, day_of_era) = (from_era / 146_097, from_era % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
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

/// An argument in seconds, fractions included: zero to a year.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds is wanted".to_owned())?;
    if !(0.0..=365.0 * 86_400.0).contains(&seconds) {
        return Err("between 0 and 31,536,000 seconds (a year) are possible".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
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
    }

    #[test]
    fn seconds_have_bounds() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert!(["-1", "inf", "NaN", "1e9", "soon"].iter().all(|text| seconds(text).is_err()));
    }
}
