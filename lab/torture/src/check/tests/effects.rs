use super::{clean, made::Made};
use crate::{
    history::Verb,
    plan::{EXACT, ONCE},
};

#[test]
fn a_missing_effect_is_found() {
    let mut made = clean();
    made.evidence.tables.ledger.retain(|entry| entry.tag != 9);
    let account = &mut made.evidence.tables.accounts[9];
    *account = (9, account.1 - 10, account.2 - 1);
    assert_eq!(made.rules(), ["an exactly-once effect is missing"]);
    let mut made = Made::new();
    made.enqueued(EXACT, 500, 99_328);
    assert!(made.rules().contains(&"an exactly-once effect is missing"), "it was not taken");
}

#[test]
fn a_double_effect_is_found() {
    let double = "an exactly-once effect is double";
    let mut made = clean();
    made.entered(Verb::TakeIn, 900, (7168, 0, 9));
    assert_eq!(made.rules(), [double]);
    let mut made = clean();
    made.dead(EXACT, 7168, 9, 1);
    assert!(made.rules().contains(&double), "it is there still");
}

#[test]
fn an_effect_of_what_was_rolled_back_is_found() {
    let mut made = Made::new();
    made.enqueued(EXACT, 500, 99_328);
    let op = made.rolled_back(Verb::TakeIn, 600, (99_328, 0, 500));
    made.entry(500, op);
    assert!(made.rules().contains(&"an effect is there whose transaction was rolled back"));
}

#[test]
fn sums_that_differ_from_the_entries_are_found() {
    let mut made = clean();
    made.evidence.tables.accounts[3].1 += 1;
    assert_eq!(made.rules(), ["the sums of the ledger are not those of its entries"]);
}

#[test]
fn a_message_that_is_taken_twice_is_found() {
    let again = ["a message that was taken came again"];
    let taken = || {
        let mut made = Made::new();
        made.enqueued(ONCE, 500, 99_328);
        made.taken(ONCE, 600, &[(99_328, 0, 500)]);
        made
    };
    let mut made = taken();
    made.taken(ONCE, 700, &[(99_328, 0, 500)]);
    assert_eq!(made.rules(), again);
    let mut made = taken();
    made.taken(ONCE, 605, &[(99_328, 0, 500)]);
    assert_eq!(made.rules(), again, "at the same time");
    let mut made = taken();
    made.leased(ONCE, 700, &[(99_328, 1, 500)]);
    assert_eq!(made.rules(), again, "leased afterwards");
    let mut made = Made::new();
    made.enqueued(ONCE, 500, 99_328);
    made.taken(ONCE, 600, &[(99_328, 0, 500), (99_328, 0, 500)]);
    assert_eq!(made.rules(), again, "by one call");
}
