//! Tests that arbitrary bytes, split arbitrarily, lead to a reply or an error. No bytes may cause a
//! panic or a call that never returns.

use proptest::prelude::*;

use crate::postgres::wire::{WireError, cached_statement::Signature, fuzz::told};

/// A reply to three statements, with one row and one column each. A notice and a notification
/// arrive between the replies.
const ANSWER: &[u8] = b"1\0\0\0\x042\0\0\0\x04D\0\0\0\x0b\0\x01\0\0\0\x01aC\0\0\0\x0dSELECT 1\0\
    N\0\0\0\x0aMhey\0\0\
    2\0\0\0\x04D\0\0\0\x0b\0\x01\0\0\0\x01bC\0\0\0\x0dSELECT 1\0A\0\0\0\x0c\0\0\0\x01c\0p\0\
    2\0\0\0\x04D\0\0\0\x0b\0\x01\0\0\0\x01cC\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn an_answer_in_any_pieces_is_the_same(cuts in proptest::collection::vec(0..ANSWER.len(), 0..12)) {
        let mut cuts = cuts;
        cuts.extend([0, ANSWER.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|ends| &ANSWER[ends[0]..ends[1]]).collect();
        let answer = told(&pieces, 3).expect("a whole answer");
        prop_assert_eq!((answer.tag(0), answer.affected(2)), ("SELECT 1", 1));
    }

    #[test]
    fn an_answer_that_ends_early_is_lost(end in 0..ANSWER.len()) {
        prop_assert!(matches!(told(&[&ANSWER[..end]], 3), Err(WireError::Lost(_))));
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        let _ = told(&[&bytes], 3);
    }

    #[test]
    fn any_change_of_an_answer_is_survived(at in 0..ANSWER.len(), byte in any::<u8>(), statements in 1..5_usize) {
        let mut changed = ANSWER.to_vec();
        changed[at] = byte;
        let _ = told(&[&changed], statements).map(|answer| answer.affected(0));
    }

    #[test]
    fn any_description_is_survived(kind in prop_oneof![Just(b't'), Just(b'T'), Just(b'E')], body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut frame = vec![kind];
        frame.extend((body.len() as u32 + 4).to_be_bytes());
        frame.extend(body);
        let _ = Signature::read(&[frame.into()]);
    }
}

#[test]
fn answer_with_wrong_number_of_ends_is_refused() {
    assert!(matches!(told(&[ANSWER], 2), Err(WireError::Protocol(_))));
    assert!(matches!(told(&[ANSWER], 4), Err(WireError::Protocol(_))));
}

#[test]
fn an_answer_that_nobody_waits_for_ends_the_connection() {
    assert!(told(&[ANSWER, b"Z\0\0\0\x05I", ANSWER], 3).is_ok(), "the first answer was whole");
}
