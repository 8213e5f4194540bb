use std::process::Stdio;

use crate::fixture::{Trunkline, eventually, sql};

#[test]
fn messages_come_out_in_the_order_in_which_they_went_in() {
    let trunkline = Trunkline::with_queue(&[]);
    let ids = trunkline.lines(&["enqueue", "q", "one", "two"]);
    let more = trunkline.lines(&["enqueue", "q", "three"]);
    let number = |id: &String| id.parse::<i64>().expect("an id is a number");
    assert!(ids.len() == 2 && number(&ids[0]) + 1 == number(&ids[1]) && number(&ids[1]) < number(&more[0]));
    assert_eq!(trunkline.lines(&["dequeue", "q", "-n", "2"]), ["one", "two"]);
    assert_eq!(trunkline.lines(&["dequeue", "q"]), ["three"]);
    assert!(trunkline.lines(&["dequeue", "q"]).is_empty());
}

#[test]
fn at_most_once_takes_them_too() {
    let trunkline = Trunkline::with_queue(&[]);
    trunkline.enqueue_numbers(3000);
    let taken = trunkline.lines(&["dequeue", "q", "--mode", "at-most-once", "-n", "2999"]);
    assert!(taken.iter().map(|line| line.parse::<u32>()).eq((0..2999).map(Ok)));
    assert_eq!(trunkline.lines(&["dequeue", "q", "--mode", "at-most-once"]), ["2999"]);
}

#[test]
fn following_waits_for_as_many_as_were_asked_for() {
    for mode in ["at-least-once", "at-most-once"] {
        let trunkline = Trunkline::with_queue(&[]);
        let waiting = trunkline.start(&["dequeue", "q", "--follow", "-n", "3", "--mode", mode]);
        for payload in ["a", "b", "c"] {
            trunkline.ok(&["enqueue", "q", payload]);
        }
        let output = waiting.wait_with_output().expect("it ends after three");
        assert!(output.status.success());
        assert_eq!(output.stdout, b"a\nb\nc\n");
        eventually("all are acknowledged", || trunkline.json(&["stats", "--json"])[0]["messages"] == 0);
    }
}

#[test]
fn peek_and_stats_touch_nothing() {
    let trunkline = Trunkline::with_queue(&[]);
    trunkline.ok(&["enqueue", "q", "now", "and"]);
    trunkline.ok(&["enqueue", "q", "--delay", "3600", "later"]);
    for _ in 0..2 {
        let peeked = trunkline.json(&["peek", "q", "--json"]);
        assert_eq!(peeked.iter().map(|message| &message["payload"]).collect::<Vec<_>>(), ["now", "and", "later"]);
        assert_eq!(trunkline.json(&["peek", "q", "-n", "1", "--json"]).len(), 1);
        let stats = trunkline.json(&["stats", "q", "--json"]).remove(0);
        let number = |key: &str| stats[key].as_u64();
        assert_eq!(
            [number("due"), number("delayed"), number("rows"), number("dead")],
            [Some(2), Some(1), Some(2), Some(0)]
        );
        assert!(stats["oldest_due_s"].as_f64().is_some_and(|age| age >= 0.0));
    }
    assert!(trunkline.ok(&["peek", "q"]).contains("later"));
    assert!(trunkline.ok(&["stats"]).contains("delayed"));
}

#[test]
fn every_type_with_a_simple_text_goes_in_and_out() {
    let trunkline = Trunkline::new();
    sql(
        &trunkline.url,
        "create type mood as enum ('glad', 'sad'); create domain short as text check (length(value) < 9)",
    );
    let cases = [
        ("text", "naïve"),
        ("varchar", "v"),
        ("json", "{\"b\": [1,  2]}"),
        ("jsonb", "{\"b\": [1, 2]}"),
        ("int2", "-3"),
        ("int4", "70000"),
        ("int8", "9007199254740993"),
        ("float8", "0.1"),
        ("bool", "true"),
        ("uuid", "67e55044-10b1-426f-9247-bb680e5fe0c8"),
        ("mood", "glad"),
        ("short", "fits"),
    ];
    for (payload, text) in cases {
        trunkline.ok(&["queue", "create", "q", "--type", payload]);
        trunkline.ok(&["enqueue", "q", "--", text]);
        assert_eq!(trunkline.lines(&["dequeue", "q"]), [text], "{payload}");
        trunkline.ok(&["queue", "drop", "q", "--yes"]);
    }
}

#[test]
fn purge_asks_and_the_archive_can_be_read_and_pruned() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    trunkline.ok(&["enqueue", "q", "kept", "gone", "gone"]);
    assert_eq!(trunkline.lines(&["dequeue", "q", "-n", "1", "--archive"]), ["kept"]);
    let (code, error) = trunkline.fails(&["dequeue", "q", "--archive", "--mode", "at-most-once"]);
    assert!(code == 2 && error.ends_with("hint: leave out --archive or --mode at-most-once\n"), "{error}");
    let (code, error) = trunkline.fails(&["purge", "q"]);
    assert!(code == 2 && error.contains("hint: with --yes"), "{error}");
    assert_eq!(trunkline.lines(&["purge", "q", "--yes"]), ["2"]);
    let archived = trunkline.json(&["archive", "q", "--json"]);
    assert!(archived.len() == 1 && archived[0]["payload"] == "kept" && archived[0]["attempt"] == 1);
    assert_eq!(trunkline.lines(&["prune", "q", "--older-than", "3600"]), ["0"]);
    assert_eq!(trunkline.lines(&["prune", "q", "--older-than", "0"]), ["1"]);
    assert!(trunkline.json(&["archive", "q", "--json"]).is_empty());
}

#[test]
fn bytes_that_are_no_text_are_shown_as_digits() {
    let trunkline = Trunkline::with_queue(&[]);
    sql(&trunkline.url, r"select trunkline.enqueue('q', '\x00ff'::bytea)");
    assert_eq!(trunkline.json(&["peek", "q", "--json"])[0]["payload_hex"], "00ff");
    let output = trunkline.command(&["dequeue", "q"]).stderr(Stdio::null()).output().expect("the program runs");
    assert_eq!(output.stdout, b"\x00\xff\n");
}
