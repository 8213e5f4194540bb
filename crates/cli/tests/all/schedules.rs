use std::io::{BufRead, BufReader};

use crate::fixture::{Trunkline, eventually, rows, signal, sql};

#[test]
fn a_schedule_is_set_listed_paused_fired_and_dropped() {
    let trunkline = Trunkline::with_queue(&["--type", "jsonb"]);
    let set = [
        "schedule",
        "set",
        "nightly",
        "q",
        "0 3 1 1 *",
        r#"{"a": 1}"#,
        "--zone",
        "Asia/Kolkata",
        "--with",
        "tenant=acme",
    ];
    let next = trunkline.lines(&set);
    assert!(next.len() == 3 && next.iter().all(|tick| tick.ends_with("-12-31T21:30:00.000Z")), "{next:?}");
    trunkline.ok(&set); // again, which changes nothing
    let one = trunkline.json(&["schedule", "list", "--json"]).remove(0);
    assert_eq!((&one["name"], &one["queue"], &one["zone"]), (&"nightly".into(), &"q".into(), &"Asia/Kolkata".into()));
    assert_eq!(
        (&one["missed"], &one["paused"], &one["metadata"]["tenant"]),
        (&"once".into(), &false.into(), &"acme".into())
    );
    assert_eq!(
        (&one["payload"], &one["next"]),
        (&r#"{"a": 1}"#.into(), &serde_json::Value::Null),
        "no process makes ticks"
    );

    trunkline.ok(&["queue", "create", "urgent", "--type", "text", "--priorities", "3"]);
    trunkline.ok(&["schedule", "set", "alarm", "urgent", "@daily", "x", "--priority", "2"]);
    assert_eq!(
        (trunkline.json(&["schedule", "list", "--json"])[0]["priority"].clone(), one["priority"].clone()),
        (2.into(), 0.into())
    );
    assert!(trunkline.lines(&["schedule", "list"])[0].contains("priority"));
    let (_, error) = trunkline.fails(&["schedule", "set", "alarm", "q", "@daily", "{}", "--priority", "2"]);
    assert!(error.contains("priorities"), "{error}");
    trunkline.ok(&["schedule", "drop", "alarm"]);

    trunkline.ok(&["schedule", "pause", "nightly"]);
    assert!(trunkline.lines(&["schedule", "list"])[1].contains("paused"));
    let id = trunkline.lines(&["schedule", "now", "nightly"]).remove(0);
    let message = trunkline.json(&["dequeue", "q", "-n", "1", "--json"]).remove(0);
    assert_eq!((message["id"].to_string(), &message["payload"]), (id, &serde_json::json!({"a": 1})));
    assert_eq!((&message["metadata"]["schedule"], &message["metadata"]["tenant"]), (&"nightly".into(), &"acme".into()));
    trunkline.ok(&["schedule", "resume", "nightly"]);
    trunkline.ok(&["schedule", "drop", "nightly"]);
    assert!(trunkline.json(&["schedule", "list", "--json"]).is_empty());
    for verb in ["pause", "resume", "now", "drop"] {
        let (code, error) = trunkline.fails(&["schedule", verb, "nightly"]);
        assert!(code == 1 && error.contains("there is no schedule 'nightly'"), "{verb}: {error}");
    }
}

#[test]
fn bad_schedule_is_refused_with_advice() {
    let trunkline = Trunkline::with_queue(&["--type", "int8"]);
    let cases: [(&[&str], &str); 5] = [
        (&["q", "whenever", "1"], "every 90 seconds"),
        (&["q", "@daily", "1", "--zone", "Mars"], "Europe/Berlin"),
        (&["q", "@daily", "one"], "is not a whole number"),
        (&["nowhere", "@daily", "1"], "nowhere"),
        (&["q", "@daily", "1", "--missed", "twice"], "skip, once or each"),
    ];
    for (arguments, word) in cases {
        let (_, error) = trunkline.fails(&[&["schedule", "set", "s"], arguments].concat());
        assert!(error.contains(word), "{arguments:?}: {error}");
    }
}

#[test]
fn the_program_makes_ticks_until_it_is_told_to_end() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    trunkline.ok(&["schedule", "set", "pulse", "q", "every second", "tick"]);
    let mut running = trunkline.start(&["schedule", "run"]);
    let taken = trunkline.json(&["dequeue", "q", "-n", "2", "--follow", "--json"]);
    assert!(taken.iter().all(|message| message["payload"] == "tick" && message["metadata"]["schedule"] == "pulse"));
    assert_ne!(taken[0]["metadata"]["tick"], taken[1]["metadata"]["tick"]);
    signal(&running, "TERM");
    eventually("it has ended", || running.try_wait().expect("a child").is_some_and(|status| status.success()));
}

#[test]
fn a_process_without_a_server_for_its_ticks_says_so() {
    let trunkline = Trunkline::with_queue(&[]);
    let name = rows(&trunkline.url, "select current_database()").remove(0);
    sql(&trunkline.url, &format!("alter database {name} set default_transaction_read_only = on"));
    let mut running = trunkline.start(&["schedule", "run"]);
    let mut lines = BufReader::new(running.stderr.take().expect("it is piped")).lines();
    let told = "warning: this server accepts no writes";
    assert!(lines.any(|line| line.is_ok_and(|line| line.starts_with(told) && line.contains("no ticks"))), "it says so");
    signal(&running, "TERM");
    assert!(running.wait().expect("it ends").success());
}

#[test]
fn a_queue_is_paused_and_limited_and_says_so() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    trunkline.ok(&["enqueue", "q", "a", "b", "c"]);
    trunkline.ok(&["queue", "pause", "q"]);
    assert!(trunkline.lines(&["queue", "list"])[1].ends_with("paused"));
    assert!(trunkline.json(&["dequeue", "q", "-n", "1", "--json"]).is_empty());
    trunkline.ok(&["queue", "resume", "q"]);
    trunkline.ok(&["queue", "limit", "q", "--max-leased", "2", "--per-second", "0.001", "--burst", "1"]);
    let described = trunkline.json(&["queue", "describe", "q", "--json"]).remove(0);
    assert_eq!(
        (&described["max_leased"], &described["per_second"], &described["burst"]),
        (&2.into(), &0.001.into(), &1.into())
    );
    assert!(trunkline.lines(&["queue", "list"])[1].ends_with("2 leased, 0.001/s, 1 at once"));
    let taken = rows(&trunkline.url, "select payload from trunkline.take('q', 9)");
    assert_eq!(taken.len(), 1);
    trunkline.ok(&["queue", "limit", "q", "--none"]);
    assert_eq!(trunkline.json(&["dequeue", "q", "-n", "9", "--json"]).len(), 2);
    for (arguments, word) in [
        (&["queue", "limit", "q"][..], "--none"),
        (&["queue", "limit", "q", "--max-leased", "0"], "0"),
        (&["queue", "limit", "q", "--per-second", "-1"], "out of bounds"),
        (&["queue", "limit", "q", "--per-second=-1"], "out of bounds"),
        (&["queue", "limit", "q", "--max-leased", "1", "--burst", "1"], "--per-second"),
        (&["queue", "pause", "nowhere"], "nowhere"),
    ] {
        let (_, error) = trunkline.fails(arguments);
        assert!(error.contains(word), "{arguments:?}: {error}");
    }
}
