//! The whole of standard input, or a whole file, becomes one message.

use std::{fs, io::Write};

use crate::fixture::{Folder, Trunkline, failed};

fn bytes(trunkline: &Trunkline) -> Vec<Vec<u8>> {
    let output = trunkline.run(&["dequeue", "q", "--json"]);
    let lines = String::from_utf8(output.stdout).expect("text");
    let payload = |line: &str| {
        let object: serde_json::Value = serde_json::from_str(line).expect("JSON");
        match (object["payload"].as_str(), object["payload_hex"].as_str()) {
            (Some(text), _) => text.as_bytes().to_vec(),
            (None, Some(digits)) => digits.as_bytes().to_vec(),
            _ => panic!("no payload: {line}"),
        }
    };
    lines.lines().map(payload).collect()
}

#[test]
fn a_hyphen_is_all_of_standard_input() {
    let trunkline = Trunkline::with_queue(&[]);
    let output = trunkline.fed(&["enqueue", "q", "before", "-", "@behind"], b"two\nlines\n");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(bytes(&trunkline), [&b"before"[..], b"two\nlines\n", b"@behind"]);
    // An empty input is also a message, and so is an input that consists of one hyphen.
    assert!(trunkline.fed(&["enqueue", "q", "-"], b"").status.success());
    assert!(trunkline.fed(&["enqueue", "q", "-"], b"-").status.success());
    assert_eq!(bytes(&trunkline), [&b""[..], b"-"]);
    trunkline.ok(&["queue", "create", "ticks", "--type", "text"]);
    assert!(trunkline.fed(&["schedule", "set", "s", "ticks", "@daily", "-"], b"of the day").status.success());
    assert_eq!(trunkline.json(&["schedule", "list", "--json"])[0]["payload"], "of the day");
}

#[test]
fn a_file_is_one_message_as_it_is() {
    let (trunkline, folder) = (Trunkline::with_queue(&[]), Folder::new());
    let (one, other) = (folder.join("one"), folder.join("other"));
    fs::write(&one, b"a\nb\r\n").expect("it can be written");
    fs::write(&other, [0xff, 0]).expect("it can be written");
    let (one, other) = (one.to_str().expect("text"), other.to_str().expect("text"));
    assert_eq!(trunkline.lines(&["enqueue", "q", "--file", one, "--file", other]).len(), 2);
    assert_eq!(bytes(&trunkline), [&b"a\nb\r\n"[..], b"ff00"]);
    let output = trunkline.fed(&["enqueue", "q", "--file", "-"], b"fed");
    assert!(output.status.success());
    assert_eq!(bytes(&trunkline), [b"fed"]);
}

#[test]
fn input_that_is_no_message_is_refused_as_a_whole() {
    let (trunkline, folder) = (Trunkline::with_queue(&[]), Folder::new());
    let large = folder.join("large");
    let mut file = fs::File::create(&large).expect("it can be written");
    (0..65).try_for_each(|_| file.write_all(&vec![b'x'; 1 << 20])).expect("it can be written");
    let large = large.to_str().expect("text");
    let mut enqueue = trunkline.command(&["enqueue", "q", "-"]);
    let output = enqueue.stdin(fs::File::open(large).expect("it is there")).output().expect("it runs");
    let (code, error) = failed(&output, &["enqueue", "q", "-"]);
    assert!(code == 1 && error.contains("standard input is longer than a message can be"), "{error}");
    for (args, wanted, told) in [
        (&["--file", large][..], 1, "is longer than a message can be"),
        (&["small", "--file", "/nowhere/at all"], 2, "cannot be used with"),
        (&["--file", "/nowhere/at all"], 1, "cannot read /nowhere/at all"),
        (&["--file", "/"], 1, "cannot read /"),
        (&["-", "-"], 2, "named twice"),
        (&["--file", "-", "--file", "-"], 2, "named twice"),
        (&["--file", "x", "--bad-lines", "skip"], 2, "cannot be used with"),
    ] {
        let (code, error) = trunkline.fails(&[&["enqueue", "q"], args].concat());
        assert!(code == wanted && error.contains(told), "{args:?}: {error}");
    }
    assert_eq!(trunkline.json(&["stats", "--json"])[0]["messages"], 0);
}
