use crate::fixture::{Trunkline, sql};

/// Creates a queue with four dead letters, with a maximum of one attempt.
fn with_dead() -> (Trunkline, Vec<String>) {
    let trunkline = Trunkline::with_queue(&["--type", "text", "--max-attempts", "1"]);
    let ids = trunkline.lines(&["enqueue", "q", "a", "b", "c", "d"]);
    sql(&trunkline.url, "select trunkline.retry('q', id, attempt, '0', 'no such street') from trunkline.lease('q', 4)");
    (trunkline, ids)
}

#[test]
fn dead_letters_are_listed_page_by_page() {
    let (trunkline, ids) = with_dead();
    let first = trunkline.json(&["dead", "list", "q", "-n", "3", "--json"]);
    assert_eq!(first.iter().map(|letter| &letter["payload"]).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(first[0]["error"] == "no such street" && first[0]["attempt"] == 1);
    let next = trunkline.json(&["dead", "list", "q", "--after", &ids[2], "--json"]);
    assert!(next.len() == 1 && next[0]["id"].as_i64() == ids[3].parse().ok());
    assert!(trunkline.ok(&["dead", "list", "q"]).contains("no such street"));
}

#[test]
fn dead_letters_are_replayed_and_discarded_some_and_all() {
    let (trunkline, ids) = with_dead();
    assert_eq!(trunkline.lines(&["dead", "replay", "q", &ids[1]]), ["1"]);
    assert_eq!(trunkline.lines(&["dequeue", "q"]), ["b"]);
    assert_eq!(trunkline.lines(&["dead", "discard", "q", &ids[0], "7"]), ["1"]);
    assert_eq!(trunkline.lines(&["dead", "replay", "q", "--all"]), ["2"]);
    assert_eq!(trunkline.lines(&["dequeue", "q"]), ["c", "d"]);
    assert_eq!(trunkline.lines(&["dead", "discard", "q", "--all", "--yes"]), ["0"]);
}

#[test]
fn deletion_of_everything_needs_confirmation() {
    let (trunkline, _) = with_dead();
    trunkline.ok(&["enqueue", "q", "x", "y"]);
    sql(&trunkline.url, "select trunkline.archive('q', id, attempt) from trunkline.lease('q', 1)");
    for args in [
        &["dead", "discard", "q", "--all"][..],
        &["purge", "q"],
        &["prune", "q", "--older-than", "0"],
        &["queue", "drop", "q"],
        &["teardown"],
    ] {
        let (code, error) = trunkline.fails(args);
        assert!(code == 2 && error.contains("hint: --yes"), "{args:?}: {error}");
        assert!(error.contains(&format!(" in {}", trunkline.url)), "{args:?}: {error}");
    }
    let secret = format!("{} password=secret schema=trial", trunkline.url);
    let (_, error) = trunkline.fails(&["teardown", "--database-url", &secret]);
    let place = format!("remove schema \"trial\" in {} schema=trial, with", trunkline.url);
    assert!(error.contains(&place) && !error.contains("secret"), "{error}");
    let stats = trunkline.json(&["stats", "--json"]).remove(0);
    assert_eq!((&stats["dead"], &stats["messages"], &stats["archived"]), (&4.into(), &1.into(), &1.into()));
    assert_eq!(trunkline.lines(&["prune", "q", "--older-than", "1h"]), ["0"], "an age says what goes");
    for (args, count) in [
        (&["dead", "discard", "q", "--all", "--yes"][..], "4"),
        (&["prune", "q", "--older-than", "0", "--yes"], "1"),
        (&["purge", "q", "--yes"], "1"),
    ] {
        assert_eq!(trunkline.lines(args), [count], "{args:?}");
    }
}

#[test]
fn an_error_obeys_no_terminal_and_stays_on_its_line() {
    let trunkline = Trunkline::with_queue(&["--type", "text", "--max-attempts", "2"]);
    trunkline.ok(&["enqueue", "q", "a\u{1b}[2J\nb"]);
    let fail =
        "select trunkline.retry('q', id, attempt, '0', E'one\\ntwo \\x1b]0;mine\\x07') from trunkline.lease('q', 1)";
    for table in ["peek", "dead list"] {
        sql(&trunkline.url, fail);
        let args: Vec<&str> = table.split(' ').chain(["q"]).collect();
        let lines = trunkline.lines(&args);
        assert!(lines.len() == 2 && lines[1].contains("one two  ]0;mine"), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains(|c: char| c.is_control())), "{lines:?}");
        let exact = trunkline.json(&[&args[..], &["--json"]].concat()).remove(0);
        assert_eq!(
            (&exact["error"], &exact["payload"]),
            (&"one\ntwo \u{1b}]0;mine\u{7}".into(), &"a\u{1b}[2J\nb".into())
        );
    }
    // An error from the server, which repeats its input, is printed without control characters,
    // too.
    trunkline.ok(&["queue", "create", "json", "--type", "jsonb"]);
    let (_, error) = trunkline.fails(&["enqueue", "json", "\u{1b}[2J"]);
    assert!(error.contains("invalid input syntax") && !error.contains('\u{1b}'), "{error}");
}

#[test]
fn id_of_no_dead_letter_is_refused() {
    let (trunkline, _) = with_dead();
    let (code, error) = trunkline.fails(&["dead", "replay", "q", "7"]);
    assert!(code == 1 && error.contains("dead list q"), "{error}");
    for verb in ["replay", "discard"] {
        let (code, error) = trunkline.fails(&["dead", verb, "q"]);
        assert!(code == 2 && error.contains(&format!("trunkline dead {verb} [OPTIONS] <QUEUE> --all")), "{error}");
    }
    assert_eq!(trunkline.fails(&["dead", "discard", "q", "7", "--all"]).0, 2);
}

#[test]
fn a_dead_letter_without_a_payload_is_shown_and_discarded() {
    let (trunkline, ids) = with_dead();
    sql(
        &trunkline.url,
        "insert into trunkline.dead_q (id, enqueued_at, attempt, error) values (7, now(), 1, 'malformed')",
    );
    let letters = trunkline.json(&["dead", "list", "q", "--json"]);
    assert_eq!(letters.iter().map(|letter| &letter["payload"]).collect::<Vec<_>>()[1..], ["a", "b", "c", "d"]);
    assert!(letters[0]["id"] == 7 && letters[0]["payload"].is_null() && letters[0]["error"] == "malformed");
    let table = trunkline.lines(&["dead", "list", "q"]);
    assert!(table.len() == 2 + ids.len() && table[1].contains("(unreadable: it is null"), "{table:?}");
    assert_eq!(trunkline.lines(&["dead", "discard", "q", "7"]), ["1"]);
}
