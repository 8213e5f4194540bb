//! Tests with manually written histories: a clean history, and for each rule a history that breaks
//! it.

mod table;
mod turns;

use std::collections::BTreeMap;

use super::{
    judge::{EXACT, against},
    rules::RivalRule,
    turns::Done,
    verdict::Seen,
};
use crate::{
    check::tests::Made,
    history::{Call, Outcome, Verb},
    tables::Entry,
};

const WORK: &str = "work";
const LEASE: u64 = 2_000;

/// The history of a rival: calls like Trunkline's own, handlers, and the record of its tables.
struct Theirs {
    made: Made,
    done: Vec<Done>,
}

impl Theirs {
    /// Returns a history with one enqueued message.
    fn new() -> Self {
        let mut made = Made::new();
        made.enqueued(WORK, 1, 1024);
        Self { made, done: Vec::new() }
    }

    /// Adds a handler. The three milliseconds are the times at which the message was delivered, its
    /// work began and its work ended. A handler with an unknown outcome never ended.
    fn handled(&mut self, attempt: i32, [since, began, ended]: [u64; 3], outcome: Outcome) -> &mut Self {
        let since = crate::check::tests::micros(since);
        let call = Call { since, ..Call::new(Verb::Handle, WORK).named(vec![(1024, attempt)]).tags(vec![1]).ms(LEASE) };
        let op = self.made.op(call, began);
        (op.ended, op.outcome) = (crate::check::tests::micros(ended), outcome);
        if outcome == Outcome::Unknown {
            op.ended = u64::MAX;
        }
        self
    }

    fn done(&mut self, ms: u64) -> &mut Self {
        self.done.push(Done { queue: WORK.to_owned(), id: 1024, at: crate::check::tests::micros(ms) });
        self
    }

    fn leased(&mut self, ms: u64, attempt: i32) -> &mut Self {
        self.made.leased(WORK, ms, &[(1024, attempt, 1)]);
        self
    }

    fn seen(&mut self) -> BTreeMap<RivalRule, Seen> {
        self.made.evidence.ops.sort_by_key(|op| op.began);
        against(&self.made.evidence, &self.done)
    }

    fn broken(&mut self) -> Vec<RivalRule> {
        self.seen().into_iter().filter(|(_, seen)| seen.count > 0).map(|(rule, _)| rule).collect()
    }
}

const NONE: [RivalRule; 0] = [];

#[test]
fn a_clean_history_is_found_clean() {
    // The first worker is late, and its end changes nothing. The next worker completes the message.
    let mut theirs = Theirs::new();
    theirs.handled(1, [100, 110, 3_000], Outcome::Ok).handled(2, [2_200, 2_210, 3_500], Outcome::Ok).done(3_510);
    assert_eq!(theirs.broken(), NONE);
    // The same happens through calls.
    let mut theirs = Theirs::new();
    theirs.leased(100, 1).leased(2_200, 2);
    theirs.made.refused(Verb::Ack, WORK, 3_000, (1024, 1));
    theirs.made.ended(Verb::Ack, WORK, 3_500, (1024, 2));
    assert_eq!(theirs.broken(), NONE);
    // The first handler is killed, the second fails, and the third succeeds.
    let mut theirs = Theirs::new();
    theirs.handled(1, [100, 110, 0], Outcome::Unknown).handled(2, [2_200, 2_210, 2_300], Outcome::Failed);
    theirs.handled(3, [2_400, 2_410, 2_500], Outcome::Ok);
    assert_eq!(theirs.broken(), NONE);
}

#[test]
fn a_message_that_vanished_is_found() {
    assert_eq!(Theirs::new().broken(), [RivalRule::Stored]);
    let mut theirs = Theirs::new();
    theirs.handled(1, [100, 110, 0], Outcome::Unknown);
    assert_eq!(theirs.broken(), [RivalRule::Stored], "its handler never returned");
    theirs.made.waiting(WORK, 1024, 1);
    assert_eq!(theirs.broken(), [RivalRule::Back], "it is there, and no worker got it");
}

#[test]
fn a_failed_message_that_is_not_kept_is_found() {
    let mut theirs = Theirs::new();
    theirs.handled(1, [100, 110, 200], Outcome::Failed);
    assert_eq!(theirs.broken(), [RivalRule::Dead]);
    theirs.made.dead(WORK, 1024, 1, 5);
    assert_eq!(theirs.broken(), NONE);
}

#[test]
fn unknown_messages_and_changed_ids_are_found() {
    let mut theirs = Theirs::new();
    theirs.handled(1, [100, 110, 200], Outcome::Ok);
    theirs.made.leased(WORK, 300, &[(2048, 1, 77)]);
    assert_eq!(theirs.broken(), [RivalRule::Nowhere]);
    let mut theirs = Theirs::new();
    theirs.handled(1, [100, 110, 200], Outcome::Ok);
    theirs.made.leased(WORK, 300, &[(2048, 1, 1)]);
    assert_eq!(theirs.broken(), [RivalRule::Ids]);
}

