//! Tests with manually written histories: a clean history, and for each rule a history that breaks
//! it.

pub mod made;
mod messages;
mod leases;
mod effects;
mod order;
mod keys;
mod unique;
mod limits;
mod pauses;
mod growth;
mod ticks;
mod successes;

pub use made::{Made, micros};

use crate::{history::Verb, plan};

/// Returns a clean history with expired leases, failed calls, and calls with an unknown outcome.
pub fn clean() -> Made {
    let mut made = Made::new();
    // This message is acknowledged, after a lease that expired.
    made.enqueued(plan::LEAST, 1, 1024);
    made.leased(plan::LEAST, 100, &[(1024, 1, 1)]);
    made.leased(plan::LEAST, 2_200, &[(1024, 2, 1)]);
    made.refused(Verb::Ack, plan::LEAST, 2_300, (1024, 1));
    made.ended(Verb::Ack, plan::LEAST, 2_400, (1024, 2));
    // This message is released, leased again at once, and archived.
    made.enqueued(plan::LEAST, 2, 2048);
    made.leased(plan::LEAST, 100, &[(2048, 1, 2)]);
    made.ended(Verb::Release, plan::LEAST, 150, (2048, 1));
    made.leased(plan::LEAST, 200, &[(2048, 2, 2)]);
    made.ended(Verb::Archive, plan::LEAST, 250, (2048, 2));
    made.archived(plan::LEAST, 2048, 2, 1);
    // This message is buried, replayed, leased again, and acknowledged by a process that died
    // before the answer.
    made.enqueued(plan::LEAST, 3, 3072);
    made.leased(plan::LEAST, 100, &[(3072, 1, 3)]);
    made.ended(Verb::Bury, plan::LEAST, 150, (3072, 1));
    made.ended(Verb::Replay, plan::LEAST, 200, (3072, 0));
    made.leased(plan::LEAST, 300, &[(3072, 2, 3)]);
    made.unknown(Verb::Ack, plan::LEAST, 400, (3072, 2));
    // This message is a dead letter.
    made.enqueued(plan::LEAST, 4, 4096);
    made.leased(plan::LEAST, 100, &[(4096, 1, 4)]);
    made.ended(Verb::Bury, plan::LEAST, 150, (4096, 1));
    made.dead(plan::LEAST, 4096, 4, 1);
    // Two enqueues have an unknown outcome: the first message arrives, the second does not. The
    // message of a failed enqueue does not arrive.
    made.enqueue_unknown(plan::ONCE, 5);
    made.enqueue_unknown(plan::ONCE, 6);
    made.enqueue_failed(plan::ONCE, 7);
    made.taken(plan::ONCE, 100, &[(5120, 0, 5)]);
    // A take with an unknown outcome took one message.
    made.enqueued(plan::ONCE, 8, 6144);
    made.take_unknown(plan::ONCE, 200, 10);
    // The effects of three messages: the first is taken, the second is leased and acknowledged, and
    // the third is rolled back and taken again.
    made.enqueued(plan::EXACT, 9, 7168);
    made.entered(Verb::TakeIn, 100, (7168, 0, 9));
    made.enqueued(plan::EXACT, 10, 8192);
    made.leased(plan::EXACT, 100, &[(8192, 1, 10)]);
    made.entered(Verb::AckIn, 200, (8192, 1, 10));
    made.enqueued(plan::EXACT, 11, 9216);
    made.rolled_back(Verb::TakeIn, 100, (9216, 0, 11));
    made.entered(Verb::TakeIn, 300, (9216, 0, 11));
    // These messages arrive in order, and the listener receives its message in time.
    made.enqueued(plan::FIFO, 12, 10240);
    made.enqueued(plan::FIFO, 13, 11264);
    made.taken(plan::FIFO, 500, &[(10240, 0, 12), (11264, 0, 13)]);
    made.enqueued_at(plan::BELL, 14, 12288, 1_000);
    made.listened(plan::BELL, 500, 1_100, &[(12288, 0, 14)]);
    made
}

#[test]
fn a_clean_history_is_found_clean() {
    assert_eq!(clean().rules(), Vec::<&str>::new());
}
