//! Tests how enqueues share rows and inserts.

use std::{pin::pin, time::Instant};

use futures_util::FutureExt;

use super::*;

const NEW: New<'static> = New { due: 0.0, lane: 0, key: None, element: &[], metadata: &[], claim: None, columns: None };

fn join(coalescer: &Coalescer, delay: f64, bytes: usize) -> Option<Joined> {
    coalescer.try_join(New { due: delay, element: &vec![0; bytes], ..NEW })
}

fn permit(coalescer: &Coalescer, bytes: usize) -> InsertPermit {
    join(coalescer, 0.0, bytes).and_then(|joined| joined.permit).expect("no insert runs yet")
}

/// Returns the number of waiting bytes, of running inserts, and of messages in those inserts.
/// Checks that the waiting messages are counted.
fn left(coalescer: &Coalescer) -> (usize, usize, usize) {
    let state = coalescer.batcher.state();
    assert_eq!(state.waiting.messages, state.waiting.batches.iter().map(|batch| batch.count).sum::<usize>());
    (state.waiting.bytes, state.running.statements, state.running.messages)
}

/// Returns the number of messages in the next insert.
fn count(permit: &mut InsertPermit) -> usize {
    permit.next().iter().flatten().map(|batch| batch.count).sum()
}

fn outcome(joined: &Joined) -> &Error {
    match joined.receipt.outcome.get() {
        Some(Insertion::Failed(error)) => error,
        _ => panic!("not answered"),
    }
}

#[test]
fn batch_ends_at_its_count_bytes_or_another_delay() {
    let coalescer = Coalescer::new(3, 1, 8);
    let mut permit = permit(&coalescer, 10);
    for _ in 0..3 {
        join(&coalescer, 0.0, 10);
    }
    join(&coalescer, 0.0, BATCH_BYTES);
    join(&coalescer, 5.0, 10);
    let counts: Vec<_> = permit.next().iter().flatten().map(|batch| batch.count).collect();
    assert_eq!(counts, [3, 1, 1, 1]);
}

#[test]
fn each_lane_fills_its_own_rows_in_order() {
    let coalescer = Coalescer::new(3, 4, 8);
    let mut permit = permit(&coalescer, 1);
    for nr in 0..11_u8 {
        coalescer.try_join(New { lane: u16::from(nr % 2 + 1), element: &[nr], ..NEW }).expect("room");
    }
    let rows: Vec<(u16, Vec<u8>)> =
        permit.next().iter().flatten().map(|row| (row.lane, row.elements.to_vec())).collect();
    let expected: [(u16, &[u8]); 5] = [(0, &[0]), (1, &[0, 2, 4]), (2, &[1, 3, 5]), (1, &[6, 8, 10]), (2, &[7, 9])];
    assert_eq!(rows, expected.map(|(lane, elements)| (lane, elements.to_vec())));
}

#[test]
fn message_joins_only_one_of_the_last_rows() {
    let coalescer = Coalescer::new(1024, 1, 8);
    let _permit = permit(&coalescer, 1);
    let rows = |nr: usize| {
        coalescer.try_join(New { columns: Some(&nr.to_string()), element: &[0], ..NEW }).expect("room");
        coalescer.batcher.state().waiting.batches.len()
    };
    let all = (0..=SEARCHED).map(rows).max();
    assert_eq!(all, Some(SEARCHED + 2), "each has its own row");
    assert_eq!(rows(1), SEARCHED + 2, "the row is near enough");
    assert_eq!(rows(0), SEARCHED + 3, "the row is not searched");
}