#[test]
fn a_message_that_two_have_at_a_time_is_found() {
    let mut theirs = Theirs::new();
    theirs.handled(1, [100, 110, 3_000], Outcome::Ok).handled(2, [1_500, 1_510, 1_600], Outcome::Ok);
    assert_eq!(theirs.broken(), [RivalRule::Early]);
    let mut theirs = Theirs::new();
    theirs.handled(1, [100, 110, 500], Outcome::Failed).handled(2, [1_500, 1_510, 1_600], Outcome::Ok);
    assert_eq!(theirs.broken(), NONE, "the first had failed");
    let mut theirs = Theirs::new();
    theirs.handled(1, [100, 110, 3_000], Outcome::Ok).handled(1, [2_500, 2_510, 2_600], Outcome::Ok);
    assert_eq!(theirs.broken(), [RivalRule::Early], "one lease twice");
}

#[test]
fn an_extension_counts_where_it_came_in_time() {
    let extended = |at| {
        let mut theirs = Theirs::new();
        theirs.leased(100, 1);
        theirs.made.extended(WORK, at, (1024, 1), LEASE);
        theirs.leased(2_200, 2);
        theirs.made.ended(Verb::Ack, WORK, 2_300, (1024, 2));
        theirs.broken()
    };
    assert_eq!(extended(1_500), [RivalRule::Early]);
    assert_eq!(extended(2_150), NONE, "the lease was over");
}

#[test]
fn end_after_an_expired_lease_is_found() {
    let mut theirs = Theirs::new();
    theirs.handled(1, [100, 110, 3_000], Outcome::Ok).handled(2, [2_200, 2_210, 3_500], Outcome::Ok).done(3_010);
    assert_eq!(theirs.broken(), [RivalRule::Fence]);
    let mut theirs = Theirs::new();
    theirs.leased(100, 1).leased(2_200, 2);
    theirs.made.ended(Verb::Ack, WORK, 3_000, (1024, 1));
    theirs.made.ended(Verb::Ack, WORK, 3_500, (1024, 2));
    assert_eq!(theirs.broken(), [RivalRule::Fence]);
    let mut theirs = Theirs::new();
    theirs.leased(100, 1).leased(2_200, 2);
    theirs.made.ended(Verb::Ack, WORK, 4_300, (1024, 1));
    assert_eq!(theirs.broken(), NONE, "the other's lease was over as well");
}

#[test]
fn a_failure_that_gives_away_what_another_holds_is_found() {
    let given = |at| {
        let mut theirs = Theirs::new();
        theirs.handled(1, [100, 110, 3_000], Outcome::Failed).handled(2, [2_200, 2_210, 4_000], Outcome::Ok);
        theirs.handled(3, [at, at + 10, at + 20], Outcome::Ok);
        theirs.broken()
    };
    assert_eq!(given(3_100), [RivalRule::Fence]);
    assert_eq!(given(2_900), [RivalRule::Early], "before the failure");
    assert_eq!(given(4_300), NONE, "the holder's lease was over as well");
}

#[test]
fn holder_whose_ack_is_refused_is_found() {
    let mut theirs = Theirs::new();
    theirs.leased(100, 1);
    theirs.made.refused(Verb::Ack, WORK, 1_000, (1024, 1));
    theirs.leased(2_200, 2);
    theirs.made.ended(Verb::Ack, WORK, 2_500, (1024, 2));
    assert_eq!(theirs.broken(), [RivalRule::Refused]);
}

#[test]
fn a_message_that_was_done_and_comes_again_is_found() {
    let mut theirs = Theirs::new();
    theirs.handled(1, [100, 110, 200], Outcome::Ok).done(210).handled(2, [2_200, 2_210, 2_300], Outcome::Ok);
    assert_eq!(theirs.broken(), [RivalRule::Again]);
    let mut theirs = Theirs::new();
    theirs.leased(100, 1);
    theirs.made.ended(Verb::Ack, WORK, 200, (1024, 1));
    theirs.leased(2_200, 2);
    assert_eq!(theirs.broken(), [RivalRule::Again]);
}

#[test]
fn too_many_attempts_are_found() {
    let mut theirs = Theirs::new();
    for attempt in 1..=6 {
        let at = 3_000 * attempt as u64;
        theirs.handled(attempt, [at, at + 10, at + 20], Outcome::Failed);
    }
    theirs.made.dead(WORK, 1024, 1, 6);
    assert_eq!(theirs.broken(), [RivalRule::Attempts]);
}

#[test]
fn an_effect_that_is_missing_or_double_is_found() {
    let exact = |entries: usize| {
        let mut theirs = Theirs::new();
        theirs.handled(1, [100, 110, 200], Outcome::Ok);
        theirs.made.enqueued(EXACT, 2, 2048);
        theirs.made.ended(Verb::AckIn, EXACT, 300, (2048, 1));
        for nr in 0..entries {
            theirs.made.evidence.tables.ledger.push(Entry { tag: 2, amount: 0, op: format!("made-0.0:{nr}") });
        }
        theirs.broken()
    };
    assert_eq!(exact(1), NONE);
    assert_eq!(exact(0), [RivalRule::Effects]);
    assert_eq!(exact(2), [RivalRule::Effects]);
}

#[test]
fn a_process_that_ended_by_itself_is_found() {
    let mut theirs = Theirs::new();
    theirs.handled(1, [100, 110, 200], Outcome::Ok);
    theirs.made.evidence.about.misbehaved.push("consume-1.0 ended by itself: exit status: 1".to_owned());
    assert_eq!(theirs.broken(), [RivalRule::GoesOn]);
}
