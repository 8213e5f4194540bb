//! SIGTERM during a transfer leads to exit code 0, no duplicate message, and no counted attempt. So
//! does the end of the program that reads the progress.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use crate::{
    brokers::Kind,
    ends::Sent,
    fixture::rows,
    place::{Place, within},
};

const ENDS: usize = 4;
const KEYS: usize = 40;

fn out(kind: Kind) {
    // With a maximum of one attempt, every wrongly counted attempt makes a dead letter.
    let place = Place::of(kind, &["--partitions", "16", "--max-attempts", "1"]);
    let mut sent = Sent::default();
    for _ in 0..ENDS {
        (0..125).for_each(|_| place.enqueue(&mut sent, KEYS));
        let before = place.messages();
        let program = place.out(&[]);
        within("it carries on", || place.messages() + 200 < before);
        place.end(program);
        let stats = place.stats();
        assert!(stats.messages > 0, "it was in the middle of it");
        assert_eq!((stats.leased, stats.dead), (0, 0), "what was not sent is given back");
    }
    let program = place.out(&[]);
    within("the queue is empty", || place.messages() == 0);
    place.end(program);
    sent.against(&place.runtime.block_on(place.far.read(sent.sure()))).exactly_once();
    assert_eq!(place.stats().dead, 0);
    assert!(rows(&place.trunkline.url, "select name from trunkline.relay").is_empty(), "its row goes with it");
}

fn inward(kind: Kind) {
    let place = Place::of(kind, &[]);
    let (mut sent, sink) = (Sent::default(), place.runtime.block_on(place.far.sink()));
    for _ in 0..ENDS {
        for _ in 0..40 {
            place.runtime.block_on(place.far.write(&*sink, &mut sent, KEYS));
        }
        let before = place.messages();
        let program = place.inward();
        within("it carries on", || place.messages() > before);
        place.end(program);
        let held = rows(&place.trunkline.url, "select name from trunkline.relay where holder is not null");
        assert!(held.is_empty(), "the next one need not wait");
    }
    place.runtime.block_on(place.far.write(&*sink, &mut sent, KEYS));
    let program = place.inward();
    within("the queue has what was written", || place.messages() >= sent.sure());
    place.end(program);
    sent.against(&place.take_all()).exactly_once();
}

#[test]
#[ignore = "needs Redis: see .ci/brokers"]
fn a_reader_that_goes_away_ends_it_in_order() {
    let mut place = Place::of(Kind::Redis, &["--max-attempts", "1"]);
    let mut child = place.trunkline.start(&["relay", "q", "--to", &place.far.address(true), "--json"]);
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    out.read_line(&mut line).expect("it prints");
    assert!(line.starts_with('{'), "{line}");
    place.broker.kill(); // so that the relay keeps the messages
    place.enqueue(&mut Sent::default(), KEYS);
    within("it has messages in hand", || place.stats().leased > 0);
    drop(out);
    let output = child.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {error}", output.status);
    let stats = place.stats();
    assert_eq!((stats.messages, stats.leased, stats.dead), (KEYS as u64, 0, 0), "they are given back: {error}");
    assert!(rows(&place.trunkline.url, "select name from trunkline.relay").is_empty(), "its row goes with it");
    assert!(error.contains("standard output cannot be written to: the relay ends\n"), "{error}");
    assert!(error.ends_with("q: 0 confirmed, 0 refused\n"), "{error}");
}

#[test]
#[ignore = "needs Redis: see .ci/brokers"]
fn a_full_disk_is_an_error() {
    let place = Place::of(Kind::Redis, &[]);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
    let mut command = place.trunkline.command(&["relay", "q", "--to", &place.far.address(true), "--json"]);
    let child = command.stdout(full).stderr(Stdio::piped()).spawn().expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("error: cannot write to standard output: No space left on device"), "{error}");
    assert!(rows(&place.trunkline.url, "select name from trunkline.relay").is_empty(), "its row goes with it");
}

with_each_broker!(out_nothing_is_sent_twice: out to);

with_each_broker!(in_the_next_goes_on_at_once: inward from);
