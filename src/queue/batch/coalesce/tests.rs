use super::*;

const NEW: New<'static> = New { due: 0.0, lane: 0, key: None, element: &[], metadata: &[], claim: None };

fn join(coalescer: &Arc<Coalescer>, delay: f64, bytes: usize) -> Option<Joined> {
    coalescer.try_join(New { due: delay, element: &vec![0; bytes], ..NEW })
}

fn writer(coalescer: &Arc<Coalescer>, bytes: usize) -> Writer {
    join(coalescer, 0.0, bytes).and_then(|joined| joined.writer).expect("nobody writes yet")
}

/// Bytes that are counted, and writers.
fn left(coalescer: &Arc<Coalescer>) -> (usize, usize) {
    let pending = coalescer.pending();
    (pending.bytes, pending.writers)
}

fn outcome(joined: &Joined) -> &Error {
    match joined.place.outcome.get() {
        Some(Insertion::Failed(error)) => error,
        _ => panic!("not answered"),
    }
}

#[test]
fn a_batch_ends_at_its_count_its_bytes_and_its_delay() {
    let coalescer = Coalescer::new(3, 1);
    let mut writer = writer(&coalescer, 10);
    for _ in 0..3 {
        join(&coalescer, 0.0, 10);
    }
    join(&coalescer, 0.0, BATCH_BYTES);
    join(&coalescer, 5.0, 10);
    let counts: Vec<_> = writer.next(8).iter().map(|batch| batch.count).collect();
    assert_eq!(counts, [3, 1, 1, 1]);
}

#[test]
fn each_lane_gathers_a_row_of_its_own_and_stays_in_order() {
    let coalescer = Coalescer::new(3, 4);
    let mut writer = writer(&coalescer, 1);
    for nr in 0..11_u8 {
        coalescer.try_join(New { lane: u16::from(nr % 2 + 1), element: &[nr], ..NEW }).expect("room");
    }
    let rows: Vec<(u16, Vec<u8>)> = writer.next(8).iter().map(|row| (row.lane, row.elements.to_vec())).collect();
    let expected: [(u16, &[u8]); 5] = [(0, &[0]), (1, &[0, 2, 4]), (2, &[1, 3, 5]), (1, &[6, 8, 10]), (2, &[7, 9])];
    assert_eq!(rows, expected.map(|(lane, elements)| (lane, elements.to_vec())));
}

#[test]
fn only_the_first_callers_start_writers() {
    let coalescer = Coalescer::new(3, 1);
    let writers: Vec<_> = (0..10).filter_map(|_| join(&coalescer, 0.0, 1)?.writer).collect();
    assert_eq!(writers.len(), WRITERS);
}

#[test]
fn where_an_insert_takes_long_few_messages_are_worth_no_other() {
    for (took, worth) in [(Duration::from_micros(300), WORTH_ANOTHER), (Duration::from_millis(8), 500)] {
        let coalescer = Coalescer::new(1024, 1);
        let _writer = writer(&coalescer, 1);
        coalescer.pending().took = took;
        let joined = (2..2000).find(|_| join(&coalescer, 0.0, 1).is_some_and(|joined| joined.writer.is_some()));
        assert_eq!(joined, Some(worth), "{took:?}");
    }
}

#[test]
fn few_callers_do_not_wait_for_each_other() {
    let coalescer = Coalescer::new(1024, 1);
    let mut first = writer(&coalescer, 1);
    let starts = || join(&coalescer, 0.0, 1).expect("room").writer;
    assert!(starts().is_none(), "the insert has not begun: it is for both");
    assert_eq!(first.next(8)[0].count, 2);
    let mut second = starts().expect("beside it");
    assert_eq!(second.next(8)[0].count, 1);
    assert!(starts().is_none(), "two are on their way");
    assert_eq!(first.next(8)[0].count, 1, "still few");
    for _ in 0..FEW {
        assert!(starts().is_none());
    }
    assert!(first.next(8).is_empty(), "no longer: they are left to the other");
    assert_eq!(second.next(8)[0].count, FEW);
    assert!(second.next(8).is_empty());
    assert_eq!((left(&coalescer), coalescer.pending().underway), ((0, 0), 0));
    let mut gone = writer(&coalescer, 1);
    gone.next(8);
    drop(gone);
    assert_eq!((left(&coalescer), coalescer.pending().underway), ((0, 0), 0));
}

#[test]
fn memory_is_bounded_and_a_single_giant_still_passes() {
    let coalescer = Coalescer::new(1024, 1);
    let mut writer = writer(&coalescer, PENDING_BYTES * 2);
    assert!(join(&coalescer, 0.0, 1).is_none());
    writer.next(1);
    assert!(join(&coalescer, 0.0, 1).is_some());
}

/// Null stands for those that have no metadata: those bytes were never counted, and the others'
/// were.
#[test]
fn what_messages_were_counted_for_is_given_back_with_them_metadata_included() {
    let coalescer = Coalescer::new(7, 1);
    let mut writer = writer(&coalescer, 1);
    for nr in 0..1000_usize {
        let metadata = if nr % 3 == 0 { vec![0; 1 + nr % 500] } else { Vec::new() };
        coalescer.try_join(New { element: &[0; 9], metadata: &metadata, ..NEW }).expect("room");
    }
    while !writer.next(3).is_empty() {}
    assert_eq!(left(&coalescer), (0, 0));
}

#[test]
fn whoever_waits_for_a_writer_that_is_gone_is_answered_and_the_next_starts_another() {
    let coalescer = Coalescer::new(1, 1);
    let mut first = join(&coalescer, 0.0, 1).expect("room");
    let second = join(&coalescer, 0.0, 1).expect("room");
    let (mut writer, other) = (first.writer.take().expect("the first"), second.writer.expect("a full row waits"));
    assert_eq!(writer.next(1).len(), 1);
    drop(writer);
    assert!(outcome(&first).is_outcome_unknown(), "it was handed out");
    assert!(second.place.outcome.get().is_none(), "the other writes it yet");
    drop(other);
    let second = Joined { place: second.place, writer: None };
    assert!(!outcome(&second).is_outcome_unknown(), "it was not");
    assert_eq!(left(&coalescer), (0, 0));
    assert!(join(&coalescer, 0.0, 1).is_some_and(|joined| joined.writer.is_some()));
}
