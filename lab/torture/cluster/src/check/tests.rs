//! Tests that the checker finds each violation, and accepts everything that the contract allows.

use std::time::Instant;

use trunkline::Lease;

use super::{Tables, check};
use crate::history::{Acked, Delivery, History, Told};

/// Returns the violations in one queue's history. The arguments are the payload and outcome of each
/// enqueue, the payload, id and attempt of each delivery, and the acknowledgements.
fn of(queue: &str, sent: &[(i64, Told)], got: &[(i64, i64, i32)], acked: &[(i64, i32, Told)]) -> Vec<String> {
    let history = History::default();
    for (payload, told) in sent {
        history.sent(queue, *payload, *told);
    }
    let mut ledger = Vec::new();
    for (payload, id, attempt) in got {
        let (lease, at) = (Lease { id: *id, attempt: *attempt }, Instant::now());
        history.of(queue).delivered.push(Delivery { payload: *payload, lease, at });
        if queue == "ledger" {
            ledger.push((*payload, *id));
        }
    }
    for (id, attempt, told) in acked {
        history.of(queue).acked.push(Acked { lease: Lease { id: *id, attempt: *attempt }, told: *told });
    }
    let promises = ledger.iter().map(|(payload, _)| *payload).filter(|payload| *payload < 0).collect();
    check(&history, &Tables { ledger, promises }, 1).violations
}

#[track_caller]
fn violates(found: &[String], what: &str) {
    assert!(found.len() == 1 && found[0].contains(what), "{found:#?}");
}

const OK: Told = Told::Ok(1024);

#[test]
fn allowed_outcomes_are_no_violation() {
    let unknown = [(1, OK), (2, Told::Unknown), (3, Told::Unknown), (4, Told::Failed)];
    for queue in ["work", "acked", "ledger", "taken"] {
        let found = of(queue, &unknown, &[(1, 1024, 1), (2, 2048, 1)], &[(1024, 1, OK)]);
        assert_eq!(found, Vec::<String>::new(), "{queue}");
    }
    let again = of("acked", &[(1, OK)], &[(1, 1024, 1), (1, 1024, 2)], &[(1024, 1, Told::Unknown), (1024, 2, OK)]);
    assert_eq!(again, Vec::<String>::new(), "it came again, because the outcome of its acknowledgement was unknown");
    let lost = of("taken", &[(1, OK)], &[], &[]);
    assert_eq!(lost, Vec::<String>::new(), "it was on its way");
}

#[test]
fn acknowledged_send_that_never_arrives_is_lost() {
    for queue in ["work", "acked"] {
        violates(&of(queue, &[(1, OK)], &[], &[]), "acknowledged to its producer, and lost");
    }
    let many: Vec<(i64, Told)> = (0..41).map(|payload| (payload, Told::Ok(payload * 1024))).collect();
    violates(&of("taken", &many, &[], &[]), "more than can have been on their way");
    let found = of("ledger", &[(1, OK)], &[], &[]);
    assert!(found.iter().any(|found| found.contains("and lost")), "{found:?}");
    assert!(found.iter().any(|found| found.contains("the sum is 0, and should be 1")), "{found:?}");
}

#[test]
fn delivered_message_was_sent_and_did_not_fail() {
    violates(&of("work", &[(1, Told::Failed)], &[(1, 1024, 1)], &[]), "told to have failed");
    violates(&of("taken", &[], &[(1, 1024, 1)], &[]), "told to have failed");
}

#[test]
fn ids_are_reported_once_and_stay() {
    let twice = of("work", &[(1, OK), (2, OK)], &[(1, 1024, 1), (2, 1024, 2)], &[]);
    violates(&twice, "ids that two enqueues were told");
    violates(&of("work", &[(1, OK)], &[(1, 2048, 1)], &[]), "an id that its enqueue did not return");
}

#[test]
fn nothing_comes_twice_where_once_is_promised() {
    violates(&of("taken", &[(1, OK)], &[(1, 1024, 0), (1, 1024, 0)], &[]), "came more than once");
    let twice = of("ledger", &[(1, OK)], &[(1, 1024, 0), (1, 1024, 0)], &[]);
    assert!(twice.iter().any(|found| found.contains("came more than once")), "{twice:?}");
    assert!(twice.iter().any(|found| found.contains("the sum is 2, and should be 1")), "{twice:?}");
}

#[test]
fn second_lease_of_an_attempt_or_after_ack_is_found() {
    violates(&of("work", &[(1, OK)], &[(1, 1024, 1), (1, 1024, 1)], &[]), "deliveries of the same attempt");
    let after = of("acked", &[(1, OK)], &[(1, 1024, 1), (1, 1024, 2)], &[(1024, 1, OK)]);
    violates(&after, "came after it was acknowledged");
    let twice = of("acked", &[(1, OK)], &[(1, 1024, 1)], &[(1024, 1, OK), (1024, 1, OK)]);
    violates(&twice, "acknowledged twice");
}

#[test]
fn a_row_and_its_message_are_there_together() {
    let history = History::default();
    history.sent("ledger", -1, OK);
    let found = check(&history, &Tables { ledger: Vec::new(), promises: vec![-1] }, 1).violations;
    assert!(found.iter().any(|found| found.contains("and not the message of its transaction")), "{found:?}");
    let found = check(&history, &Tables { ledger: vec![(-1, 1024)], promises: Vec::new() }, 1).violations;
    assert!(found.iter().any(|found| found.contains("and not the row of its transaction")), "{found:?}");
}
