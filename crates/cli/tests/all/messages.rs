use std::process::Stdio;

use crate::fixture::{Trunkline, eventually, rows, sql};

#[test]
fn messages_come_out_in_the_order_they_went_in() {
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
    trunkline.ok(&["enqueue", "q", "--delay", "60m", "later"]);
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

/// Numbers at the limits of the exponent form and of the types, and numbers whose shortest form is
/// hard to find.
const NUMBERS: &str = "0 -0 1 -1.5 0.1 0.3 1e-4 1e-5 0.00012345 0.000012345 123456 1234567 999999 1e5 1e6 1e14 1e15 1e16 \
                       123456789012345 1234567890123456 12345678901234567890 1e300 1e-300 5e-324 1.7976931348623157e308 \
                       2.2250738585072014e-308 1e22 1e23 9007199254740993 0.1e-6 4.35 3.4028235e38 1e-45 1.1754944e-38 \
                       16777216 8388608.5 0.3333333333333333 NaN Infinity -Infinity inf -inf +7 1E3 .5 5.";

#[test]
fn floats_are_in_postgres_text_form() {
    let trunkline = Trunkline::new();
    for payload in ["float4", "float8"] {
        trunkline.ok(&["queue", "create", "q", "--type", payload]);
        let fits = |text: &&str| {
            payload == "float8"
                || text
                    .parse::<f64>()
                    .is_ok_and(|n| !n.is_finite() || n == 0.0 || (1e-45..=f64::from(f32::MAX)).contains(&n.abs()))
        };
        let mut numbers: Vec<String> = NUMBERS.split_whitespace().filter(fits).map(str::to_owned).collect();
        let mut state = 1_u64;
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let any =
                if payload == "float4" { f32::from_bits((state >> 32) as u32).into() } else { f64::from_bits(state) };
            numbers.push(if payload == "float4" { format!("{:e}", any as f32) } else { format!("{any:e}") });
        }
        trunkline.ok(&[&["enqueue", "q", "--"][..], &numbers.iter().map(String::as_str).collect::<Vec<_>>()].concat());
        let theirs = rows(&trunkline.url, "select payload::text from trunkline.messages('q') order by id");
        let ours = trunkline.lines(&["dequeue", "q"]);
        assert_eq!(ours.len(), numbers.len());
        for ((ours, theirs), number) in ours.iter().zip(&theirs).zip(&numbers) {
            assert_eq!(ours, theirs, "{number} as {payload}");
        }
        // Printed numbers can be enqueued, and do not change.
        trunkline.ok(&[&["enqueue", "q", "--"][..], &ours.iter().map(String::as_str).collect::<Vec<_>>()].concat());
        assert_eq!(trunkline.lines(&["dequeue", "q"]), ours);
        assert!(trunkline.fails(&["enqueue", "q", "1e400"]).1.contains("out of range"));
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
    assert!(code == 2 && error.contains("hint: --yes"), "{error}");
    assert_eq!(trunkline.lines(&["purge", "q", "--yes"]), ["2"]);
    let archived = trunkline.json(&["archive", "q", "--json"]);
    assert!(archived.len() == 1 && archived[0]["payload"] == "kept" && archived[0]["attempt"] == 1);
    assert_eq!(trunkline.lines(&["prune", "q", "--older-than", "1h"]), ["0"]);
    assert_eq!(trunkline.lines(&["prune", "q", "--older-than", "0", "--yes"]), ["1"]);
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

#[test]
fn lines_whose_unique_keys_are_taken_are_not_counted() {
    let trunkline = Trunkline::with_queue(&["--type", "text", "--uniqueness"]);
    let output = trunkline.fed(&["enqueue", "q", "--lines", "-", "--unique", "k"], b"a\nb\nc\n");
    let told = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((&*output.stdout, output.status.code()), (&b"1\n"[..], Some(0)), "{output:?}");
    assert_eq!(told(&output), "2 lines were not enqueued: other messages have their unique keys\n");
    let objects = br#"{"payload": "d", "unique": "k"}
{"payload": "e", "unique": "l"}
{"payload": "f"}
"#;
    let output = trunkline.fed(&["enqueue", "q", "--json-lines", "-"], objects);
    assert_eq!(output.stdout, b"2\n", "{output:?}");
    assert_eq!(told(&output), "one line was not enqueued: another message has its unique key\n");
    let output = trunkline.fed(&["enqueue", "q", "--json-lines", "-", "--replace"], objects);
    assert_eq!(output.stdout, b"1\n", "{output:?}");
    assert_eq!(told(&output), "2 lines replaced waiting messages with their unique keys\n");
    assert_eq!(trunkline.json(&["stats", "--json"])[0]["messages"], 4);
}

#[test]
fn a_message_counts_in_one_state() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    trunkline.ok(&["enqueue", "q", "leased", "due"]);
    sql(&trunkline.url, "select trunkline.lease('q', 1)");
    let counts = trunkline.json(&["stats", "q", "--json"]).remove(0);
    let states = ["due", "delayed", "leased", "to_retry", "dead", "archived"];
    assert_eq!(states.map(|state| counts[state].as_u64()), [1, 0, 1, 0, 0, 0].map(Some), "{counts}");
    let others = ["queue", "paused", "messages", "rows", "oldest_due_s"];
    let names = counts.as_object().expect("an object").keys();
    let unknown: Vec<_> = names.filter(|name| !states.iter().chain(&others).any(|known| known == name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
