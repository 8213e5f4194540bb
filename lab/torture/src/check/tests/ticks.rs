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

const STOPPED: &str = "a schedule did not tick until the end of the run";

/// Returns the broken rules of a run of a minute whose schedules tick in the given seconds.
fn run_ticked(seconds: impl Fn(usize) -> std::ops::Range<i64>) -> Vec<(&'static str, usize)> {
    let mut made = super::clean();
    for nr in 0..plan::SCHEDULES {
        seconds(nr).for_each(|second| made.ticked(nr, 1_000 + second));
    }
    made.found_in_run().into_iter().map(|finding| (finding.rule, finding.count)).collect()
}

#[test]
fn run_in_which_no_schedule_ticks_is_found() {
    assert_eq!(run_ticked(|_| 0..0), [(STOPPED, plan::SCHEDULES)]);
}

#[test]
fn schedules_that_stop_midway_are_found() {
    assert_eq!(run_ticked(|_| 0..60), []);
    assert_eq!(run_ticked(|_| 0..40), [], "processes may have connected again too late");
    assert_eq!(run_ticked(|_| 0..25), [(STOPPED, plan::SCHEDULES)]);
    assert_eq!(run_ticked(|nr| if nr == 7 { 0..25 } else { 0..60 }), [(STOPPED, 1)]);
}
