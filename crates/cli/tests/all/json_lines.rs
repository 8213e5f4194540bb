//! Messages as lines of JSON. Printed lines can be enqueued again, and a line that is not a message
//! is a bad line.

use std::{collections::BTreeSet, fs, io::Write, process::Output};

use serde_json::Value;

use crate::fixture::{Folder, Trunkline, eventually, rows, sql};

/// Types, and payloads in SQL that JSON represents in an unusual way.
const PAYLOADS: [(&str, &[&str]); 7] = [
    ("text", &["E'two\\nlines, \"quoted\", na\u{ef}ve \\\\ \u{2028}'", "''", "'null'", "'{\"a\": 1}'"]),
    (
        "jsonb",
        &["'{\"n\": 1.10000000000000000001, \"a\": [null, \"\\n\"]}'", "'\"text\"'", "'null'", "'9007199254740993'"],
    ),
    ("json", &["E'{\"b\":   1,\"b\": 2}'", "'[]'"]),
    ("bytea", &["'\\x00ff'", "'\\x7b7d0a00'", "''"]),
    ("int8", &["9007199254740993"]),
    ("float8", &["0.1", "'NaN'", "1e300"]),
    ("bool", &["true"]),
];

/// Creates two queues of this payload type. The payloads are in the first queue, and the last
/// payload has metadata.
fn queues(payload: &str, payloads: &[&str]) -> Trunkline {
    let trunkline = Trunkline::new();
    for name in ["q", "r"] {
        trunkline.ok(&["queue", "create", name, "--type", payload]);
    }
    for (at, text) in payloads.iter().enumerate() {
        let metadata = if at + 1 == payloads.len() { "'{\"tenant\": \"ac\\nme\", \"\": \"\u{fc}\"}'" } else { "null" };
        let call = format!("select trunkline.enqueue('q', ({text})::{payload}, metadata => {metadata})");
        sql(&trunkline.url, &call);
    }
    trunkline
}

fn all(trunkline: &Trunkline, queue: &str, what: &str) -> Vec<String> {
    rows(
        &trunkline.url,
        &format!("select ({what})::text from trunkline.\"messages_{queue}\" m order by m.due_at, m.id"),
    )
}

fn error(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

fn enqueued(output: &Output) -> &str {
    assert!(output.status.success(), "{}", error(output));
    std::str::from_utf8(&output.stdout).expect("text").trim_end()
}

#[test]
fn dequeued_messages_are_enqueued_elsewhere_with_payload_and_metadata() {
    for (payload, payloads) in PAYLOADS {
        let trunkline = queues(payload, payloads);
        let before = all(&trunkline, "q", "row(m.payload::text, m.metadata)");
        let printed = trunkline.ok(&["dequeue", "q", "--json"]);
        for line in printed.lines() {
            let line: Value = serde_json::from_str(line).expect("each line is JSON");
            let fields: BTreeSet<&str> = line.as_object().expect("an object").keys().map(String::as_str).collect();
            let wanted = ["attempt", "enqueued_at", "id", "metadata"];
            assert!(wanted.iter().all(|name| fields.contains(name)) && fields.len() == 5, "{line}");
            assert!(line["attempt"] == 1 && fields.iter().any(|name| name.starts_with("payload")), "{line}");
        }
        let output = trunkline.fed(&["enqueue", "r", "--json-lines", "-"], printed.as_bytes());
        assert_eq!(enqueued(&output), payloads.len().to_string(), "{payload}");
        assert_eq!(all(&trunkline, "r", "row(m.payload::text, m.metadata)"), before, "{payload}");
        assert_eq!(all(&trunkline, "r", "m.due_at <= clock_timestamp()"), vec!["true"; before.len()], "{payload}");
    }
}

#[test]
fn peeked_messages_are_enqueued_elsewhere_with_due_time() {
    for (payload, payloads) in PAYLOADS {
        let trunkline = queues(payload, payloads);
        sql(
            &trunkline.url,
            "update trunkline.queue_q set due_at = timestamptz '2090-01-01 08:00:00.000001+00' + id * interval '1 us'",
        );
        let printed = trunkline.ok(&["peek", "q", "--json"]);
        assert!(
            printed.contains("\"state\":\"delayed\",\"attempt\":0,\"due_at\":\"2090-01-01T08:00:00.00"),
            "{printed}"
        );
        let output = trunkline.fed(&["enqueue", "r", "--json-lines", "-"], printed.as_bytes());
        assert_eq!(enqueued(&output), payloads.len().to_string(), "{payload}");
        let everything = "row(m.payload::text, m.metadata, m.due_at)";
        assert_eq!(all(&trunkline, "r", everything), all(&trunkline, "q", everything), "{payload}");
    }
}

#[test]
fn line_overrides_delay_time_and_metadata_of_arguments() {
    let trunkline = Trunkline::with_queue(&["--type", "jsonb"]);
    let lines = br#"{"payload": {"n": 1}}
{"payload": "two", "delay": 7200.5, "metadata": {"a": "mine"}}
{"payload": [3], "delay": "2h", "metadata": null}
{"payload": 4, "at": "2090-01-01T10:00:00+02:00", "id": 1, "attempt": 7, "enqueued_at": "x"}
"#;
    let args = ["enqueue", "q", "--json-lines", "-", "--delay", "1h", "--with", "a=usual", "--with", "b=c=d"];
    assert_eq!(enqueued(&trunkline.fed(&args, lines)), "4");
    let hours = "round(extract(epoch from m.due_at - m.enqueued_at) / 3600) || ' ' || m.payload::text";
    let found = all(&trunkline, "q", hours);
    assert_eq!(found[..3], ["1 {\"n\": 1}", "2 [3]", "2 \"two\""]);
    assert_eq!(all(&trunkline, "q", "m.due_at at time zone 'UTC'")[3], "2090-01-01 08:00:00");
    let metadata = all(&trunkline, "q", "(m.metadata ->> 'a') || ' ' || (m.metadata ->> 'b')");
    assert_eq!(metadata, ["usual c=d", "usual c=d", "mine c=d", "usual c=d"]);
}

/// Returns lines that are not messages of a queue of jsonb, with the reasons.
fn bad() -> Vec<(String, &'static str)> {
    let bad = [
        ("{\"payload\": 1", "it is not a JSON object: EOF"),
        ("1", "it is not a JSON object"),
        ("", "it is not a JSON object"),
        ("{\"payload\": 1, \"dely\": 1}", "the field \"dely\" is unknown"),
        ("{\"delay\": 1}", "it has no payload"),
        ("{\"payload\": 1, \"delay\": 1, \"at\": \"2090-01-01T08:00:00Z\"}", "it has both delay and at"),
        ("{\"payload\": 1, \"delay\": \"soon\"}", "delay: expected a time"),
        ("{\"payload\": 1, \"metadata\": 1}", "metadata must be an object"),
        ("{\"payload\": \"\\ud800\"}", "json"), // the server detects this error
    ];
    let too_large = format!("{{\"payload\": 1, \"metadata\": {{\"a\": \"{}\"}}}}", "x".repeat(17_000));
    let bad = bad.into_iter().map(|(line, why)| (line.to_owned(), why));
    bad.chain([(too_large, "the metadata cannot be written as jsonb: 17008 bytes are too many")]).collect()
}

#[test]
fn bad_line_is_named_with_reason_after_enqueuing_earlier_ones() {
    for (line, why) in bad() {
        let trunkline = Trunkline::with_queue(&["--type", "jsonb"]);
        let lines = format!("{}{line}\n{{\"payload\": 2}}\n{line}\n", "{\"payload\": 1}\n".repeat(1_500));
        let output = trunkline.fed(&["enqueue", "q", "--json-lines", "-"], lines.as_bytes());
        let error = error(&output);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("error: line 1,501: ") && error.contains(why), "{why}: {error}");
        assert!(error.contains("hint: the 1,500 preceding lines were enqueued; --bad-lines skip"), "{error}");
        assert_eq!(all(&trunkline, "q", "m.payload"), vec!["1"; 1_500], "{why}");
    }
}

