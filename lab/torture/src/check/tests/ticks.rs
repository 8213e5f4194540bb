use super::made::Made;
use crate::plan;

fn ticked() -> Made {
    let mut made = super::clean();
    for nr in 0..plan::SCHEDULES {
        (1_000..1_010).for_each(|second| made.ticked(nr, second));
    }
    made
}

#[test]
fn each_second_once_is_clean() {
    assert_eq!(ticked().rules(), Vec::<&str>::new());
}

#[test]
fn a_tick_that_was_made_twice_is_found() {
    let mut made = ticked();
    made.ticked(7, 1_003);
    assert_eq!(made.rules(), ["a tick of a schedule was made twice"]);
}

#[test]
fn missing_ticks_and_schedules_without_ticks_are_found() {
    let mut made = ticked();
    made.ticked(7, 1_011);
    assert_eq!(made.rules(), ["a tick of a schedule was left out"]);
    let mut made = super::clean();
    made.ticked(0, 1_000);
    assert_eq!(made.rules(), ["a tick of a schedule was left out"]);
}
