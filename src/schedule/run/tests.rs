//! Tests the pauses and rounds of the loop that runs schedules.

use std::time::Duration;

use tokio::time::Instant;

use super::{MOST, OTHERS, OVERLOOKED, Round, SETTLED};
use crate::{
    postgres::time::Time,
    schedule::fire::{DueIn, Made},
};

#[test]
fn whole_table_is_read_first_each_minute_and_after_changes() {
    let (mut round, now) = (Round::default(), Instant::now());
    assert_eq!(round.since(Some(0), now), Time::EARLIEST);
    let clock = Time(900_000_000);
    assert!(!round.looked(&DueIn::at(None, clock), Some(0)));
    assert_eq!(round.since(Some(0), now), clock.before(SETTLED));
    assert_eq!(round.since(Some(1), now), Time::EARLIEST);
    assert!(!round.looked(&DueIn::at(None, clock), Some(1)));
    assert_eq!(round.since(Some(1), now + OVERLOOKED / 2), clock.before(SETTLED));
    assert_eq!(round.since(Some(1), now + OVERLOOKED), Time::EARLIEST);
}

#[test]
fn all_is_looked_at_once_the_clock_was_set_back() {
    let (mut round, now) = (Round::default(), Instant::now());
    assert_eq!(round.since(None, now), Time::EARLIEST);
    assert!(!round.looked(&DueIn::at(None, Time(900_000_000)), None));
    assert!(round.looked(&DueIn::at(None, Time(800_000_000)), None), "by more than what is looked at again");
    assert_eq!(round.since(None, now), Time::EARLIEST);
    assert!(!round.looked(&DueIn::at(None, Time(800_000_000)), None));
}

fn done(schedules: usize) -> Made {
    Made { schedules, has_left: false }
}

#[test]
fn ticks_claimed_elsewhere_are_looked_for_ever_less_often() {
    let mut round = Round::default();
    assert_eq!(round.made(done(0)), OTHERS.0);
    assert_eq!(round.made(done(0)), OTHERS.0 * 2);
    for _ in 0..10 {
        assert!(round.made(done(0)) <= OTHERS.1);
    }
    assert_eq!(round.made(done(3)), Duration::ZERO);
    assert_eq!(round.made(done(0)), OTHERS.0);
}

#[test]
fn it_sleeps_until_the_next_tick_but_not_for_long() {
    let look = |due_in| DueIn::at(due_in, Time(0));
    assert!(look(Some(0.0)).is_due() && look(Some(-3.0)).is_due() && !look(Some(0.1)).is_due() && !look(None).is_due());
    assert_eq!(look(Some(1.5)).pause(OVERLOOKED), Duration::from_millis(1500));
    assert_eq!((look(Some(1e300)).pause(OVERLOOKED), look(None).pause(OVERLOOKED)), (OVERLOOKED, OVERLOOKED));
}

#[test]
fn no_more_is_claimed_than_will_be_done() {
    let mut round = Round::default();
    assert_eq!(round.most, MOST);
    let mut claimed = 0;
    for _ in 0..MOST {
        claimed += round.most;
        // one schedule fills the round, because each has missed a thousand ticks
        round.made(Made { schedules: 1, has_left: true });
    }
    assert!(claimed <= 3 * MOST, "{claimed} are claimed for {MOST}");
    for _ in 0..10 {
        round.made(done(round.most));
    }
    assert_eq!(round.most, MOST);
}
