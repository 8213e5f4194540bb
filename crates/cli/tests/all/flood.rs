//! A follower under constant traffic stops listening, so that the producers' commits do not wait
//! for one another.

use std::{
    io::{BufRead, BufReader},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use crate::fixture::{Session, Trunkline, eventually, rows, signal};

/// Sends as many notifications as many commits would.
const FLOOD: &str = "select count(pg_notify('trunkline.q', i::text)) from generate_series(1, 200) i";
/// The pause between such statements. With it, at most 10,000 notifications arrive per second. With
/// many more, the follower's connection is so busy with them that the backlog ends before the
/// follower has stopped listening.
const PAUSE: Duration = Duration::from_millis(20);

const BACKLOG: usize = 20_000;

#[test]
fn follower_stops_listening_in_a_flood_and_listens_again() {
    let trunkline = Trunkline::with_queue(&["--max-batch", "10"]);
    let is_announced = || rows(&trunkline.url, "select trunkline.announced('trunkline.q')::text") == ["true"];
    let messages = || trunkline.json(&["stats", "--json"])[0]["messages"].as_u64();
    let mut child = trunkline.start(&["dequeue", "q", "--follow"]);
    let printed = child.stdout.take().expect("it is piped");
    let counting = thread::spawn(move || BufReader::new(printed).lines().count());
    eventually("it listens", is_announced);
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, url) = (stop.clone(), trunkline.url.clone());
    let flood = thread::spawn(move || {
        let mut session = Session::begin(&url, FLOOD);
        while !stopped.load(Ordering::Relaxed) {
            session.run(FLOOD);
            thread::sleep(PAUSE);
        }
    });
    // With a backlog, every dequeue finds messages, so the follower never waits. The test refills
    // the backlog, because a fast follower consumes it within a second.
    let backlog = format!("select count(trunkline.enqueue('q', 'one'::bytea)) from generate_series(1, {BACKLOG})");
    // Asked in one statement, because the backlog goes on shrinking.
    let state = "select concat_ws(' ', trunkline.announced('trunkline.q'), exists (select from trunkline.queue_q))";
    let mut session = Session::begin(&trunkline.url, "");
    let mut enqueued = 0;
    let stops = (0..20).any(|_| {
        session.run(&backlog);
        enqueued += BACKLOG;
        loop {
            match session.run(state)[0].as_str() {
                "f t" => break true,
                "t t" => {}
                _ => break false,
            }
        }
    });
    assert!(stops, "it stops listening before it has to wait");
    stop.store(true, Ordering::Relaxed);
    flood.join().expect("no panic");
    eventually("it listens again once the flood is over", is_announced);
    eventually("the queue is empty", || messages() == Some(0));
    signal(&child, "TERM");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(counting.join().expect("no panic"), enqueued);
}
