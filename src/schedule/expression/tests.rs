//! Tests the expressions of schedules: their syntax and their ticks.

use jiff::{
    Timestamp,
    civil::DateTime,
    tz::{TimeZone, TimeZoneDatabase},
};

use super::{Expression, found};

fn of(text: &str, zone: &str) -> Expression {
    Expression::parse(text, zone).expect(text)
}

fn at(text: &str) -> Timestamp {
    text.parse().expect(text)
}

/// Returns the first `n` ticks after a time, as the zone's clock shows them.
fn local(text: &str, zone: &str, after: &str, n: usize) -> Vec<String> {
    let (expression, clock) = (of(text, zone), TimeZone::get(zone).expect("a zone"));
    let mut tick = at(after);
    (0..n)
        .map(|_| {
            tick = expression.next(tick).expect("a tick");
            let shown: DateTime = clock.to_datetime(tick);
            format!("{shown}{}", clock.to_offset(tick))
        })
        .collect()
}

#[test]
fn fields_are_those_of_cron_with_or_without_seconds() {
    let monday = "2026-11-23T08:59:59Z";
    assert_eq!(of("0 9 * * mon-fri", "UTC").next(at(monday)), Some(at("2026-11-23T09:00:00Z")));
    assert_eq!(of("*/15 * * * * *", "UTC").next(at("2026-11-23T09:00:00Z")), Some(at("2026-11-23T09:00:15Z")));
    assert_eq!(of("@hourly", "UTC").next(at(monday)), Some(at("2026-11-23T09:00:00Z")));
    assert_eq!(of("@midnight", "UTC").next(at(monday)), Some(at("2026-11-24T00:00:00Z")));
    assert_eq!(of("0 0 L * *", "UTC").next(at(monday)), Some(at("2026-11-30T00:00:00Z")));
    // As in cron, one matching day is enough.
    assert_eq!(of("0 0 25 * tue", "UTC").next(at(monday)), Some(at("2026-11-24T00:00:00Z")));
    assert_eq!(of(" 0  9 * * * ", "Europe/Berlin").next(at(monday)), Some(at("2026-11-24T08:00:00Z")));
}

#[test]
fn every_counts_from_1970_and_knows_no_zone() {
    for zone in ["UTC", "Asia/Kolkata"] {
        assert_eq!(of("every 90 seconds", zone).next(at("2026-11-23T09:00:00Z")), Some(at("2026-11-23T09:01:30Z")));
        assert_eq!(of("Every 2 hours", zone).next(at("2026-11-23T09:00:00Z")), Some(at("2026-11-23T10:00:00Z")));
        assert_eq!(of("every minute", zone).next(at("2026-11-23T09:00:59.9Z")), Some(at("2026-11-23T09:01:00Z")));
    }
    let every = of("every 10 seconds", "UTC");
    assert_eq!(every.previous(at("2026-11-23T09:00:00Z")), Some(at("2026-11-23T08:59:50Z")));
    assert_eq!(every.previous(at("2026-11-23T09:00:00.5Z")), Some(at("2026-11-23T09:00:00Z")));
    assert_eq!(every.previous(at("1969-12-31T23:59:55Z")), Some(at("1969-12-31T23:59:50Z")));
}

#[test]
fn missing_local_time_ticks_when_the_clock_has_jumped() {
    // On 29 March 2026, 02:00 becomes 03:00.
    let ticks = local("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3);
    assert_eq!(ticks, ["2026-03-28T02:30:00+01", "2026-03-29T03:00:00+02", "2026-03-30T02:30:00+02"]);
    let ticks = local("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:15:00Z", 3);
    assert_eq!(ticks, ["2026-03-29T01:30:00+01", "2026-03-29T03:00:00+02", "2026-03-29T03:30:00+02"]);
}

#[test]
fn repeated_local_time_ticks_once_only_for_a_named_hour() {
    // On 25 October 2026, 03:00 becomes 02:00.
    let ticks = local("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
    assert_eq!(ticks, ["2026-10-25T02:30:00+02", "2026-10-26T02:30:00+01"]);
    let ticks = local("30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", 3);
    assert_eq!(ticks, ["2026-10-25T02:30:00+02", "2026-10-25T02:30:00+01", "2026-10-25T03:30:00+01"]);
}

#[test]
fn no_date_at_all_is_no_tick() {
    assert_eq!(of("0 0 30 2 *", "UTC").next(at("2026-11-23T00:00:00Z")), None);
}

#[test]
fn a_bad_expression_or_zone_says_what_would_be_good() {
    let bad = [
        "",
        "soon",
        "* * * *",
        "60 * * * *",
        "* * * * * * *",
        "* * * * foo",
        "@reboot",
        "every",
        "every day or so",
        "every 0 seconds",
        "every 400 days",
        "every -1 seconds",
        "every 99999999999999999999 seconds",
        "every 5 weeks",
        "*/0 * * * *",
    ];
    for text in bad {
        let error = Expression::parse(text, "UTC").expect_err(text).to_string();
        assert!(error.contains("every 90 seconds") && error.contains(text), "{text}: {error}");
    }
    for (text, why) in [
        ("0 22-3 * * *", "hour \"22-3\": a range cannot pass the end"),
        ("0 3 * * fri-mon", "day of the week \"fri-mon\": a range cannot pass the end"),
        ("61 * * * *", "minute \"61\": "),
        ("0 0 1 32 * *", "day of the month \"32\": "),
    ] {
        let error = Expression::parse(text, "UTC").expect_err(text).to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    let error = Expression::parse("@daily", "Europe/Bielefeld").expect_err("no zone").to_string();
    assert!(error.contains("Europe/Bielefeld") && error.contains("Europe/Berlin"), "{error}");
}

#[test]
fn zone_that_the_system_lacks_is_found_all_the_same() {
    let system = TimeZoneDatabase::none();
    assert_eq!(found(&system, "Europe/Berlin").expect("a zone").iana_name(), Some("Europe/Berlin"));
    assert!(found(&system, "Europe/Nowhere").is_err());
}
