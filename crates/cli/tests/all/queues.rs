use std::cell::Cell;

use crate::fixture::{Trunkline, eventually, failed, rows, sql};

#[test]
fn a_queue_is_created_listed_described_and_dropped() {
    let trunkline = Trunkline::new();
    assert!(trunkline.json(&["queue", "list", "--json"]).is_empty());
    let settings = ["--type", "jsonb", "--max-attempts", "3", "--lease", "1.5", "--max-batch", "7"];
    let create = [&["queue", "create", "emails"][..], &settings].concat();
    trunkline.ok(&create);
    trunkline.ok(&create); // again, which changes nothing
    let output = trunkline.run(&["queue", "create", "bytes"]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stderr).starts_with("its payloads are bytea"));

    let listed = trunkline.json(&["queue", "list", "--json"]);
    assert_eq!(listed.iter().map(|queue| &queue["name"]).collect::<Vec<_>>(), ["bytes", "emails"]);
    let described = trunkline.json(&["queue", "describe", "emails", "--json"]).remove(0);
    let listed_1 = listed[1].as_object().expect("an object");
    assert!(listed_1.iter().all(|(name, value)| described[name] == *value), "{described}");
    assert_eq!((&described["type"], &described["max_attempts"]), (&"jsonb".into(), &3.into()));
    assert_eq!((&described["lease_s"], &described["max_batch"]), (&1.5.into(), &7.into()));
    assert_eq!((&listed[0]["type"], &listed[0]["max_attempts"]), (&"bytea".into(), &10.into()));
    let table = trunkline.lines(&["queue", "list"]);
    assert!(table.len() == 3 && table[0].starts_with("name") && table[2].starts_with("emails"), "{table:?}");

    let (code, error) = trunkline.fails(&["queue", "drop", "emails"]);
    assert_eq!(code, 2);
    assert!(error.contains("--yes"), "{error}");
    trunkline.ok(&["queue", "drop", "emails", "--yes"]);
    assert_eq!(trunkline.lines(&["queue", "list", "--json"]).len(), 1);
}

#[test]
fn a_queue_is_altered_and_says_what_holds_then() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    let altered = trunkline.json(&["queue", "alter", "q", "--lease", "1m", "--json"]).remove(0);
    assert_eq!(
        (&altered["lease_s"], &altered["max_attempts"], &altered["max_batch"]),
        (&60.0.into(), &10.into(), &1024.into())
    );
    let table = trunkline.lines(&["queue", "alter", "q", "--max-attempts", "1", "--max-batch", "2"]);
    assert_eq!(table, trunkline.lines(&["queue", "describe", "q"]));
    let altered = trunkline.json(&["queue", "describe", "q", "--json"]).remove(0);
    assert_eq!(
        (&altered["lease_s"], &altered["max_attempts"], &altered["max_batch"]),
        (&60.0.into(), &1.into(), &2.into())
    );
    // The settings also apply to messages.
    trunkline.ok(&["enqueue", "q", "a", "b", "c"]);
    assert_eq!(trunkline.json(&["stats", "q", "--json"])[0]["rows"], 2);
    sql(&trunkline.url, "select trunkline.retry('q', id, attempt, '0', 'once') from trunkline.lease('q', 3)");
    assert_eq!(trunkline.json(&["stats", "q", "--json"])[0]["dead"], 3);
}

