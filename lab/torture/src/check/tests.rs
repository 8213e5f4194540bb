//! Histories made by hand: one that is clean, and for each rule one that breaks it.

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

pub use made::{Made, micros};

use crate::{history::Verb, plan};

/// Returns a clean history, in which leases expire, and calls fail or have an unknown outcome.
pub fn clean() -> Made {
    let mut made = Made::new();
    // Acknowledged, after a lease that ran out.
    made.enqueued(plan::LEAST, 1, 1024);
    made.leased(plan::LEAST, 100, &[(1024, 1, 1)]);
    made.leased(plan::LEAST, 2_200, &[(1024, 2, 1)]);
    made.refused(Verb::Ack, plan::LEAST, 2_300, (1024, 1));
    made.ended(Verb::Ack, plan::LEAST, 2_400, (1024, 2));
    // Released, given again at once, archived.
    made.enqueued(plan::LEAST, 2, 2048);
    made.leased(plan::LEAST, 100, &[(2048, 1, 2)]);
    made.ended(Verb::Release, plan::LEAST, 150, (2048, 1));
    made.leased(plan::LEAST, 200, &[(2048, 2, 2)]);
    made.ended(Verb::Archive, plan::LEAST, 250, (2048, 2));
    made.archived(plan::LEAST, 2048, 2, 1);
    // Buried, replayed, given again, and acknowledged by a process that died before the answer.
    made.enqueued(plan::LEAST, 3, 3072);
    made.leased(plan::LEAST, 100, &[(3072, 1, 3)]);
    made.ended(Verb::Bury, plan::LEAST, 150, (3072, 1));
    made.ended(Verb::Replay, plan::LEAST, 200, (3072, 0));
    made.leased(plan::LEAST, 300, &[(3072, 2, 3)]);
    made.unknown(Verb::Ack, plan::LEAST, 400, (3072, 2));
    // A dead letter.
    made.enqueued(plan::LEAST, 4, 4096);
    made.leased(plan::LEAST, 100, &[(4096, 1, 4)]);
    made.ended(Verb::Bury, plan::LEAST, 150, (4096, 1));
    made.dead(plan::LEAST, 4096, 4, 1);
    // Unknown enqueues: one came, one did not. A failed one did not.
    made.enqueue_unknown(plan::ONCE, 5);
    made.enqueue_unknown(plan::ONCE, 6);
    made.enqueue_failed(plan::ONCE, 7);
    made.taken(plan::ONCE, 100, &[(5120, 0, 5)]);
    // One message that an unknown take took.
    made.enqueued(plan::ONCE, 8, 6144);
    made.take_unknown(plan::ONCE, 200, 10);
    // Effects: taken; leased and acknowledged; rolled back and taken again.
    made.enqueued(plan::EXACT, 9, 7168);
    made.entered(Verb::TakeIn, 100, (7168, 0, 9));
    made.enqueued(plan::EXACT, 10, 8192);
    made.leased(plan::EXACT, 100, &[(8192, 1, 10)]);
    made.entered(Verb::AckIn, 200, (8192, 1, 10));
    made.enqueued(plan::EXACT, 11, 9216);
    made.rolled_back(Verb::TakeIn, 100, (9216, 0, 11));
    made.entered(Verb::TakeIn, 300, (9216, 0, 11));
    // In order, and noticed by the listener.
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
