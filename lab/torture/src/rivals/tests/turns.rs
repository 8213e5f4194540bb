use crate::{
    check::tests::{Made, micros},
    history::{Call, Micros, Outcome, Verb},
    rivals::{
        translate::{number, translate},
        turns::{self, holder},
    },
};

fn handle(made: &mut Made, since: Micros, outcome: Outcome) {
    let call = Call { since, ..Call::new(Verb::Handle, "work").named(vec![(7, 1)]).tags(vec![3]).ms(2_000) };
    let op = made.op(call, 100);
    op.outcome = outcome;
    if outcome == Outcome::Unknown {
        op.ended = Micros::MAX;
    }
}

#[test]
fn handler_becomes_lease_and_end_of_unknown_outcome() {
    let ends = [(Outcome::Ok, Some(Verb::Ack)), (Outcome::Failed, Some(Verb::Retry)), (Outcome::Unknown, None)];
    for (outcome, end) in ends {
        let mut made = Made::new();
        handle(&mut made, micros(90), outcome);
        let ops = translate(&made.evidence.ops);
        let (lease, then) = (&ops[0], ops.get(1));
        assert_eq!((lease.call.verb, lease.began, lease.ended), (Verb::Lease, micros(90), micros(100)));
        assert_eq!((&*lease.got, lease.call.ms, lease.outcome), (&[(7, 1, 3)][..], 2_000, Outcome::Ok));
        assert_eq!(then.map(|op| (op.call.verb, op.outcome)), end.map(|verb| (verb, Outcome::Unknown)));
        assert!(then.is_none_or(|op| op.began == micros(110) && op.call.named == [(7, 1)]));
    }
}

#[test]
fn deliveries_without_numbers_get_them_by_time() {
    let mut made = Made::new();
    for since in [300, 200] {
        let call = Call { since: micros(since), ..Call::new(Verb::Handle, "work").named(vec![(7, 0)]).tags(vec![3]) };
        made.op(call, 400);
    }
    handle(&mut made, micros(90), Outcome::Ok);
    number(&mut made.evidence.ops);
    let attempts: Vec<i32> = made.evidence.ops.iter().map(|op| op.call.named[0].1).collect();
    assert_eq!(attempts, [2, 1, 1], "the third has one of its own");
}

#[test]
fn lease_with_unknown_beginning_proves_no_length() {
    let mut made = Made::new();
    handle(&mut made, 0, Outcome::Ok);
    assert_eq!(translate(&made.evidence.ops)[0].call.ms, 0);
    assert_eq!(turns::of(&made.evidence.ops)[&("work".to_owned(), 7)][0].until, None);
}

#[test]
fn message_is_held_until_its_end_or_lease_expiry() {
    let mut made = Made::new();
    made.leased("work", 100, &[(7, 1, 3), (8, 1, 4)]);
    made.ended(Verb::Ack, "work", 500, (7, 1));
    let turns = turns::of(&made.evidence.ops);
    let held = |id: i64, ms: u64| holder(&turns[&("work".to_owned(), id)], micros(ms)).is_some();
    assert_eq!([held(7, 105), held(7, 120), held(7, 499), held(7, 501)], [false, true, true, false]);
    assert_eq!([held(8, 501), held(8, 2_099), held(8, 2_101)], [true, true, false]);
    assert_eq!(turns::late(&turns), 0);
}

#[test]
fn late_and_contested_ends_are_counted() {
    let mut made = Made::new();
    made.leased("work", 100, &[(7, 1, 3)]);
    made.leased("work", 2_200, &[(7, 2, 3)]);
    made.refused(Verb::Ack, "work", 2_500, (7, 1));
    made.ended(Verb::Ack, "work", 2_600, (7, 2));
    let turns = turns::of(&made.evidence.ops);
    assert_eq!((turns::late(&turns), turns::contested(&turns)), (1, 1));
    made.leased("work", 5_000, &[(7, 3, 3)]);
    made.leased("work", 7_100, &[(7, 4, 3)]);
    made.ended(Verb::Ack, "work", 7_200, (7, 4));
    made.refused(Verb::Ack, "work", 7_300, (7, 3));
    let turns = turns::of(&made.evidence.ops);
    assert_eq!((turns::late(&turns), turns::contested(&turns)), (2, 1), "no worker had it when the second ended");
}
