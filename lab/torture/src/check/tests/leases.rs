use super::made::Made;
use crate::{
    history::{Call, Verb},
    plan::LEAST,
};

const NONE: [&str; 0] = [];
const EARLY: &str = "a message was leased again while its lease ran";
const REFUSED: &str = "the end of a lease was refused while it ran";

/// Returns a message under its first lease, which begins between 100 and 110 ms.
fn leased() -> Made {
    let mut made = Made::new();
    made.enqueued(LEAST, 1, 1024);
    made.leased(LEAST, 100, &[(1024, 1, 1)]);
    made
}

#[test]
fn a_lease_that_is_given_twice_is_found() {
    let mut made = leased();
    made.leased(LEAST, 2_500, &[(1024, 1, 1)]);
    made.ended(Verb::Ack, LEAST, 2_600, (1024, 1));
    assert_eq!(made.rules(), ["one lease was given twice"]);
    let mut made = leased();
    made.op(Call::new(Verb::Handle, LEAST).named(vec![(1024, 1)]).tags(vec![1]), 2_500);
    assert_eq!(made.rules(), ["one lease was given twice"], "to a worker");
}

#[test]
fn second_lease_during_a_running_one_is_found() {
    let given = |at| {
        let mut made = leased();
        made.leased(LEAST, at, &[(1024, 2, 1)]);
        made.ended(Verb::Ack, LEAST, at + 20, (1024, 2));
        made
    };
    assert_eq!(given(1_900).rules(), [EARLY]);
    assert_eq!(given(2_100).rules(), NONE, "it was over");
    for verb in [Verb::Release, Verb::Retry, Verb::Handle] {
        let mut made = given(1_900);
        made.unknown(verb, LEAST, 500, (1024, 1));
        assert_eq!(made.rules(), NONE, "{verb:?} may have ended it");
    }
    let mut made = given(1_900);
    let stream = &mut made.evidence.ops[1];
    (stream.call.ms, stream.began, stream.ended) = (0, stream.began + 1_890_000, stream.ended + 1_890_000);
    assert_eq!(made.rules(), NONE, "a stream had it for a while");
    let mut made = given(1_900);
    made.unknown(Verb::Release, LEAST, 1_950, (1024, 1));
    assert_eq!(made.rules(), [EARLY], "that was later");
    let mut made = given(2_900);
    made.extended(LEAST, 1_000, (1024, 1), 2_000);
    assert_eq!(made.rules(), [EARLY], "it was extended");
    let mut made = given(1_900);
    made.extended(LEAST, 1_000, (1024, 1), 500);
    assert_eq!(made.rules(), NONE, "it was cut short");
}

#[test]
fn acknowledged_message_that_comes_again_is_found() {
    for verb in [Verb::Ack, Verb::AckIn] {
        let mut made = leased();
        made.ended(verb, LEAST, 2_200, (1024, 1));
        made.leased(LEAST, 2_300, &[(1024, 2, 1)]);
        made.unknown(Verb::Ack, LEAST, 2_400, (1024, 2));
        assert_eq!(made.rules(), ["a message came again that was acknowledged"], "{verb:?}");
    }
}

#[test]
fn two_ends_of_one_lease_are_found() {
    let mut made = leased();
    made.ended(Verb::Ack, LEAST, 200, (1024, 1));
    made.ended(Verb::Ack, LEAST, 205, (1024, 1));
    assert_eq!(made.rules(), ["two ends of one lease were Ok"]);
    let mut made = leased();
    made.ended(Verb::Ack, LEAST, 200, (1024, 1));
    made.refused(Verb::Retry, LEAST, 205, (1024, 1));
    assert_eq!(made.rules(), NONE);
}

#[test]
fn end_refused_during_a_running_lease_is_found() {
    for verb in [Verb::Ack, Verb::Retry, Verb::Extend] {
        let mut made = leased();
        made.refused(verb, LEAST, 1_900, (1024, 1));
        made.waiting(LEAST, 1024, 1);
        assert!(made.rules().contains(&REFUSED), "{verb:?}");
    }
    for cause in [Verb::Cancel, Verb::Ack, Verb::Release] {
        let mut made = leased();
        made.unknown(cause, LEAST, 300, (1024, 1));
        made.refused(Verb::Ack, LEAST, 1_900, (1024, 1));
        assert!(!made.rules().contains(&REFUSED), "{cause:?} may have ended it");
    }
    let mut made = leased();
    made.refused(Verb::Ack, LEAST, 2_095, (1024, 1));
    assert!(!made.rules().contains(&REFUSED), "it may have run out");
}

#[test]
fn too_many_attempts_are_found() {
    let tried = |times: i32, released: bool| {
        let mut made = Made::new();
        made.enqueued(LEAST, 1, 1024);
        for attempt in 1..=times {
            let at = 3_000 * attempt as u64;
            made.leased(LEAST, at, &[(1024, attempt, 1)]);
            if attempt == 1 && released {
                made.ended(Verb::Release, LEAST, at + 50, (1024, attempt));
            }
        }
        made.unknown(Verb::Ack, LEAST, 90_000, (1024, times));
        made
    };
    let many = ["a message had more attempts than are allowed"];
    assert_eq!(tried(5, false).rules(), NONE);
    assert_eq!(tried(6, false).rules(), many);
    assert_eq!(tried(6, true).rules(), NONE, "one was not charged");
    assert_eq!(tried(7, true).rules(), many);
    let mut made = tried(6, false);
    made.unknown(Verb::Replay, LEAST, 10_000, (1024, 0));
    assert_eq!(made.rules(), NONE, "they were forgiven");
    let mut made = tried(1, false);
    made.dead(LEAST, 1024, 1, 6);
    assert_eq!(made.rules(), many, "a dead letter says so");
}

#[test]
fn a_message_that_dies_too_early_is_found() {
    let died = |attempt, error: &str| {
        let mut made = leased();
        made.dead(LEAST, 1024, 1, attempt);
        made.evidence.tables.dead[0].error = error.to_owned();
        made.rules()
    };
    assert_eq!(died(3, "it failed"), ["a message died before its attempts were used up"]);
    assert_eq!(died(5, "it failed"), NONE);
    assert_eq!(died(1, crate::plan::BURIED), NONE);
}