#[test]
fn queue_with_keys_gets_more_partitions_and_rate_per_key() {
    let trunkline = Trunkline::with_queue(&["--type", "text", "--partitions", "4"]);
    trunkline.ok(&["enqueue", "q", "--key", "a", "one"]);
    assert_eq!(trunkline.json(&["queue", "alter", "q", "--partitions", "8", "--json"])[0]["partitions"], 8);
    trunkline.ok(&["enqueue", "q", "--key", "a", "two"]);
    trunkline.ok(&["queue", "limit", "q", "--key-per-second", "2.5", "--key-burst", "5"]);
    let now_is = trunkline.json(&["queue", "describe", "q", "--json"]).remove(0);
    assert_eq!((&now_is["key_per_second"], &now_is["key_burst"]), (&2.5.into(), &5.into()));
    trunkline.ok(&["queue", "limit", "q", "--none"]);
    assert!(trunkline.json(&["queue", "describe", "q", "--json"])[0]["key_per_second"].is_null());
    let seen = trunkline.json(&["peek", "q", "--json"]);
    assert!(seen.len() == 2 && seen.iter().all(|message| message["key"] == "a"), "{seen:?}");
    trunkline.ok(&["queue", "create", "plain", "--type", "text"]);
    for (args, told) in [
        (&["queue", "alter", "q", "--partitions", "12"][..], "multiple of 8"),
        (&["queue", "alter", "plain", "--partitions", "8"], "queue create NAME --partitions 64"),
        (&["queue", "limit", "q", "--key-burst", "1"], "--key-per-second"),
        (&["queue", "limit", "q", "--key-per-second", "0"], "out of bounds"),
        (
            &["queue", "limit", "plain", "--key-per-second", "1"],
            "Pass --per-second, for the queue; or create one with `trunkline queue create NAME --partitions 64`",
        ),
    ] {
        let (_, error) = trunkline.fails(args);
        assert!(error.contains(told), "{args:?}: {error}");
    }
}

#[test]
fn wrong_alterations_leave_the_queue_as_it_was() {
    let trunkline = Trunkline::with_queue(&[]);
    let before = trunkline.ok(&["queue", "describe", "q"]);
    let wrong: [(&[&str], i32, &str); 6] = [
        (&["q"], 2, "--max-attempts <N>|--lease <TIME>|--max-batch <N>|--aging <TIME>"),
        (&["q", "--lease", "0"], 2, "it must be more than zero"),
        (&["q", "--max-attempts", "0"], 2, "1..=2147483647"),
        (&["q", "--type", "text"], 2, "unexpected argument '--type'"),
        (&["q", "--max-attempts", "3", "--max-batch", "1025"], 1, "max_batch 1 to 1024"),
        (&["nope", "--max-batch", "1"], 1, "there is no queue \"nope\""),
    ];
    for (args, wanted, told) in wrong {
        let (code, error) = trunkline.fails(&[&["queue", "alter"], args].concat());
        assert!(code == wanted && error.contains(told), "{args:?}: {error}");
    }
    assert_eq!(trunkline.ok(&["queue", "describe", "q"]), before);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
    let alter = ["queue", "alter", "q", "--max-batch", "7"];
    let output = trunkline.command(&alter).stdout(full).output().expect("the program runs");
    let (code, error) = failed(&output, &alter);
    assert!(code == 1 && error.contains("hint: the change was made; do not repeat the command"), "{error}");
    assert_eq!(trunkline.json(&["queue", "describe", "q", "--json"])[0]["max_batch"], 7);
}

#[test]
fn settings_out_of_bounds_are_errors() {
    let trunkline = Trunkline::new();
    trunkline.ok(&["queue", "create", "q"]);
    let wrong: [&[&str]; 5] = [
        &["no/name"],
        &["q", "--max-attempts", "3"], // a queue exists with other settings
        &["r", "--type", "no_such_type"],
        &["r", "--max-batch", "1025"],
        &["r", "--lease", "400d"],
    ];
    for args in wrong {
        let (code, error) = trunkline.fails(&[&["queue", "create"], args].concat());
        assert!(code == 1 && error.contains("error: "), "{args:?}: {error}");
    }
    for (args, told) in [
        (["--lease", "-1"], "invalid value '-1' for '--lease <TIME>': expected 0 to 36500 days"),
        (["--lease", "-1h"], "invalid value '-1h' for '--lease <TIME>': expected a time"),
        (["--max-batch", "-1"], "invalid value '-1' for '--max-batch <N>': expected a whole number"),
        (["--lease", "--json"], "'--json' for '--lease <TIME>'"),
        (["--lease", "0"], "invalid value '0' for '--lease <TIME>': it must be more than zero"),
        (["--lease", "0ms"], "invalid value '0ms' for '--lease <TIME>': it must be more than zero"),
        (["--lease", "36501d"], "expected 0 to 36500 days"),
        (["--lease", "soon"], "250ms, 90s, 5m, 1h30m, 7d"),
        (["--max-attempts", "0"], "1..=2147483647"),
        (["--max-attempts", "3000000000"], "1..=2147483647"),
    ] {
        let (code, error) = trunkline.fails(&[&["queue", "create", "r"][..], &args].concat());
        assert!(code == 2 && error.contains(told), "{args:?}: {error}");
    }
    assert_eq!(trunkline.json(&["queue", "list", "--json"]).len(), 1, "none of them was created");
    trunkline.ok(&["queue", "create", "long", "--lease", "1h30m", "--max-attempts", "2147483647"]);
    let described = trunkline.json(&["queue", "describe", "long", "--json"]).remove(0);
    assert_eq!((&described["lease_s"], &described["max_attempts"]), (&5400.0.into(), &2_147_483_647_i64.into()));
}

