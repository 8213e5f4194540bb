use super::made::Made;
use crate::{
    history::{Became, Call, Outcome, Verb},
    plan::UNIQUE,
};

const NONE: [&str; 0] = [];
const TWO: &str = "two messages with one unique key were there at the same time";
const KEPT: &str = "a unique key was kept although its message had ended";
const OTHER: &str = "an enqueue was told of a message that has another unique key";
const THERE: &str = "a message is there although its enqueue was told of another";
const STALE: &str = "a message was handed out as it was before it was replaced";

/// Adds an enqueue. Tags 4 to 7 share one key, and tag 8 has another key.
fn brought(made: &mut Made, tag: u64, ms: u64, became: Became, id: i64) {
    let verb = if became == Became::Replaced { Verb::Replace } else { Verb::EnqueueUnique };
    let op = made.op(Call::new(verb, UNIQUE).tags(vec![tag]), ms);
    (op.ids, op.became) = (vec![id], became);
}

/// Returns a message that is acknowledged at 500 ms.
fn one() -> Made {
    let mut made = Made::new();
    brought(&mut made, 4, 100, Became::New, 1024);
    made.leased(UNIQUE, 400, &[(1024, 1, 4)]);
    made.ended(Verb::Ack, UNIQUE, 500, (1024, 1));
    made
}

#[test]
fn two_messages_with_one_key_are_found() {
    let second = |ms| {
        let mut made = one();
        brought(&mut made, 5, ms, Became::New, 2048);
        made.waiting(UNIQUE, 2048, 5);
        made.rules().into_iter().filter(|rule| *rule == TWO).count()
    };
    assert_eq!([second(200), second(450), second(600)], [1, 1, 0]);
    assert_eq!(second(495), 0, "it was told when the first may have ended");
    let mut made = one();
    made.evidence.ops[2].outcome = Outcome::Unknown;
    brought(&mut made, 5, 600, Became::New, 2048);
    made.unknown(Verb::Cancel, UNIQUE, 700, (2048, 0));
    assert_eq!(made.rules(), NONE, "the first may have ended");
    let mut made = one();
    brought(&mut made, 8, 200, Became::New, 2048);
    made.unknown(Verb::Cancel, UNIQUE, 700, (2048, 0));
    assert_eq!(made.rules(), NONE, "of another key");
}

#[test]
fn key_kept_after_its_message_ended_is_found() {
    let told = |ms| {
        let mut made = one();
        brought(&mut made, 5, ms, Became::Duplicate, 1024);
        made
    };
    assert_eq!(told(300).rules(), NONE);
    assert_eq!(told(505).rules(), NONE, "at the same time");
    assert_eq!(told(600).rules(), [KEPT]);
    let mut made = told(600);
    made.evidence.ops[2].outcome = Outcome::Unknown;
    assert_eq!(made.rules(), NONE, "it may be there still");
}

#[test]
fn duplicate_of_another_key_or_a_stored_duplicate_is_found() {
    let mut made = one();
    brought(&mut made, 8, 200, Became::Duplicate, 1024);
    assert_eq!(made.rules(), [OTHER]);
    let mut made = one();
    brought(&mut made, 5, 200, Became::Duplicate, 1024);
    made.leased(UNIQUE, 600, &[(2048, 1, 5)]);
    made.ended(Verb::Ack, UNIQUE, 700, (2048, 1));
    assert_eq!(made.rules(), [THERE]);
}

#[test]
fn replaced_message_with_its_old_payload_is_found() {
    let replaced = |ms: u64| {
        let mut made = one();
        brought(&mut made, 5, ms, Became::Replaced, 1024);
        made.rules()
    };
    assert_eq!(replaced(200), [STALE]);
    assert_eq!(replaced(395), NONE, "at the same time");
    let mut made = one();
    brought(&mut made, 5, 200, Became::Replaced, 1024);
    made.evidence.ops[1].got[0].2 = 5;
    assert_eq!(made.rules(), NONE);
}
