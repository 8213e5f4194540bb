use super::made::Made;
use crate::{
    history::{Call, Outcome, Verb},
    plan::ONCE,
};

const NONE: [&str; 0] = [];
const GIVEN: &str = "a message was given out while its queue was paused";

/// Returns a message, and a pause from 100 to 500 ms.
fn paused() -> Made {
    let mut made = Made::new();
    made.enqueued(ONCE, 1, 1024);
    made.op(Call::new(Verb::Pause, ONCE), 100);
    made.op(Call::new(Verb::Resume, ONCE), 500);
    made
}

fn taken_at(mut made: Made, ms: u64) -> Vec<&'static str> {
    made.taken(ONCE, ms, &[(1024, 0, 1)]);
    made.rules()
}

#[test]
fn delivery_during_a_pause_is_found() {
    assert_eq!(taken_at(paused(), 300), [GIVEN]);
    assert_eq!(taken_at(paused(), 105), NONE, "it was asked for before the pause was certain");
    assert_eq!(taken_at(paused(), 495), NONE, "it was over meanwhile");
    assert_eq!(taken_at(paused(), 700), NONE);
    let mut made = paused();
    made.short(ONCE, 300, &[]);
    assert_eq!(taken_at(made, 700), NONE, "nothing was given out");
}

#[test]
fn another_session_may_have_ended_the_pause() {
    for outcome in [Outcome::Ok, Outcome::Unknown] {
        let mut made = paused();
        made.op(Call::new(Verb::Resume, ONCE), 200).outcome = outcome;
        assert_eq!(taken_at(made, 300), NONE);
    }
    let mut made = paused();
    made.op(Call::new(Verb::Resume, ONCE), 200).outcome = Outcome::Failed;
    assert_eq!(taken_at(made, 300), [GIVEN]);
    let mut made = paused();
    made.evidence.ops[1].outcome = Outcome::Unknown;
    assert_eq!(taken_at(made, 300), NONE, "there may have been none");
}

#[test]
fn messages_dequeued_before_a_pause_may_arrive_during_it() {
    let mut made = paused();
    made.op(Call::new(Verb::Lease, ONCE).n(1), 300).got = vec![(1024, 1, 1)];
    made.ended(Verb::Ack, ONCE, 600, (1024, 1));
    assert_eq!(made.rules(), NONE, "a stream leases ahead");
}
