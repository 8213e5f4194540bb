use super::{clean, made::Made};
use crate::{
    history::{Call, Outcome, Verb},
    plan::{EXACT, LEAST, ONCE, PURGED},
    tag,
};

const VANISHED: &str = "a message vanished whose enqueue was Ok";

#[test]
fn an_enqueue_that_was_ok_and_vanished_is_found() {
    for queue in [LEAST, ONCE, PURGED] {
        let mut made = Made::new();
        made.enqueued(queue, 500, 99_328);
        assert_eq!(made.rules(), [VANISHED], "{queue}");
    }
    let mut made = Made::new();
    made.enqueued(LEAST, 500, 99_328);
    made.leased(LEAST, 600, &[(99_328, 1, 500)]);
    made.ended(Verb::Retry, LEAST, 700, (99_328, 1));
    assert_eq!(made.rules(), [VANISHED], "a retry removes nothing");
}

#[test]
fn possibly_removed_message_did_not_vanish() {
    for verb in [Verb::Ack, Verb::Archive, Verb::Bury, Verb::Cancel, Verb::Discard, Verb::Handle] {
        let mut made = Made::new();
        made.enqueued(LEAST, 500, 99_328);
        made.unknown(verb, LEAST, 700, (99_328, 1));
        assert_eq!(made.rules(), Vec::<&str>::new(), "{verb:?}");
    }
    let mut made = Made::new();
    made.enqueued(PURGED, 500, 99_328);
    made.op(Call::new(Verb::Purge, PURGED), 900);
    assert_eq!(made.rules(), Vec::<&str>::new());
}

#[test]
fn unknown_take_accounts_for_its_limit_of_earlier_messages() {
    let mut made = Made::new();
    for tag in 0..3 {
        made.enqueued(ONCE, 500 + tag, 1024 * (50 + tag as i64));
    }
    made.take_unknown(ONCE, 900, 2);
    assert_eq!(made.rules(), [VANISHED]);
    let mut made = Made::new();
    made.take_unknown(ONCE, 100, 20);
    made.enqueued(ONCE, 500, 99_328);
    assert_eq!(made.rules(), [VANISHED]);
}

#[test]
fn a_dropped_take_gives_back_unless_something_was_the_matter() {
    let mut made = Made::new();
    made.enqueued(ONCE, 500, 99_328);
    made.take_unknown(ONCE, 900, 2).outcome = Outcome::Dropped;
    let mut troubled = made.clone();
    assert_eq!(made.rules(), [VANISHED]);
    troubled.fault("crash", 800, 1000);
    assert_eq!(troubled.rules(), Vec::<&str>::new());
}

#[test]
fn waiting_take_accounts_for_losses_only_during_faults() {
    let mut made = Made::new();
    made.enqueued(ONCE, 500, 99_328);
    made.op(Call::new(Verb::TakeWaiting, ONCE).n(2), 900);
    let mut troubled = made.clone();
    assert_eq!(made.rules(), [VANISHED]);
    troubled.fault("terminate", 905, 906);
    assert_eq!(troubled.rules(), Vec::<&str>::new());
}

#[test]
fn a_message_out_of_nowhere_is_found() {
    let nowhere = ["a message came out of nowhere"];
    let mut made = clean();
    made.taken(ONCE, 800, &[(99_328, 0, 999)]);
    assert_eq!(made.rules(), nowhere);
    let mut made = clean();
    made.dead(LEAST, 99_328, 999, 1);
    assert_eq!(made.rules(), nowhere);
    let mut made = clean();
    made.taken(ONCE, 800, &[(99_328, 0, tag::DAMAGED)]);
    assert_eq!(made.rules(), nowhere, "a damaged payload is none that was enqueued");
}

#[test]
fn an_enqueue_that_failed_and_is_there_is_found() {
    let mut made = clean();
    made.enqueue_failed(ONCE, 600);
    made.taken(ONCE, 800, &[(99_328, 0, 600)]);
    assert_eq!(made.rules(), ["an enqueue was said to have failed, and its message is there"]);
}

#[test]
fn another_id_and_an_id_twice_are_found() {
    let mut made = clean();
    made.enqueued(ONCE, 600, 99_328);
    made.taken(ONCE, 800, &[(99_329, 0, 600)]);
    assert!(made.rules().contains(&"a message has an id that its enqueue did not return"));
    let mut made = clean();
    made.enqueued(ONCE, 600, 99_328);
    made.enqueued(ONCE, 601, 99_328);
    made.taken(ONCE, 800, &[(99_328, 0, 600)]);
    assert_eq!(made.rules(), ["two messages have one id"]);
}

#[test]
fn lost_dead_letters_and_archived_messages_are_found() {
    let mut made = clean();
    made.evidence.tables.dead.clear();
    assert_eq!(made.rules(), ["a dead letter was lost"]);
    let mut made = clean();
    made.evidence.tables.archive.clear();
    assert_eq!(made.rules(), ["an archived message was lost"]);
}

#[test]
fn acknowledged_message_that_remains_is_found() {
    let mut made = Made::new();
    made.enqueued(LEAST, 500, 99_328);
    made.leased(LEAST, 600, &[(99_328, 1, 500)]);
    made.ended(Verb::Ack, LEAST, 700, (99_328, 1));
    made.dead(LEAST, 99_328, 500, 1);
    assert_eq!(made.rules(), ["a message is there that was acknowledged, taken or archived"]);
}

#[test]
fn undrained_message_is_found() {
    let mut made = clean();
    made.enqueued(EXACT, 500, 99_328);
    made.waiting(EXACT, 99_328, 500);
    assert_eq!(made.rules(), ["a message could not be drained"]);
}
