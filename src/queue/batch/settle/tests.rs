//! Tests how calls that end leases share statements.

use super::*;

fn join(settler: &SettleBatcher, request: SettleRequest) -> Option<SettlePermit> {
    settler.join(|unsettled| unsettled.add(request))
}

fn request(ending: Ending, ids: &[i64]) -> (SettleRequest, oneshot::Receiver<Result<usize>>) {
    let (done, answer) = oneshot::channel();
    (SettleRequest { ending, leases: ids.iter().map(|id| Lease { id: *id, attempt: 1 }).collect(), done }, answer)
}

#[test]
fn calls_share_a_statement_and_each_gets_its_own_answer() {
    let settler = SettleBatcher::default();
    let (one, mut first) = request(Ending::Ack, &[1, 2, 3]);
    let (two, mut second) = request(Ending::Ack, &[4, 9]);
    let mut settling = join(&settler, one).expect("no statement runs yet");
    assert!(join(&settler, two).is_none());
    let mut settlements = settling.next().expect("work");
    assert_eq!(settlements.len(), 1);
    let settlement = settlements.remove(0);
    assert_eq!((&*settlement.ranges.ids, &*settlement.ranges.sizes), (&[1, 9][..], &[4, 1][..]));
    settlement.answer("q", Ok(vec![Settled { id: 1, size: 4, attempt: 1, dead: false }]));
    assert!(first.try_recv().expect("answered").is_ok());
    assert_eq!(second.try_recv().expect("answered").expect_err("9 is lost").lost_ids(), [9]);
    assert!(settling.next().is_none());
    drop(settling);
    assert!(join(&settler, request(Ending::Ack, &[7]).0).is_some(), "the turn is over");
}

#[test]
fn lease_ended_by_two_calls_is_lost_to_the_second() {
    let settler = SettleBatcher::default();
    let (one, mut first) = request(Ending::Ack, &[1, 2, 2]);
    let (two, mut second) = request(Ending::Ack, &[3, 2]);
    let mut settling = join(&settler, one).expect("no statement runs yet");
    join(&settler, two);
    let settlement = settling.next().expect("work").remove(0);
    settlement.answer("q", Ok(vec![Settled { id: 1, size: 3, attempt: 1, dead: false }]));
    assert!(first.try_recv().expect("answered").is_ok());
    assert_eq!(second.try_recv().expect("answered").expect_err("2 was ended").lost_ids(), [2]);
}

#[test]
fn a_lease_may_be_extended_by_two_calls() {
    let settler = SettleBatcher::default();
    let (one, mut first) = request(Ending::Extend(9.0), &[1]);
    let (two, mut second) = request(Ending::Extend(9.0), &[1]);
    let mut settling = join(&settler, one).expect("no statement runs yet");
    join(&settler, two);
    settling.next().expect("work").remove(0).answer("q", Ok(vec![Settled { id: 1, size: 1, attempt: 1, dead: false }]));
    assert!(first.try_recv().expect("answered").is_ok() && second.try_recv().expect("answered").is_ok());
}

#[test]
fn dropped_settler_answers_its_callers_and_another_can_start() {
    let settler = SettleBatcher::default();
    let (one, mut first) = request(Ending::Ack, &[1]);
    let (two, mut second) = request(Ending::Ack, &[2]);
    let mut settling = join(&settler, one).expect("no statement runs yet");
    let underway = settling.next().expect("work");
    assert!(join(&settler, two).is_none());
    drop((underway, settling));
    assert!(first.try_recv().is_err(), "it gets no answer, and its caller an error");
    let unsent = second.try_recv().expect("answered").expect_err("not settled");
    assert!(!unsent.is_outcome_unknown(), "{unsent}");
    assert!(join(&settler, request(Ending::Ack, &[3]).0).is_some());
}

#[test]
fn calls_of_a_shared_statement_can_be_settled_alone() {
    let settler = SettleBatcher::default();
    let mut settling = join(&settler, request(Ending::Bury("a".into()), &[1, 2]).0).expect("no statement runs yet");
    join(&settler, request(Ending::Bury("b".into()), &[3]).0);
    let shared = settling.next().expect("work").remove(0);
    assert_eq!(shared.calls(), 2);
    let apart: Vec<_> = shared.apart().into_iter().map(|alone| (alone.ranges.ids, alone.errors)).collect();
    assert_eq!(apart, [(vec![1], vec!["a".to_owned()]), (vec![3], vec!["b".to_owned()])]);
}

#[test]
fn neighbours_with_other_errors_stay_apart() {
    let settler = SettleBatcher::default();
    let mut settling =
        join(&settler, request(Ending::Retry(1.0, "a".into()), &[1, 2]).0).expect("no statement runs yet");
    join(&settler, request(Ending::Retry(2.0, "b".into()), &[3]).0);
    let settlement = settling.next().expect("work").remove(0);
    assert_eq!(settlement.ranges.ids, [1, 3]);
    assert_eq!(settlement.delays, [Some(1.0), Some(2.0)]);
    assert_eq!(settlement.errors, ["a", "b"]);
}

#[test]
fn each_call_learns_how_many_of_its_messages_died() {
    let settler = SettleBatcher::default();
    let (one, mut first) = request(Ending::Retry(1.0, "a".into()), &[1, 2]);
    let (two, mut second) = request(Ending::Retry(1.0, "a".into()), &[3]);
    let mut settling = join(&settler, one).expect("no statement runs yet");
    join(&settler, two);
    let settled = [(1, 1, false), (2, 2, true)].map(|(id, size, dead)| Settled { id, size, attempt: 1, dead });
    settling.next().expect("work").remove(0).answer("q", Ok(settled.to_vec()));
    let counts = [&mut first, &mut second].map(|answer| answer.try_recv().expect("answered").expect("settled"));
    assert_eq!(counts, [1, 1]);
}
