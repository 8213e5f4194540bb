//! Direct delivery, between two runs of the program and from SQL.

use std::io::{BufRead, BufReader};

use crate::fixture::{Trunkline, eventually, rows, signal, sql};

const WAITS: &str = "select consumer from trunkline.waiting";
const STORED: &str = "select pg_relation_size('trunkline.queue_q') > 0";

#[test]
fn direct_messages_arrive_without_being_stored() {
    let trunkline = Trunkline::with_queue(&[]);
    let receiver = trunkline.start(&["dequeue", "q", "--direct", "-n", "3"]);
    let waits = || eventually("it waits", || rows(&trunkline.url, WAITS).len() == 1);
    waits();
    let ids = trunkline.lines(&["enqueue", "q", "--direct", "one"]);
    assert_eq!(ids.len(), 1);
    waits();
    sql(&trunkline.url, r"select trunkline.send_direct('q', 'two'::bytea)");
    waits();
    sql(&trunkline.url, "select trunkline.send_direct('q', 'three'::text)");
    let output = receiver.wait_with_output().expect("it ends");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one\ntwo\nthree\n");
    assert_eq!(rows(&trunkline.url, STORED), ["f"], "nothing was ever stored");
}

#[test]
fn direct_messages_without_a_waiting_consumer_are_enqueued() {
    let trunkline = Trunkline::with_queue(&[]);
    let ids = trunkline.lines(&["enqueue", "q", "--direct", "--with", "tenant=acme", "one", "two"]);
    assert_eq!((ids.len(), rows(&trunkline.url, STORED)), (2, vec!["t".to_owned()]));
    let receiver = trunkline.start(&["dequeue", "q", "--direct", "--json"]);
    eventually("both arrive", || trunkline.json(&["stats", "--json"])[0]["messages"] == 0);
    eventually("it waits for more", || rows(&trunkline.url, WAITS).len() == 1);
    signal(&receiver, "TERM");
    let output = receiver.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<serde_json::Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is an object"))
        .collect();
    let told: Vec<_> = lines.iter().map(|line| (&line["payload"], &line["metadata"]["tenant"])).collect();
    assert_eq!(told, [(&"one".into(), &"acme".into()), (&"two".into(), &"acme".into())]);
}

#[test]
fn direct_has_no_other_guarantee() {
    let trunkline = Trunkline::with_queue(&[]);
    for other in [&["--archive"][..], &["--follow"], &["--mode", "at-least-once"]] {
        assert_eq!(trunkline.fails(&[&["dequeue", "q", "--direct"], other].concat()).0, 2);
    }
    assert_eq!(trunkline.fails(&["enqueue", "q", "--direct", "--lines", "-"]).0, 2);
}

/// A take that is under way when the signal arrives has removed its message.
#[test]
fn signal_loses_no_stored_message_between_queue_and_output() {
    let trunkline = Trunkline::with_queue(&["--type", "int4"]);
    for _ in 0..5 {
        trunkline.enqueue_numbers(500);
        let mut receiver = trunkline.start(&["dequeue", "q", "--direct"]);
        let mut lines = BufReader::new(receiver.stdout.take().expect("it is piped")).lines();
        let mut printed: usize = lines.by_ref().take(20).map(|line| usize::from(line.is_ok())).sum();
        signal(&receiver, "TERM");
        printed += lines.map(|line| usize::from(line.is_ok())).sum::<usize>();
        assert!(receiver.wait().expect("it ends").success());
        let left = trunkline.json(&["stats", "--json"])[0]["messages"].as_u64().expect("a number");
        assert_eq!(printed as u64 + left, 500);
        trunkline.ok(&["purge", "q", "--yes"]);
    }
}
