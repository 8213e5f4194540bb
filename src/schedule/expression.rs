//! The expressions of schedules.

mod zoned;

use std::time::Duration;

use croner::{
    Cron,
    parser::{CronParser, Seconds, Year},
};
use jiff::{
    Timestamp,
    tz::{TimeZone, TimeZoneDatabase},
};

use self::zoned::Fields;
use crate::error::{Error, Result};

/// The maximum interval of `every`, in seconds.
const LONGEST: u64 = 365 * 86_400;

/// An expression, together with the clock that its fields refer to.
#[derive(Debug, Clone)]
pub(super) enum Expression {
    Cron(Box<Fields>),
    /// An interval, counted from 1970 so that all processes agree.
    Every(Duration),
}

impl Expression {
    /// # Errors
    /// The text is not a valid expression, or there is no such zone.
    pub fn parse(text: &str, zone: &str) -> Result<Self> {
        let zone = found(jiff::tz::db(), zone)?;
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["every", unit] => every(text, 1, unit),
            ["every", n, unit] => every(text, n.parse().map_err(|_| no_expression(text, "no number"))?, unit),
            ["@midnight"] => cron(text, "@daily", zone),
            _ => cron(text, text, zone),
        }
    }

    /// Returns the first tick after a time. Returns `None` if there is no tick for years, as for 30
    /// February.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron(fields) => fields.next(after),
            Self::Every(period) => multiple(*period, after.as_second().div_euclid(seconds(*period)) + 1),
        }
    }

    /// Returns the last tick before a time.
    pub fn previous(&self, before: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron(fields) => fields.previous(before),
            Self::Every(period) => {
                let since = before.as_second() - i64::from(before.subsec_nanosecond() == 0);
                multiple(*period, since.div_euclid(seconds(*period)))
            }
        }
    }
}

/// Returns a time zone of the system's database, or else of the library's. An old system lacks the
/// newest zones.
fn found(system: &TimeZoneDatabase, zone: &str) -> Result<TimeZone> {
    system
        .get(zone)
        .or_else(|_| TimeZoneDatabase::bundled().get(zone))
        .map_err(|_| Error::invalid(format!("there is no time zone {zone:?}: use a name such as Europe/Berlin or UTC")))
}

fn cron(text: &str, fields: &str, zone: TimeZone) -> Result<Expression> {
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    let cron: Cron = parser.parse(fields.trim()).map_err(|error| {
        let why = wrong_field(parser, fields).unwrap_or_else(|| error.to_string());
        no_expression(text, &why)
    })?;
    Ok(Expression::Cron(Box::new(Fields::new(cron, zone))))
}

/// Returns the name of the first field that is wrong by itself, and the reason.
fn wrong_field(parser: CronParser, fields: &str) -> Option<String> {
    const NAMES: [&str; 6] = ["second", "minute", "hour", "day of the month", "month", "day of the week"];
    let words: Vec<&str> = fields.split_whitespace().collect();
    let names = NAMES.get(NAMES.len().checked_sub(words.len())?..).filter(|names| names.len() >= 5)?;
    let error_of = |at: usize, word: &str| {
        let mut alone = vec!["*"; words.len()];
        alone[at] = word;
        parser.parse(&alone.join(" ")).err()
    };
    let (at, error) = (0..words.len()).find_map(|at| Some((at, error_of(at, words[at])?)))?;
    let (name, word) = (names[at], words[at]);
    let wraps = word.split(',').any(|part| {
        let ends = part.split('/').next().and_then(|range| range.split_once('-'));
        ends.is_some_and(|(first, last)| {
            error_of(at, first).is_none() && error_of(at, last).is_none() && error_of(at, part).is_some()
        })
    });
    Some(match wraps {
        true => {
            format!("{name} {word:?}: a range cannot pass the end of its field; list its two parts, as in 22-23,0-3")
        }
        false => format!("{name} {word:?}: {}", error.to_string().trim_end_matches('.')),
    })
}

fn every(text: &str, n: u64, unit: &str) -> Result<Expression> {
    let unit = match unit.strip_suffix('s').unwrap_or(unit) {
        "second" => 1,
        "minute" => 60,
        "hour" => 3600,
        "day" => 86_400,
        _ => return Err(no_expression(text, "the units are seconds, minutes, hours and days")),
    };
    match n.checked_mul(unit) {
        Some(seconds @ 1..=LONGEST) => Ok(Expression::Every(Duration::from_secs(seconds))),
        _ => Err(no_expression(text, "at least 1 second, at most 365 days")),
    }
}

fn seconds(period: Duration) -> i64 {
    i64::try_from(period.as_secs()).unwrap_or(i64::MAX).max(1)
}

fn multiple(period: Duration, n: i64) -> Option<Timestamp> {
    Timestamp::from_second(n.checked_mul(seconds(period))?).ok()
}

fn no_expression(text: &str, why: &str) -> Error {
    Error::invalid(format!(
        "invalid schedule expression {text:?} ({why}): use five cron fields (\"0 3 * * *\"), six with seconds first, a name such as \"@hourly\", or \"every 90 seconds\""
    ))
}

#[cfg(test)]
mod tests;
