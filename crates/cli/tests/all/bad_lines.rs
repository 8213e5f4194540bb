//! Lines that are not payloads are reported by number. They are skipped or saved on request.

use std::{fs, process::Output};

use crate::fixture::{Folder, Trunkline, sql};

/// Enqueues lines from standard input.
fn load(trunkline: &Trunkline, lines: &[Vec<u8>], more: &[&str]) -> Output {
    let all: Vec<u8> = lines.iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect();
    trunkline.fed(&[&["enqueue", "q", "--lines", "-"], more].concat(), &all)
}

fn error(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

fn messages(trunkline: &Trunkline) -> u64 {
    trunkline.json(&["stats", "q", "--json"])[0]["messages"].as_u64().expect("a number")
}

/// Payload types, each with a good line, a bad line, and a part of the error. The program itself
/// detects the errors of the first types, and the server those of the last types.
const CASES: [(&str, &str, &[u8], &str); 8] = [
    ("int4", "7", b"seven", "\"seven\" is not a whole number"),
    ("int2", "-7", b"70000", "\"70000\" is not a whole number of 16 bits"),
    ("uuid", "67e55044-10b1-426f-9247-bb680e5fe0c8", b"67e5", "is not a UUID"),
    ("text", "fine", b"n\0ul", "NUL character at byte 1"),
    ("text", "fine", b"caf\xe9", "not UTF-8 text (at byte 3)"),
    ("jsonb", "{\"a\": 1}", b"{\"a\": ", "invalid input syntax for type json"),
    ("mood", "glad", b"furious", "invalid input value for enum mood"),
    ("short", "fits", b"fits not at all", "short_check"),
];

/// Creates a queue of this payload type.
fn queue(payload: &str) -> Trunkline {
    let trunkline = Trunkline::new();
    let types = "create type mood as enum ('glad', 'sad'); create domain short as text check (length(value) < 9)";
    sql(&trunkline.url, types);
    trunkline.ok(&["queue", "create", "q", "--type", payload]);
    trunkline
}

#[test]
fn bad_line_is_named_and_all_before_it_are_enqueued() {
    for (payload, good, bad, why) in CASES {
        let trunkline = queue(payload);
        let mut lines = vec![good.as_bytes().to_vec(); 12_000];
        lines[10_233] = bad.to_vec();
        lines[11_000] = bad.to_vec();
        let output = load(&trunkline, &lines, &[]);
        let error = error(&output);
        assert_eq!(output.status.code(), Some(1), "{payload}: {error}");
        assert!(error.contains("error: line 10,234: ") && error.contains(why), "{payload}: {error}");
        assert!(
            error.contains("hint: the 10,233 preceding lines were enqueued; --bad-lines skip"),
            "{payload}: {error}"
        );
        assert_eq!(messages(&trunkline), 10_233, "{payload}");
    }
}

#[test]
fn bad_lines_are_skipped_and_counted() {
    for (payload, good, bad, why) in CASES {
        let trunkline = queue(payload);
        let mut lines = vec![good.as_bytes().to_vec(); 9_000];
        for at in [0, 17, 18, 8_191, 8_192, 8_999] {
            lines[at] = bad.to_vec();
        }
        let output = load(&trunkline, &lines, &["--bad-lines", "skip"]);
        let error = error(&output);
        assert!(output.status.success(), "{payload}: {error}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "8994\n");
        for number in ["1", "18", "19", "8,192", "8,193", "9,000"] {
            assert!(error.contains(&format!("bad line {number}: ")), "{payload}, {number}: {error}");
        }
        assert!(
            error.matches(why).count() == 6 && error.ends_with("\n6 bad lines were skipped\n"),
            "{payload}: {error}"
        );
        assert_eq!(messages(&trunkline), 8_994, "{payload}");
    }
}

#[test]
fn the_order_of_the_good_lines_stays() {
    let trunkline = queue("int4");
    let lines: Vec<Vec<u8>> =
        (0..500).map(|n| if n % 7 == 3 { format!("x{n}") } else { n.to_string() }.into_bytes()).collect();
    assert!(load(&trunkline, &lines, &["--bad-lines", "skip"]).status.success());
    let wanted: Vec<String> = (0..500).filter(|n| n % 7 != 3).map(|n| n.to_string()).collect();
    assert_eq!(trunkline.lines(&["dequeue", "q"]), wanted);
}

#[test]
fn bad_lines_are_set_aside_as_they_are() {
    let (trunkline, folder) = (queue("text"), Folder::new());
    let aside = folder.join("bad");
    let path = aside.to_str().expect("its name is text");
    let lines = [&b"one"[..], b"t\0wo\r", b"three", b"\xff", b""].map(<[u8]>::to_vec);
    for times in 1..=2 {
        let output = load(&trunkline, &lines, &["--bad-lines", path]);
        assert!(output.status.success() && output.stdout == b"3\n", "{}", error(&output));
        assert!(error(&output).ends_with(&format!("2 bad lines are in {path}\n")), "{}", error(&output));
        assert_eq!(
            fs::read(&aside).expect("it was written"),
            b"t\0wo\r\n\xff\n".repeat(times),
            "nothing is overwritten"
        );
    }
    assert_eq!(trunkline.lines(&["dequeue", "q"]), ["one", "three", "", "one", "three", ""]);
}

#[test]
fn many_bad_lines_are_only_counted() {
    let trunkline = queue("int4");
    let output = load(&trunkline, &vec![b"x".to_vec(); 3_000], &["--bad-lines", "skip"]);
    let error = error(&output);
    assert!(output.status.success() && output.stdout == b"0\n", "{error}");
    assert!(error.matches("bad line ").count() == 10 && error.ends_with("\n3,000 bad lines were skipped\n"), "{error}");
}

#[test]
fn unusable_place_for_bad_lines_is_refused_before_enqueuing() {
    let (trunkline, folder) = (queue("int4"), Folder::new());
    let input = folder.join("input");
    fs::write(&input, "1\nx\n").expect("it can be written");
    let path = input.to_str().expect("its name is text");
    let (code, error) = trunkline.fails(&["enqueue", "q", "--lines", path, "--bad-lines", path]);
    assert!(code == 2 && error.contains("the file that they are read from") && error.contains("hint: "), "{error}");
    let (code, error) = trunkline.fails(&["enqueue", "q", "--lines", path, "--bad-lines", "/no/such/folder/bad"]);
    assert!(code == 1 && error.contains("cannot write bad lines to /no/such/folder/bad"), "{error}");
    assert_eq!(trunkline.fails(&["enqueue", "q", "1", "--bad-lines", "skip"]).0, 2, "arguments are no lines");
    assert_eq!(messages(&trunkline), 0);
    let (code, error) = trunkline.fails(&["enqueue", "q", "--lines", path, "--bad-lines", "/dev/full"]);
    assert!(code == 1 && error.contains("line 2: ") && error.contains("No space left"), "{error}");
    assert!(error.contains("the 1 preceding lines were enqueued"), "{error}");
}

#[test]
fn line_whose_priority_or_key_the_queue_cannot_have_is_bad() {
    let cases: [(&[&str], &str, &str, &str); 4] = [
        (&[], r#"{"payload":1}"#, r#"{"payload":2,"priority":3}"#, "its priority is 3: the highest of this queue is 0"),
        (&[], r#"{"payload":1}"#, r#"{"payload":2,"key":"a"}"#, "it has a key, and this queue has no keys"),
        (&[], r#"{"payload":1}"#, r#"{"payload":2,"unique":"a"}"#, "this queue keeps no unique keys"),
        (&["--partitions", "2"], r#"{"payload":1,"key":"a"}"#, r#"{"payload":2}"#, "it has no key"),
    ];
    for (settings, good, bad, why) in cases {
        let trunkline = Trunkline::with_queue(&[&["--type", "int4"], settings].concat());
        let output = trunkline
            .fed(&["enqueue", "q", "--json-lines", "-", "--bad-lines", "skip"], format!("{bad}\n{good}\n").as_bytes());
        assert!(output.status.success() && output.stdout == b"1\n", "{}", error(&output));
        assert!(error(&output).contains("bad line 1: ") && error(&output).contains(why), "{}", error(&output));
    }
}

#[test]
fn option_that_the_queue_cannot_have_makes_no_line_bad() {
    let trunkline = Trunkline::with_queue(&["--type", "int4"]);
    for (form, line) in [("--lines", "1"), ("--json-lines", r#"{"payload":1}"#)] {
        for option in [["--priority", "3"], ["--key", "a"], ["--unique", "a"]] {
            let args = [&["enqueue", "q", form, "-", "--bad-lines", "skip"], &option[..]].concat();
            let output = trunkline.fed(&args, line.as_bytes());
            assert_eq!(output.status.code(), Some(1), "{option:?}: {}", error(&output));
            assert!(!error(&output).contains("bad line"), "{option:?}: {}", error(&output));
        }
    }
}
