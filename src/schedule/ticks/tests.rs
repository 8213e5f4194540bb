//! Tests which ticks are run, by the treatment of missed ticks.

use std::time::Instant;

use jiff::{Timestamp, ToSpan};

use super::{Expression, MOST, Missed, Ticks};

fn at(text: &str) -> Timestamp {
    text.parse().expect(text)
}

fn ticks(text: &str, missed: Missed, first: &str, now: &str) -> Ticks {
    Expression::parse(text, "Europe/Berlin").expect(text).ticks(missed, at(first), at(now))
}

const ALL: [Missed; 3] = [Missed::Skip, Missed::Once, Missed::Each];

#[test]
fn timely_tick_is_made_whatever_happens_to_missed_ones() {
    for missed in ALL {
        let found = ticks("* * * * *", missed, "2026-11-23T09:00:00Z", "2026-11-23T09:00:00.02Z");
        let next = Some(at("2026-11-23T09:01:00Z"));
        assert_eq!(found, Ticks { now: vec![at("2026-11-23T09:00:00Z")], has_dropped: false, next }, "{missed:?}");
    }
}

#[test]
fn missed_ticks_are_skipped_or_made_up_once_or_each() {
    let of = |missed| ticks("0 * * * *", missed, "2026-11-23T09:00:00Z", "2026-11-23T12:30:00Z");
    let hour = |hour: i64| at("2026-11-23T00:00:00Z") + hour.hours();
    assert_eq!(of(Missed::Skip).now, []);
    assert_eq!(of(Missed::Once).now, [hour(12)]);
    assert_eq!(of(Missed::Each).now, [hour(9), hour(10), hour(11), hour(12)]);
    for missed in ALL {
        assert_eq!((of(missed).next, of(missed).has_dropped), (Some(hour(13)), false));
    }
    // Tests a last tick that is not older than a minute.
    let late = ticks("0 * * * *", Missed::Skip, "2026-11-23T09:00:00Z", "2026-11-23T12:00:30Z");
    assert_eq!(late.now, [hour(12)]);
}

#[test]
fn a_year_of_seconds_costs_what_a_thousand_cost() {
    let (first, now) = ("2025-11-23T09:00:00Z", "2026-11-23T09:00:00.5Z");
    for text in ["* * * * * *", "every second"] {
        let began = Instant::now();
        let found = ticks(text, Missed::Each, first, now);
        assert!(began.elapsed().as_secs() < 5, "{text}: {:?}", began.elapsed());
        assert_eq!((found.now.len(), found.has_dropped), (MOST, true), "{text}");
        assert_eq!(found.now[MOST - 1], at("2026-11-23T09:00:00Z"), "{text}");
        assert_eq!(found.now[0], at("2026-11-23T08:43:21Z"), "{text}");
        assert_eq!(ticks(text, Missed::Once, first, now).now, [at("2026-11-23T09:00:00Z")], "{text}");
    }
}

#[test]
fn tick_in_a_skipped_hour_is_not_lost_looking_back() {
    for missed in ALL {
        let found = ticks("30 2 * * *", missed, "2026-03-28T01:30:00Z", "2026-03-29T01:00:30Z");
        assert_eq!(found.now.last(), Some(&at("2026-03-29T01:00:00Z")), "{missed:?}");
    }
    // Tests a row's stored time, at which its tick is due even if the time was changed manually.
    let found = ticks("30 2 * * *", Missed::Each, "2026-11-23T08:59:59Z", "2026-11-23T09:00:00Z");
    assert_eq!(found.now, [at("2026-11-23T08:59:59Z")]);
}
