//! Tests the rules of docs/schedules.md in every zone whose clock changes in the next ten years. A
//! second implementation, which goes through all minutes, computes the expected ticks.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp, ToSpan, civil::DateTime, tz::TimeZone};

use super::super::Expression;

fn at(text: &str) -> Timestamp {
    text.parse().expect(text)
}

/// A minute, and the time that the clock shows at that minute.
type Minute = (Timestamp, DateTime);

/// Fields in the form that the second implementation reads: minutes, hours, and days of the week,
/// starting with Sunday. Days of the month and months must be `*`.
struct Named {
    minutes: BTreeSet<i64>,
    hours: BTreeSet<i64>,
    days: BTreeSet<i64>,
}

fn numbers(field: &str, end: i64) -> BTreeSet<i64> {
    let part = |part: &str| {
        let (range, step) =
            part.split_once('/').map_or((part, 1), |(range, step)| (range, step.parse().expect("a step")));
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (first.parse().expect("a number"), last.parse().expect("a number")),
            None if range == "*" => (0, end - 1),
            None => (range.parse().expect("a number"), range.parse().expect("a number")),
        };
        (first..=last).filter(move |number| (number - first) % step == 0)
    };
    field.split(',').flat_map(part).collect()
}

impl Named {
    fn read(text: &str) -> Self {
        let fields: Vec<&str> = text.split(' ').collect();
        let [minutes, hours, "*", "*", days] = fields[..] else { panic!("{text}") };
        Self { minutes: numbers(minutes, 60), hours: numbers(hours, 24), days: numbers(days, 7) }
    }

    fn fits(&self, shown: DateTime) -> bool {
        self.minutes.contains(&i64::from(shown.minute()))
            && self.hours.contains(&i64::from(shown.hour()))
            && self.days.contains(&i64::from(shown.weekday().to_sunday_zero_offset()))
    }

    /// Returns the ticks among consecutive minutes.
    fn ticks(&self, minutes: &[Minute]) -> Vec<Timestamp> {
        let names_hours = self.hours.len() < 24;
        let mut latest = minutes[0].1;
        let mut ticks = Vec::new();
        for pair in minutes.windows(2) {
            let (shown, (minute, now_shown)) = (pair[0].1, pair[1]);
            let is_first = now_shown > latest;
            let mut left_out = shown + 1.minute();
            let mut is_jumped_over = false;
            while left_out < now_shown {
                is_jumped_over |= self.fits(left_out);
                left_out += 1.minute();
            }
            if self.fits(now_shown) && (is_first || !names_hours) || names_hours && is_jumped_over {
                ticks.push(minute);
            }
            latest = latest.max(now_shown);
        }
        ticks
    }
}

const EXPRESSIONS: [&str; 22] = [
    "30 2 * * *",
    "30 2,14 * * *",
    "0,30 2 * * *",
    "15,30,45 2 * * *",
    "30 1-2 * * *",
    "0 */2 * * *",
    "0 1-23/2 * * *",
    "30 0,12 * * *",
    "0 0 * * *",
    "59 23 * * *",
    "*/20 0-3 * * *",
    "*/7 22-23 * * *",
    "45 0 * * 0",
    "10 2 * * 6,0",
    "5 3 * * 1-5",
    "0 0-22 * * *",
    "50 */23 * * *",
    "* 2 * * *",
    "0 * * * *",
    "*/15 * * * *",
    "13,43 * * * 0",
    "30 0-23 * * *",
];

/// Returns the number of zones, and every change of a clock in ten years. Zones that show the same
/// times around a change are listed once.
fn changes() -> (usize, Vec<(String, Vec<Minute>)>) {
    let (from, until) = (at("2026-11-25T00:00:00Z"), at("2036-11-25T00:00:00Z"));
    let mut zones = 0;
    let mut found = BTreeMap::new();
    for name in jiff::tz::db().available() {
        let zone = TimeZone::get(name.as_str()).expect("it is listed");
        let changes: Vec<Timestamp> =
            zone.following(from).map(|change| change.timestamp()).take_while(|change| *change < until).collect();
        zones += usize::from(!changes.is_empty());
        for change in changes {
            let (before, after) = (zone.to_offset(change - 1.second()), zone.to_offset(change));
            found.entry((change, before, after)).or_insert_with(|| {
                let began = change - 15.hours();
                let minutes = (0..2 * 15 * 60).map(|minute| began + SignedDuration::from_mins(minute));
                (name.as_str().to_owned(), minutes.map(|minute| (minute, zone.to_datetime(minute))).collect())
            });
        }
    }
    (zones, found.into_values().collect())
}

#[test]
fn ticks_follow_the_rule_at_every_clock_change() {
    let (zones, changes) = changes();
    assert!(zones > 100 && changes.len() > 300, "{} changes in {zones} zones", changes.len());
    for text in EXPRESSIONS {
        let named = Named::read(text);
        for (zone, minutes) in &changes {
            let expression = Expression::parse(text, zone).expect(text);
            let expected = named.ticks(minutes);
            let (first, last) = (minutes[0].0, minutes[minutes.len() - 1].0);
            let mut found = Vec::new();
            let mut next = expression.next(first);
            while let Some(tick) = next.filter(|tick| *tick <= last) {
                found.push(tick);
                next = expression.next(tick);
            }
            assert_eq!(found, expected, "{text} in {zone}");
            let mut found = Vec::new();
            let mut previous = expression.previous(last + 1.nanosecond());
            while let Some(tick) = previous.filter(|tick| *tick > first) {
                found.insert(0, tick);
                previous = expression.previous(tick);
            }
            assert_eq!(found, expected, "{text} in {zone}, backwards");
        }
    }
}

#[test]
fn hours_that_are_named_tick_once_at_each_change() {
    let of = |text: &str, zone: &str, from: &str, until: &str| {
        let expression = Expression::parse(text, zone).expect(text);
        let (mut ticks, mut next) = (Vec::new(), expression.next(at(from)));
        while let Some(tick) = next.filter(|tick| *tick < at(until)) {
            ticks.push(tick.to_string());
            next = expression.next(tick);
        }
        ticks
    };
    let (spring, after_spring) = ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z");
    assert_eq!(
        of("30 2,14 * * *", "Europe/Berlin", spring, after_spring),
        ["2026-03-29T01:00:00Z", "2026-03-29T12:30:00Z"]
    );
    assert_eq!(of("15,30,45 2 * * *", "Europe/Berlin", spring, after_spring), ["2026-03-29T01:00:00Z"]);
    let (autumn, after_autumn) = ("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z");
    assert_eq!(
        of("30 2,14 * * *", "Europe/Berlin", autumn, after_autumn),
        ["2026-10-25T00:30:00Z", "2026-10-25T13:30:00Z"]
    );
    // The clock skips the hour from 23:00 on the evening before a Sunday, so the tick is at
    // midnight.
    assert_eq!(
        of("30 23 * * sat", "America/Nuuk", "2027-03-27T12:00:00Z", "2027-03-28T12:00:00Z"),
        ["2027-03-28T01:00:00Z"]
    );
    // A backward search from the repeated hour finds the last second of that hour's first pass.
    let expression = Expression::parse("59 59 2 * * *", "Europe/Berlin").expect("an expression");
    assert_eq!(expression.previous(at("2026-10-25T01:10:00Z")), Some(at("2026-10-25T00:59:59Z")));
    assert_eq!(expression.previous(at("2026-10-25T00:59:59.5Z")), Some(at("2026-10-25T00:59:59Z")));
}
