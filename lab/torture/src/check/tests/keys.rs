use super::made::{Made, micros};
use crate::{
    check::keys::DEAD,
    history::{Call, Outcome, Verb},
    plan::{KEYED, KEYS, LEASE},
};

const NONE: [&str; 0] = [];
const OVERTOOK: &str = "a message of a key began before one ahead of it was done";
const TOGETHER: &str = "two messages of a key were handled at the same time";
const LATE: &str = "a lane was read on when its holder's time was over";

/// The tags of two messages with the same key.
const ONE: u64 = 5;
const TWO: u64 = 5 + KEYS;

fn enqueued() -> Made {
    let mut made = Made::new();
    made.enqueued_at(KEYED, ONE, 1024, 100);
    made.enqueued_at(KEYED, TWO, 2048, 200);
    made
}

fn handled(made: &mut Made, id: i64, attempt: i32, tag: u64, ms: u64) -> usize {
    made.op(Call::new(Verb::Handle, KEYED).named(vec![(id, attempt)]).tags(vec![tag]), ms);
    made.evidence.ops.len() - 1
}

#[test]
fn message_that_overtakes_an_earlier_one_is_found() {
    let mut made = enqueued();
    handled(&mut made, 2048, 1, TWO, 300);
    handled(&mut made, 1024, 1, ONE, 400);
    assert_eq!(made.rules(), [OVERTOOK]);
    let mut made = enqueued();
    handled(&mut made, 1024, 1, ONE, 300);
    handled(&mut made, 2048, 1, TWO, 400);
    handled(&mut made, 1024, 2, ONE, 500);
    handled(&mut made, 2048, 2, TWO, 600);
    assert_eq!(made.rules(), NONE, "its acknowledgement was lost, and both came again");
    let failed = |why: &str| {
        let mut made = enqueued();
        let first = handled(&mut made, 1024, 1, ONE, 300);
        (made.evidence.ops[first].outcome, made.evidence.ops[first].why) = (Outcome::Failed, why.to_owned());
        handled(&mut made, 2048, 1, TWO, 400);
        if why != DEAD {
            handled(&mut made, 1024, 2, ONE, 500);
        }
        made
    };
    assert_eq!(failed("to be tried again").rules(), [OVERTOOK]);
    let mut made = failed(DEAD);
    made.dead(KEYED, 1024, ONE, 1);
    assert_eq!(made.rules(), NONE);
    let mut made = enqueued();
    handled(&mut made, 1024, 1, ONE, 300);
    made.ended(Verb::Release, KEYED, 305, (1024, 1));
    handled(&mut made, 2048, 1, TWO, 400);
    handled(&mut made, 1024, 2, ONE, 500);
    assert_eq!(made.rules(), [OVERTOOK], "its handler gave it back");
}

#[test]
fn unordered_messages_do_not_overtake() {
    let mut made = enqueued();
    made.evidence.ops[0].ended += 150_000;
    handled(&mut made, 2048, 1, TWO, 300);
    handled(&mut made, 1024, 1, ONE, 400);
    assert_eq!(made.rules(), NONE, "neither waited for the other");
    let mut made = enqueued();
    made.evidence.ops[0].call.ms = 1_000;
    handled(&mut made, 2048, 1, TWO, 300);
    handled(&mut made, 1024, 1, ONE, 1_400);
    assert_eq!(made.rules(), NONE, "it was due later");
    let mut made = enqueued();
    made.fault("clock", 50, 60);
    handled(&mut made, 2048, 1, TWO, 300);
    handled(&mut made, 1024, 1, ONE, 400);
    assert_eq!(made.rules(), NONE, "the server's clock was set");
    let mut made = enqueued();
    made.unknown(Verb::Cancel, KEYED, 250, (1024, 0));
    handled(&mut made, 2048, 1, TWO, 300);
    assert_eq!(made.rules(), NONE, "it may be gone");
}

#[test]
fn the_messages_of_one_call_have_an_order() {
    let handled_at = |first, second| {
        let mut made = Made::new();
        made.op(Call::new(Verb::Enqueue, KEYED).tags(vec![ONE, TWO]), 100).ids = vec![1024, 1025];
        handled(&mut made, 1024, 1, ONE, first);
        handled(&mut made, 1025, 1, TWO, second);
        made.rules()
    };
    assert_eq!(handled_at(300, 400), NONE);
    assert_eq!(handled_at(400, 300), [OVERTOOK]);
}

#[test]
fn concurrent_messages_of_a_key_are_found() {
    let overlap = |other: bool, ms: u64| {
        let mut made = enqueued();
        let first = handled(&mut made, 1024, 1, ONE, 300);
        made.evidence.ops[first].ended = micros(5_000);
        made.op(Call::new(Verb::Ack, KEYED).named(vec![(1024, 1)]), 310).outcome = Outcome::Unknown;
        let second = handled(&mut made, 2048, 1, TWO, 300 + ms);
        if other {
            made.evidence.ops[second].process = "made-1.0".to_owned();
        }
        made
    };
    assert_eq!(overlap(false, 2_000).rules(), [TOGETHER]);
    assert_eq!(overlap(true, 100).rules(), [TOGETHER]);
    assert_eq!(overlap(true, LEASE.as_millis() as u64).rules(), NONE, "its lease may be over");
    let mut made = overlap(true, 100);
    made.fault("stop", 310, 320);
    assert_eq!(made.rules(), NONE, "it may have been late");
}

#[test]
fn a_lane_that_is_read_on_too_late_is_found() {
    let read_on = |ms| {
        let mut made = enqueued();
        let call = Call::new(Verb::Lease, KEYED).n(1).ms(2_000).over(micros(3_300));
        made.op(call, ms).got = vec![(1024, 1, ONE)];
        made.ended(Verb::Ack, KEYED, ms + 20, (1024, 1));
        made.waiting(KEYED, 2048, TWO);
        made
    };
    assert!(!read_on(3_000).rules().contains(&LATE));
    assert!(read_on(3_400).rules().contains(&LATE));
    let mut made = read_on(3_400);
    made.fault("clock", 3_000, 3_100);
    assert!(!made.rules().contains(&LATE), "the clock was set back");
}
