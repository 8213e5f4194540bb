use clap::ValueEnum;

use super::made::Made;
use crate::{
    history::{Call, Op, Outcome, Verb},
    plan::{self, LEAST, ONCE, WORKS},
};

const NONE: [&str; 0] = [];
const NEVER: &str = "a kind of call never succeeded";

/// Returns the run of a minute in which schedules tick, and no call is made.
fn ticked() -> Made {
    let mut made = Made::new();
    for nr in 0..plan::SCHEDULES {
        (1_000..1_060).for_each(|second| made.ticked(nr, second));
    }
    made
}

/// Adds calls of which each has the outcome that `end` gives it.
fn called(made: &mut Made, verb: Verb, queue: &str, count: u64, end: impl Fn(&mut Op)) {
    for nr in 0..count {
        end(made.op(Call::new(verb, queue), 100 + nr * 50));
    }
}

fn fails(op: &mut Op) {
    op.outcome = Outcome::Failed;
}

/// Returns the cases of the rule. No other rule may be broken.
fn cases(made: Made) -> Vec<String> {
    let findings = made.found_in_run();
    assert!(findings.iter().all(|finding| finding.rule == NEVER), "{findings:?}");
    findings.into_iter().flat_map(|finding| finding.cases).collect()
}

#[test]
fn verb_that_always_fails_is_found() {
    for verb in [Verb::Prune, Verb::HandOver, Verb::Pause, Verb::Limit, Verb::ReleasePartition, Verb::DeadLetters] {
        let mut made = ticked();
        called(&mut made, verb, LEAST, 12, fails);
        let found = cases(made);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&format!("made: {verb:?} of any queue, 12 calls, ")), "{found:?}");
    }
    let mut made = ticked();
    called(&mut made, Verb::Prune, LEAST, 12, fails);
    called(&mut made, Verb::Prune, LEAST, 1, |_| {});
    assert_eq!(cases(made), NONE);
    let mut made = ticked();
    called(&mut made, Verb::Prune, LEAST, 5, fails);
    assert_eq!(cases(made), NONE, "a few calls may fail by chance");
    let mut made = ticked();
    called(&mut made, Verb::Prune, LEAST, 50, |op| op.outcome = Outcome::Dropped);
    assert_eq!(cases(made), NONE, "their callers dropped them");
}

#[test]
fn verb_that_always_fails_in_one_queue_or_role_is_found() {
    let mut made = ticked();
    called(&mut made, Verb::Stats, LEAST, 12, fails);
    called(&mut made, Verb::Stats, WORKS, 12, |_| {});
    let found = cases(made);
    assert!(found.len() == 1 && found[0].starts_with("made: Stats of least, 12 calls, "), "{found:?}");
    let mut made = ticked();
    called(&mut made, Verb::Stats, LEAST, 12, fails);
    called(&mut made, Verb::Stats, LEAST, 12, |op| op.process = "sql-0.0".to_owned());
    let found = cases(made);
    assert!(found.len() == 1 && found[0].starts_with("made: Stats of any queue, 12 calls, "), "{found:?}");
}

#[test]
fn verb_that_is_always_refused_is_found() {
    let refused = |lost: bool| {
        let mut made = ticked();
        for nr in 1..=12 {
            made.enqueued(LEAST, nr, nr as i64 * 1024);
            made.leased(LEAST, 100, &[(nr as i64 * 1024, 1, nr)]);
            // By then, the leases are over.
            made.extended(LEAST, 2_500, (nr as i64 * 1024, 1), 0);
            let extension = made.evidence.ops.last_mut().expect("just made");
            extension.lost = if lost { vec![nr as i64 * 1024] } else { Vec::new() };
            made.waiting(LEAST, nr as i64 * 1024, nr);
        }
        made.found_in_run().into_iter().filter(|finding| finding.rule == NEVER).count()
    };
    assert_eq!((refused(true), refused(false)), (1, 0));
}

#[test]
fn verb_that_a_long_run_never_calls_is_found() {
    let run = |seconds: u64, without: Verb| {
        let mut made = ticked();
        made.evidence.about.seconds = seconds;
        for verb in Verb::value_variants().iter().filter(|verb| **verb != without) {
            called(&mut made, *verb, ONCE, 1, |_| {});
        }
        cases(made)
    };
    for verb in Verb::value_variants() {
        assert_eq!(run(600, *verb), [format!("{verb:?}: no success in 600 s")]);
    }
    assert_eq!(run(90, Verb::Replay), ["Replay: no success in 90 s"]);
    assert_eq!(run(60, Verb::Replay), NONE, "too short to tell");
    assert_eq!(run(90, Verb::Prune), NONE, "which is rarely called");
}
