//! Times and metadata on the command line.

use crate::fixture::{Folder, Trunkline, sql};

#[test]
fn arguments_give_messages_due_time_and_metadata() {
    let (trunkline, folder) = (Trunkline::with_queue(&["--type", "text"]), Folder::new());
    let path = folder.join("lines");
    std::fs::write(&path, "two\nthree\n").expect("it can be written");
    let beside =
        ["--at", "2090-01-01T10:00:00.5+02:00", "--with", "tenant=acme", "--with", "note=a=b", "--with", "none="];
    for from in [&["one"][..], &["--lines", path.to_str().expect("its name is text")]] {
        trunkline.ok(&[&["enqueue", "q"], from, &beside].concat());
    }
    let peeked = trunkline.json(&["peek", "q", "--json"]);
    assert_eq!(peeked.iter().map(|message| &message["payload"]).collect::<Vec<_>>(), ["one", "two", "three"]);
    for message in peeked {
        assert_eq!(message["due_at"], "2090-01-01T08:00:00.500000Z");
        assert_eq!(message["metadata"], serde_json::json!({"tenant": "acme", "note": "a=b", "none": ""}));
        assert!(message["state"] == "delayed" && message["attempt"] == 0, "{message}");
    }
    trunkline.ok(&["enqueue", "q", "now", "--at", "2020-01-01T00:00:00Z"]);
    assert_eq!(trunkline.lines(&["dequeue", "q"]), ["now"]);
    let (code, error) = trunkline.fails(&["enqueue", "q", "x", "--with", "tenant=acme", "--with", "tenant=other"]);
    assert!(code == 2 && error.contains("--with sets \"tenant\" more than once"), "{error}");
}

#[test]
fn metadata_is_shown_wherever_the_message_is() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    let id = trunkline.lines(&["enqueue", "q", "x", "--with", "tenant=acme", "--with", "bell=\u{7}"]).remove(0);
    let shown = |args: &[&str]| {
        let table = trunkline.lines(args);
        assert!(table.len() == 2 && table[1].contains("bell=  tenant=acme"), "{args:?}: {table:?}");
        let exact = trunkline.json(&[args, &["--json"]].concat()).remove(0);
        assert_eq!(exact["metadata"], serde_json::json!({"tenant": "acme", "bell": "\u{7}"}), "{args:?}");
    };
    shown(&["peek", "q"]);
    shown(&["find", "q", &id]);
    assert!(trunkline.lines(&["peek", "q"])[1].contains("  due  "));
    sql(&trunkline.url, "select trunkline.bury('q', id, attempt, 'hopeless') from trunkline.lease('q')");
    shown(&["dead", "list", "q"]);
    shown(&["find", "q", &id]);
    trunkline.ok(&["dead", "replay", "q", "--all"]);
    trunkline.ok(&["dequeue", "q", "--archive"]);
    shown(&["archive", "q"]);
    shown(&["find", "q", &id]);
}

#[test]
fn columns_of_the_table_get_values() {
    let (trunkline, folder) = (Trunkline::with_queue(&["--type", "text"]), Folder::new());
    let path = folder.join("lines");
    std::fs::write(&path, r#"{"payload": "two"}"#.to_owned() + "\n" + r#"{"payload": "three", "columns": {"nr": 3}}"#)
        .expect("it can be written");
    sql(&trunkline.url, "alter table trunkline.queue_q add column tenant text default 'none', add column nr int");
    trunkline.ok(&["enqueue", "q", "one", "--column", "tenant=a=b"]);
    let lines = path.to_str().expect("its name is text");
    trunkline.ok(&["enqueue", "q", "--json-lines", lines, "--column", "tenant=acme"]);
    sql(
        &trunkline.url,
        "do $$ begin assert (select array_agg(row(payload, tenant, nr)::text order by payload) from trunkline.queue_q)
             = array['({one},a=b,)', '({three},acme,3)', '({two},acme,)'], 'the values'; end $$",
    );
    let (_, error) = trunkline.fails(&["enqueue", "q", "four", "--column", "tenent=acme"]);
    assert!(error.contains("no column tenent that accepts values") && error.contains("alter table"), "{error}");
}

#[test]
fn peek_shows_the_state_of_each_message() {
    let trunkline = Trunkline::with_queue(&["--type", "jsonb"]);
    trunkline.ok(&["enqueue", "q", "1"]);
    sql(&trunkline.url, "select trunkline.lease('q')");
    trunkline.ok(&["enqueue", "q", "2"]);
    sql(&trunkline.url, "select trunkline.retry('q', id, attempt, '1 hour', 'no') from trunkline.lease('q')");
    trunkline.ok(&["enqueue", "q", "3"]);
    trunkline.ok(&["enqueue", "q", "4", "--delay", "1d"]);
    let peeked = trunkline.json(&["peek", "q", "--json"]);
    let found: Vec<String> =
        peeked.iter().map(|message| format!("{} {}", message["payload"], message["state"])).collect();
    assert_eq!(found, ["3 \"due\"", "1 \"leased\"", "2 \"retrying\"", "4 \"delayed\""]);
    let states: Vec<String> = trunkline.lines(&["peek", "q"]);
    assert!(
        states[0].contains("state") && states[2].contains("leased") && states[3].contains("retrying"),
        "{states:?}"
    );
}

#[test]
fn bad_metadata_or_due_time_is_refused_with_advice() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    for (args, told) in [
        (["--with", "tenant"], "expected a name and a value, such as tenant=acme"),
        (["--with", "=acme"], "expected a name and a value, such as tenant=acme"),
        (["--at", "tomorrow"], "2030-01-01T08:00:00Z"),
    ] {
        let (code, error) = trunkline.fails(&[&["enqueue", "q", "x"][..], &args].concat());
        assert!(code == 2 && error.contains(told), "{error}");
    }
    assert_eq!(trunkline.fails(&["enqueue", "q", "x", "--delay", "1h", "--at", "2090-01-01T08:00:00Z"]).0, 2);
    let large = format!("a={}", "x".repeat(17_000));
    let (code, error) = trunkline.fails(&["enqueue", "q", "x", "--with", &large]);
    let told = "error: the metadata cannot be written as jsonb: 17008 bytes are too many: at most 16384; put it into the payload";
    assert!(code == 1 && error.contains(told), "{error}");
    assert!(trunkline.json(&["peek", "q", "--json"]).is_empty());
}
