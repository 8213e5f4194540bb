use super::{
    clean,
    made::{Made, micros},
};
use crate::{
    history::{Call, Verb},
    plan::FIFO,
};

const NONE: [&str; 0] = [];

#[test]
fn memory_that_grows_is_found() {
    let grown = |each: u64| {
        let mut made = clean();
        for second in 0..60 {
            made.sampled(second * 1000, "leaser-0.0", 20_000 + second * each);
        }
        made.rules()
    };
    assert_eq!(grown(100), NONE);
    assert_eq!(grown(6_000), ["memory grew"]);
}

#[test]
fn leftover_connections_and_locks_are_found() {
    for set in
        [|made: &mut Made| made.evidence.tables.connections = 1, |made: &mut Made| made.evidence.tables.locks = 2]
    {
        let mut made = clean();
        set(&mut made);
        assert_eq!(made.rules(), ["connections or locks were left behind"]);
    }
}

#[test]
fn connections_that_grow_are_found() {
    let mut made = clean();
    for second in 0..60 {
        made.sampled(second * 1000, "leaser-0.0", 20_000);
        made.evidence.samples[second as usize].connections = 60 + 4 * second as i64;
    }
    assert_eq!(made.clone().rules(), ["connections or locks were left behind"]);
    made.evidence.samples.iter_mut().for_each(|sample| sample.connections = 60);
    assert_eq!(made.rules(), NONE);
}

#[test]
fn a_process_that_misbehaves_is_found() {
    let mut made = clean();
    made.evidence.about.misbehaved.push("leaser-0.0 ended by itself: exit status: 101".to_owned());
    assert_eq!(made.rules(), ["a process ended by itself, or did not end"]);
}

#[test]
fn a_call_that_hangs_is_found() {
    let mut made = clean();
    made.op(Call::new(Verb::Stats, FIFO), 100).ended = micros(50_000);
    assert_eq!(made.rules(), ["a call did not return"]);
}

#[test]
fn a_slowdown_under_a_snapshot_is_found() {
    let took = |ms: u64| {
        let mut made = clean();
        for at in 0..100 {
            made.op(Call::new(Verb::Lease, FIFO).n(1), 20_000 + at * 10).ended = micros(20_000 + at * 10 + 3);
            made.op(Call::new(Verb::Lease, FIFO).n(1), 30_000 + at * 10).ended = micros(30_000 + at * 10 + ms);
        }
        made.fault("snapshot", 29_000, 35_000);
        made.rules()
    };
    assert_eq!(took(5), NONE);
    assert_eq!(took(45), NONE);
    assert_eq!(took(60), ["dequeues slowed down under a held snapshot"]);
}