/// A sum over all rows for each insert would visit billions of rows here, under the queue's lock.
#[test]
fn rows_of_one_message_leave_in_linear_time() {
    const MANY: usize = 100_000;
    let coalescer = Coalescer::new(1024, 1, 8);
    let mut permits = Vec::new();
    for nr in 0..MANY {
        let joined = coalescer.try_join(New { columns: Some(&nr.to_string()), ..NEW }).expect("room");
        permits.extend(joined.permit);
    }
    let Ok([mut first, mut second]) = <[InsertPermit; 2]>::try_from(permits) else { panic!("two inserts run") };
    let (mut left_over, began) = (MANY, Instant::now());
    while left_over > 0 {
        let taken = count(&mut first) + count(&mut second);
        assert!(taken > 0, "{left_over} are left");
        left_over -= taken;
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(left(&coalescer).0, 0);
}

#[test]
fn only_the_first_callers_start_writers() {
    let coalescer = Coalescer::new(3, 1, 8);
    let permits: Vec<_> = (0..10).filter_map(|_| join(&coalescer, 0.0, 1)?.permit).collect();
    assert_eq!(permits.len(), OpenRows::STATEMENTS);
}

#[test]
fn second_insert_needs_more_messages_when_inserts_take_long() {
    for (took, worth) in [(Duration::from_micros(300), WORTH_ANOTHER), (Duration::from_millis(8), 500)] {
        let coalescer = Coalescer::new(1024, 1, 8);
        let _permit = permit(&coalescer, 1);
        coalescer.batcher.state().running.took = took;
        let joined = (2..2000).find(|_| join(&coalescer, 0.0, 1).is_some_and(|joined| joined.permit.is_some()));
        assert_eq!(joined, Some(worth), "{took:?}");
    }
}

#[test]
fn few_callers_do_not_wait_for_each_other() {
    let coalescer = Coalescer::new(1024, 1, 8);
    let mut first = permit(&coalescer, 1);
    let starts = || join(&coalescer, 0.0, 1).expect("room").permit;
    assert!(starts().is_none(), "the insert has not begun: it is for both");
    assert_eq!(count(&mut first), 2);
    let mut second = starts().expect("beside it");
    assert_eq!(count(&mut second), 1);
    assert!(starts().is_none(), "two are on their way");
    assert_eq!(count(&mut first), 1, "still few");
    for _ in 0..FEW {
        assert!(starts().is_none());
    }
    assert!(first.next().is_none(), "no longer: they are left to the other");
    assert_eq!(count(&mut second), FEW);
    assert!(second.next().is_none());
    assert_eq!(left(&coalescer), (0, 0, 0));
    let mut gone = permit(&coalescer, 1);
    gone.next();
    drop(gone);
    assert_eq!(left(&coalescer), (0, 0, 0));
}

#[test]
fn memory_is_bounded_and_a_single_giant_still_passes() {
    let coalescer = Coalescer::new(1024, 1, 8);
    let mut permit = permit(&coalescer, WAITING_BYTES * 2);
    assert!(join(&coalescer, 0.0, 1).is_none());
    permit.next();
    assert!(join(&coalescer, 0.0, 1).is_some());
}

#[tokio::test]
async fn small_messages_do_not_overtake_a_large_one() {
    let coalescer = Coalescer::new(1024, 1, 8);
    let mut permit = permit(&coalescer, WAITING_BYTES - 1000);
    let element = vec![0; 5000];
    let mut large = pin!(coalescer.join(New { element: &element, ..NEW }));
    assert!((&mut large).now_or_never().is_none(), "it has no room");
    let mut small = pin!(coalescer.join(New { element: &[0; 9], ..NEW }));
    assert!((&mut small).now_or_never().is_none(), "it has room, and waits its turn");
    permit.next();
    assert!((&mut large).now_or_never().is_some());
    assert!((&mut small).now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn caller_that_is_not_polled_holds_up_no_other() {
    let coalescer = Coalescer::new(1024, 1, 8);
    let mut permit = permit(&coalescer, WAITING_BYTES - 1000);
    let element = vec![0; 5000];
    let mut large = pin!(coalescer.join(New { element: &element, ..NEW }));
    assert!((&mut large).now_or_never().is_none(), "it has no room, and its turn");
    permit.next();
    let small = coalescer.join(New { element: &[0; 9], ..NEW });
    assert!(timeout(2 * TURN, small).await.is_ok());
    assert!((&mut large).now_or_never().is_some());
}

/// Missing metadata is stored as null, which does not count towards the bytes.
#[test]
fn counted_bytes_are_returned_with_their_messages_metadata_included() {
    let coalescer = Coalescer::new(7, 1, 8);
    let mut permit = permit(&coalescer, 1);
    for nr in 0..1000_usize {
        let metadata = if nr % 3 == 0 { vec![0; 1 + nr % 500] } else { Vec::new() };
        coalescer.try_join(New { element: &[0; 9], metadata: &metadata, ..NEW }).expect("room");
    }
    while permit.next().is_some() {}
    assert_eq!(left(&coalescer), (0, 0, 0));
}

#[test]
fn callers_of_a_task_that_is_gone_are_answered() {
    let coalescer = Coalescer::new(1, 1, 1);
    let mut first = join(&coalescer, 0.0, 1).expect("room");
    let second = join(&coalescer, 0.0, 1).expect("room");
    let (mut permit, other) = (first.permit.take().expect("the first"), second.permit.expect("a full row waits"));
    assert_eq!(count(&mut permit), 1);
    drop(permit);
    assert!(outcome(&first).is_outcome_unknown(), "it was handed out");
    assert!(second.receipt.outcome.get().is_none(), "the other writes it yet");
    drop(other);
    let second = Joined { receipt: second.receipt, permit: None };
    assert!(!outcome(&second).is_outcome_unknown(), "it was not");
    assert_eq!(left(&coalescer), (0, 0, 0));
    assert!(join(&coalescer, 0.0, 1).is_some_and(|joined| joined.permit.is_some()));
}
