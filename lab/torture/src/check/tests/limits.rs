use super::made::Made;
use crate::{
    history::{Outcome, Verb},
    plan::{BURST, CAPPED, MAX_LEASED, METERED, PER_SECOND},
};

const NONE: [&str; 0] = [];
const LEASED: &str = "more messages were leased than the limit allows";
const RATE: &str = "more messages were dequeued in a time than the limit allows";

/// Returns `messages` messages. From 110 ms, all of them except one are leased.
fn capped(messages: u64) -> Made {
    let mut made = Made::new();
    for tag in 1..=messages {
        made.enqueued(CAPPED, tag, tag as i64 * 1024);
    }
    let leases: Vec<_> = (1..messages).map(|tag| (tag as i64 * 1024, 1, tag)).collect();
    made.leased(CAPPED, 100, &leases);
    made
}

fn acknowledged(made: &mut Made, ms: u64, tags: std::ops::RangeInclusive<u64>) {
    tags.for_each(|tag| made.ended(Verb::Ack, CAPPED, ms, (tag as i64 * 1024, 1)));
}

#[test]
fn one_more_than_may_be_leased_is_found() {
    let most = u64::from(MAX_LEASED);
    let leased_then = |ms: u64, ended: u64| {
        let mut made = capped(most + 1);
        made.leased(CAPPED, ms, &[((most as i64 + 1) * 1024, 1, most + 1)]);
        acknowledged(&mut made, ended, 1..=most);
        acknowledged(&mut made, ms + 500, most + 1..=most + 1);
        made
    };
    assert_eq!(leased_then(300, 600).rules(), [LEASED]);
    assert_eq!(leased_then(600, 605).rules(), NONE, "the others were on their way back");
    assert_eq!(leased_then(2_150, 3_000).rules(), NONE, "the other leases had run out");
    let mut made = leased_then(300, 600);
    made.fault("clock", 100, 250);
    assert_eq!(made.rules(), NONE, "or had by the server's clock");
}

/// Returns `takes` takes of five messages each, `apart` milliseconds apart.
fn metered(takes: u64, apart: u64) -> Made {
    let mut made = Made::new();
    for nr in 0..takes {
        let tags = || (1..=5).map(move |k| nr * 5 + k);
        tags().for_each(|tag| made.enqueued_at(METERED, tag, tag as i64 * 1024, 0));
        let got: Vec<_> = tags().map(|tag| (tag as i64 * 1024, 0, tag)).collect();
        made.taken(METERED, 100 + nr * apart, &got);
    }
    made
}

#[test]
fn more_in_a_time_than_the_limit_is_found() {
    let five = (5_000.0 / PER_SECOND) as u64;
    assert_eq!(metered(100, five).rules(), NONE);
    assert_eq!(metered(u64::from(BURST) / 5, 0).rules(), NONE, "a burst");
    assert_eq!(metered(u64::from(BURST) / 5 + 1, 15).rules(), [RATE], "more than a burst");
    assert_eq!(metered(100, five * 3 / 4).rules(), [RATE], "a third too fast");
    let mut made = metered(3, 15);
    made.evidence.ops.iter_mut().filter(|op| op.call.verb == Verb::Take).for_each(|op| op.process = "drain-0.0".into());
    assert_eq!(made.rules(), NONE, "without limits, at the end");
    let mut made = metered(3, 15);
    made.evidence.ops.last_mut().expect("a take").outcome = Outcome::Unknown;
    assert_eq!(made.rules(), NONE, "of three one may not have been");
}
