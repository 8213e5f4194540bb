use super::made::Made;
use crate::{
    history::Outcome,
    plan::{AGING, BELL, FIFO, RANKED},
};

const NONE: [&str; 0] = [];
const OVERTOOK: &str = "a message overtook another that was due before it and visible";
const HIDDEN: &str = "a message was hidden from dequeues for longer than the floor promises";
const LATE: &str = "a consumer that listens slept over a message";

/// Returns two messages, enqueued 100 ms apart.
fn enqueued() -> Made {
    let mut made = Made::new();
    made.enqueued_at(FIFO, 1, 1024, 100);
    made.enqueued_at(FIFO, 2, 2048, 200);
    made
}

#[test]
fn a_message_that_overtakes_is_found() {
    let mut made = enqueued();
    made.taken(FIFO, 300, &[(2048, 0, 2)]);
    made.taken(FIFO, 400, &[(1024, 0, 1)]);
    assert_eq!(made.rules(), [OVERTOOK]);
    let mut made = enqueued();
    made.taken(FIFO, 105, &[(2048, 0, 2)]);
    made.taken(FIFO, 400, &[(1024, 0, 1)]);
    assert_eq!(made.rules(), NONE, "the first one was not committed yet");
    let mut made = enqueued();
    made.evidence.ops[0].ended += 20_000_000;
    made.taken(FIFO, 300, &[(2048, 0, 2)]);
    made.taken(FIFO, 25_000, &[(1024, 0, 1)]);
    assert_eq!(made.rules(), NONE, "a transaction that was held open");
}

#[test]
fn possibly_locked_message_is_not_overtaken() {
    let mut made = enqueued();
    made.take_unknown(FIFO, 220, 1).outcome = Outcome::Failed;
    made.taken(FIFO, 300, &[(2048, 0, 2)]);
    made.taken(FIFO, 400, &[(1024, 0, 1)]);
    assert_eq!(made.rules(), NONE);
    let mut made = enqueued();
    made.taken(FIFO, 300, &[(2048, 0, 2)]);
    made.leased(FIFO, 400, &[(1024, 2, 1)]);
    made.unknown(crate::history::Verb::Ack, FIFO, 500, (1024, 2));
    assert_eq!(made.rules(), NONE, "it was leased before");
}

#[test]
fn a_message_that_is_hidden_is_found() {
    let hidden = |until: u64| {
        let mut made = enqueued();
        made.taken(FIFO, 300, &[(1024, 0, 1)]);
        for at in (400..until).step_by(100) {
            made.short(FIFO, at, &[]);
        }
        made.taken(FIFO, until + 100, &[(2048, 0, 2)]);
        made
    };
    assert_eq!(hidden(900).rules(), NONE);
    assert_eq!(hidden(2_000).rules(), [HIDDEN]);
    let mut made = hidden(2_000);
    made.fault("clock", 100, 250);
    assert_eq!(made.rules(), NONE, "it is promised for longer where the clock was set back");
}

#[test]
fn a_message_that_is_slept_over_is_found() {
    let rung = || {
        let mut made = Made::new();
        made.enqueued_at(BELL, 1, 1024, 100_000);
        made.listened(BELL, 90_000, 103_000, &[(1024, 0, 1)]);
        made
    };
    assert_eq!(rung().rules(), [LATE]);
    let mut made = rung();
    made.fault("crash", 95_000, 95_100);
    assert_eq!(made.rules(), NONE, "the listener had lost its connection");
    let mut made = rung();
    made.fault("snapshot", 95_000, 99_000);
    assert_eq!(made.rules(), [LATE], "a snapshot is no excuse");
    let mut made = rung();
    made.evidence.ops[1].began += 15_000_000;
    assert_eq!(made.rules(), NONE, "the listener was not there yet");
}

#[test]
fn a_priority_overtakes_by_its_head_start_and_no_further() {
    let head_start = AGING.as_millis() as u64;
    // The tag determines the priority: tag 3 has the lowest and tag 5 the highest, two steps above
    // it.
    let taken = |later: u64| {
        let mut made = Made::new();
        made.enqueued_at(RANKED, 3, 1024, 100);
        made.enqueued_at(RANKED, 5, 2048, 100 + later);
        made.taken(RANKED, 3_000, &[(2048, 0, 5)]);
        made.taken(RANKED, 3_100, &[(1024, 0, 3)]);
        made.rules()
    };
    assert_eq!(taken(head_start), NONE);
    assert_eq!(taken(2 * head_start + head_start / 16), NONE, "to within a sixteenth");
    assert_eq!(taken(3 * head_start), [OVERTOOK]);
    let mut made = Made::new();
    made.enqueued_at(RANKED, 3, 1024, 100);
    made.enqueued_at(RANKED, 5, 2048, 100 + head_start);
    made.taken(RANKED, 3_000, &[(1024, 0, 3)]);
    made.taken(RANKED, 3_100, &[(2048, 0, 5)]);
    assert_eq!(made.rules(), [OVERTOOK], "no head start at all");
}