#[test]
fn messages_get_priorities_from_arguments_and_from_lines() {
    let trunkline = Trunkline::with_queue(&["--type", "text", "--priorities", "3", "--aging", "1h"]);
    let described = trunkline.json(&["queue", "describe", "q", "--json"]).remove(0);
    assert_eq!((&described["priorities"], &described["aging_s"]), (&3.into(), &3600.0.into()));
    trunkline.ok(&["enqueue", "q", "low", "low too"]);
    trunkline.ok(&["enqueue", "q", "--priority", "2", "high"]);
    let lines = b"{\"payload\": \"middle\", \"priority\": 1}\n{\"payload\": \"high too\"}\n";
    assert!(trunkline.fed(&["enqueue", "q", "--priority", "2", "--json-lines", "-"], lines).status.success());
    // Printed messages can be enqueued into another queue with their priorities. A queue without
    // priorities accepts only messages of the lowest priority.
    let peeked = trunkline.ok(&["peek", "q", "--json"]);
    assert!(peeked.contains(r#""error":null,"priority":2,"metadata""#), "{peeked}");
    trunkline.ok(&["queue", "create", "r", "--type", "text", "--priorities", "5"]);
    assert!(trunkline.fed(&["enqueue", "r", "--json-lines", "-"], peeked.as_bytes()).status.success());
    let of = |queue| {
        let peeked = trunkline.json(&["peek", queue, "--json"]);
        let mut all: Vec<_> =
            peeked.iter().map(|message| (message["payload"].to_string(), message["priority"].to_string())).collect();
        all.sort();
        all
    };
    assert_eq!(of("r"), of("q"));
    assert_eq!(of("r").iter().map(|(_, priority)| &**priority).collect::<Vec<_>>(), ["2", "2", "0", "0", "1"]);
    assert!(trunkline.lines(&["peek", "q"])[0].contains("attempt  priority  payload"));
    trunkline.ok(&["queue", "create", "plain", "--type", "text"]);
    trunkline.ok(&["enqueue", "plain", "x"]);
    assert!(!trunkline.ok(&["peek", "plain", "--json"]).contains("priority"));
    assert!(!trunkline.ok(&["peek", "plain"]).contains("priority"));
    assert_eq!(trunkline.lines(&["dequeue", "q", "-n", "9"]), ["high", "high too", "middle", "low", "low too"]);
    for (arguments, word) in [
        (&["enqueue", "q", "--priority", "3", "no"][..], "from 0 to 2"),
        (&["enqueue", "q", "--priority", "-1", "no"], "-1"),
        (&["queue", "create", "bad", "--priorities", "11"], "priorities 1 to 10"),
    ] {
        let (_, error) = trunkline.fails(arguments);
        assert!(error.contains(word), "{arguments:?}: {error}");
    }
    let output =
        trunkline.fed(&["enqueue", "q", "--json-lines", "-"], b"{\"payload\": \"x\", \"priority\": \"high\"}\n");
    let (_, error) = failed(&output, &["enqueue"]);
    assert!(error.contains("a whole number from 0 to 9"), "{error}");
    trunkline.ok(&["queue", "alter", "q", "--aging", "36500d"]);
    assert_eq!(trunkline.json(&["queue", "describe", "q", "--json"])[0]["aging_s"], 3_153_600_000.0);
}

#[test]
fn unique_message_is_there_once_from_arguments_and_from_lines() {
    let trunkline = Trunkline::with_queue(&["--type", "text", "--uniqueness"]);
    assert_eq!(trunkline.json(&["queue", "describe", "q", "--json"])[0]["uniqueness"], true);
    let first = trunkline.lines(&["enqueue", "q", "--unique", "a", "one"]);
    assert_eq!(trunkline.lines(&["enqueue", "q", "--unique", "a", "two", "three"]), [&*first[0], &*first[0]]);
    for option in [&["--replace"][..], &["--unique-for", "1h"]] {
        let (_, error) = trunkline.fails(&[&["enqueue", "q", "no key"], option].concat());
        assert!(error.contains("add --unique KEY"), "{error}");
    }
    trunkline.ok(&["enqueue", "q", "--unique", "a", "--replace", "--with", "b=c", "replaced"]);
    let lines = b"{\"payload\": \"new\", \"unique\": \"b\"}\n{\"payload\": \"none\", \"unique\": \"a\"}\n{\"payload\": \"plain\"}\n";
    assert!(trunkline.fed(&["enqueue", "q", "--unique-for", "1h", "--json-lines", "-"], lines).status.success());
    assert_eq!(trunkline.lines(&["dequeue", "q", "-n", "9"]), ["replaced", "new", "plain"]);
    trunkline.ok(&["enqueue", "q", "--unique", "b", "its hour has not passed"]);
    assert!(trunkline.lines(&["peek", "q"]).iter().all(|line| !line.contains("hour")));
    let output = trunkline.fed(&["enqueue", "q", "--json-lines", "-"], b"{\"payload\": \"x\", \"unique\": 7}\n");
    assert!(failed(&output, &["enqueue"]).1.contains("expected a string"));
    trunkline.ok(&["queue", "create", "plain", "--type", "text"]);
    assert!(trunkline.fails(&["enqueue", "plain", "--unique", "a", "x"]).1.contains("keeps no unique keys"));
}

#[test]
fn sixty_queues_are_counted_with_few_transactions() {
    let trunkline = Trunkline::new();
    sql(&trunkline.url, "select trunkline.create_queue('q' || n, 'int8') from generate_series(1, 60) n");
    sql(&trunkline.url, "select trunkline.enqueue_many('q7', array[1, 2, 3]::int8[], delay => '1 hour')");
    let others = "select count(*) = 1 from pg_stat_activity where datname = current_database()";
    let transactions = "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()";
    let polls = Cell::new(0);
    let number = || {
        eventually("other sessions have ended", || {
            polls.set(polls.get() + 1);
            rows(&trunkline.url, others) == ["t"]
        });
        rows(&trunkline.url, transactions)[0].parse::<i64>().expect("a number")
    };
    // Uses the smallest of five counts, because autovacuum may work in the database during some of
    // them.
    let counts = (0..5).map(|_| {
        let (before, stats, asked) = (number(), trunkline.json(&["stats", "--json"]), polls.get());
        (number() - before - 2 * (polls.get() - asked), stats) // each new session counts as a transaction, too
    });
    let (used, stats) = counts.min_by_key(|(used, _)| *used).expect("five counts");
    let names: Vec<&str> = stats.iter().filter_map(|queue| queue["queue"].as_str()).collect();
    assert!(names.len() == 60 && names.is_sorted(), "{names:?}");
    let of = |name: &str| stats.iter().find(|queue| queue["queue"] == name).expect(name).clone();
    assert_eq!((&of("q7")["delayed"], &of("q7")["rows"], &of("q8")["messages"]), (&3.into(), &1.into(), &0.into()));
    assert!(used < 40, "{used} transactions");
    let some = trunkline.json(&["stats", "q7", "q8", "q7", "--json"]);
    assert_eq!(some.iter().map(|queue| &queue["messages"]).collect::<Vec<_>>(), [3, 0, 3]);
    let (code, error) = trunkline.fails(&["stats", "q1", "nope"]);
    assert!(code == 1 && error.contains("there is no queue \"nope\""), "{error}");
}

#[test]
fn settings_of_another_kind_of_queue_are_refused() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    for (option, value, lacks) in [("--per-key", "2", "has no keys"), ("--aging", "5m", "has no priorities")] {
        let (code, error) = trunkline.fails(&["queue", "alter", "q", option, value]);
        assert!(code == 1 && error.contains(lacks), "{error}");
    }
    trunkline.ok(&["queue", "create", "q", "--type", "text"]);
    trunkline.ok(&["queue", "create", "keyed", "--type", "text", "--partitions", "2"]);
    let (_, error) = trunkline.fails(&["dequeue", "keyed"]);
    assert!(error.contains("Run a worker with `trunkline work`."), "{error}");
}