#[test]
fn bad_lines_are_skipped_or_set_aside_and_order_stays() {
    let (trunkline, folder) = (Trunkline::with_queue(&["--type", "jsonb"]), Folder::new());
    let bad = bad();
    let line = |(number, (line, _)): (usize, &(String, _))| format!("{{\"payload\": {number}}}\n{line}\n");
    let lines: String = bad.iter().enumerate().map(line).collect();
    let aside: String = bad.iter().flat_map(|(line, _)| [line, "\n"]).collect();
    let count = bad.len();
    let path = folder.join("aside");
    let path = path.to_str().expect("its name is text");
    for fate in ["skip", path] {
        let output = trunkline.fed(&["enqueue", "q", "--json-lines", "-", "--bad-lines", fate], lines.as_bytes());
        assert_eq!(enqueued(&output), count.to_string());
        let error = error(&output);
        for (number, (_, why)) in bad.iter().enumerate() {
            assert!(
                error
                    .lines()
                    .any(|said| said.starts_with(&format!("bad line {}: ", 2 * number + 2)) && said.contains(why)),
                "{why}: {error}"
            );
        }
        let numbers: Vec<String> = (0..count).map(|number| number.to_string()).collect();
        assert_eq!(trunkline.lines(&["dequeue", "q"]), numbers);
    }
    assert_eq!(fs::read_to_string(path).expect("it was written"), aside);
}

#[test]
fn a_payload_of_another_type_is_a_bad_line() {
    for (payload, json, why) in [
        ("text", "{}", "its payload is an object, and the queue's are of type text: write it as a string"),
        ("int4", "\"seven\"", "\"seven\" is not a whole number"),
        ("int4", "7.5", "\"7.5\" is not a whole number"),
        ("bytea", "null", "its payload is null"),
    ] {
        let trunkline = Trunkline::with_queue(&["--type", payload]);
        let line = format!("{{\"payload\": {json}}}");
        let output = trunkline.fed(&["enqueue", "q", "--json-lines", "-"], line.as_bytes());
        assert!(output.status.code() == Some(1) && error(&output).contains(why), "{}", error(&output));
    }
}

#[test]
fn a_line_is_enqueued_while_the_next_is_waited_for() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    let mut child = trunkline.start_fed(&["enqueue", "q", "--json-lines", "-"]);
    let mut input = child.stdin.take().expect("it is piped");
    for count in 1..=3 {
        input.write_all(b"{\"payload\": \"x\"}\n").expect("it reads its input");
        eventually("the line is a message", || all(&trunkline, "q", "m.payload").len() == count);
    }
    drop(input);
    assert_eq!(enqueued(&child.wait_with_output().expect("it ends")), "3");
}

#[test]
fn messages_come_from_one_place() {
    let trunkline = Trunkline::with_queue(&[]);
    for args in [
        &["enqueue", "q"][..],
        &["enqueue", "q", "x", "--json-lines", "-"],
        &["enqueue", "q", "--lines", "-", "--json-lines", "-"],
    ] {
        assert_eq!(trunkline.fails(args).0, 2, "{args:?}");
    }
    let (code, error) = trunkline.fails(&["enqueue", "q", "--json-lines", "/no/such/file"]);
    assert!(code == 1 && error.contains("cannot read /no/such/file"), "{error}");
}
