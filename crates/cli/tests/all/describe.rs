//! `trunkline queue describe` shows everything about a queue.

use crate::fixture::{Trunkline, sql};

/// Returns the names and values on a page, one pair per line.
fn page(trunkline: &Trunkline, queue: &str) -> Vec<(String, String)> {
    let lines = trunkline.lines(&["queue", "describe", queue]);
    let named = |line: &String| (line[..14].trim().to_owned(), line[14..].to_owned());
    lines.iter().map(named).collect()
}

fn of<'a>(page: &'a [(String, String)], name: &str) -> &'a str {
    &page.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("{name} is missing: {page:?}")).1
}

#[test]
fn a_page_has_keys_priorities_and_limits() {
    let trunkline = Trunkline::new();
    trunkline.ok(&["queue", "create", "keyed", "--type", "text", "--partitions", "4", "--per-key", "2"]);
    trunkline.ok(&[
        "queue",
        "create",
        "ranked",
        "--type",
        "jsonb",
        "--priorities",
        "3",
        "--aging",
        "5m",
        "--uniqueness",
    ]);
    trunkline.ok(&["queue", "limit", "keyed", "--max-leased", "7", "--key-per-second", "2.5", "--key-burst", "5"]);
    let (keyed, ranked) = (page(&trunkline, "keyed"), page(&trunkline, "ranked"));
    assert_eq!(of(&keyed, "keys"), "4 partitions, at most 2 messages of a key at a time");
    assert_eq!(of(&keyed, "limits"), "7 leased, 2.5/s of a key, 5 at once");
    assert_eq!((of(&keyed, "priorities"), of(&keyed, "uniqueness"), of(&keyed, "type")), ("none", "no", "text"));
    assert_eq!(
        (of(&ranked, "priorities"), of(&ranked, "uniqueness")),
        ("3; each level counts as 5.0 min of waiting", "yes")
    );
    assert_eq!((of(&ranked, "keys"), of(&ranked, "limits"), of(&ranked, "state")), ("none", "none", "open"));
}

#[test]
fn page_shows_contents_schedules_and_rights_of_queue() {
    let trunkline = Trunkline::with_queue(&["--type", "text", "--max-attempts", "1"]);
    let role = format!("described_{}", std::process::id());
    sql(&trunkline.url, &format!("create role {role}"));
    trunkline.ok(&["grant", "q", "--producer", &role]);
    trunkline.ok(&["grant", "--all", "--operator", &role]);
    trunkline.ok(&["schedule", "set", "nightly", "q", "0 3 * * *", "x"]);
    trunkline.ok(&["enqueue", "q", "a", "b", "c"]);
    sql(&trunkline.url, "select trunkline.bury('q', id, attempt, 'bad') from trunkline.lease('q', 1)");
    let shown = page(&trunkline, "q");
    assert_eq!(of(&shown, "rights"), format!("{role} (operator of all queues), {role} (producer)"));
    assert!(of(&shown, "schedules").starts_with("nightly (0 3 * * * in UTC: "), "{shown:?}");
    assert!(of(&shown, "messages").starts_with("2 due, 0 delayed, 0 leased, 0 to retry, in "), "{shown:?}");
    assert_eq!(of(&shown, "dead letters"), "1");
    let object = trunkline.json(&["queue", "describe", "q", "--json"]).remove(0);
    assert_eq!(
        (&object["stats"]["due"], &object["stats"]["dead"], &object["schedules"][0]),
        (&2.into(), &1.into(), &"nightly".into())
    );
    assert!(object["bytes"]["messages"].as_i64() > Some(0) && object["rights"][1]["kind"] == "producer", "{object}");
    sql(&trunkline.url, &format!("drop owned by {role}; drop role {role}"));
}

#[test]
fn a_page_says_since_when_a_queue_is_paused() {
    let trunkline = Trunkline::with_queue(&[]);
    let at = |trunkline: &Trunkline| trunkline.json(&["queue", "describe", "q", "--json"])[0]["paused_at"].clone();
    assert!(at(&trunkline).is_null());
    trunkline.ok(&["queue", "pause", "q"]);
    let paused = at(&trunkline);
    let minute = &paused.as_str().expect("a time")[..16];
    assert!(of(&page(&trunkline, "q"), "state").starts_with(&format!("paused since {minute}")), "{paused}");
    trunkline.ok(&["queue", "pause", "q"]); // a second pause changes nothing
    assert_eq!(at(&trunkline), paused);
    trunkline.ok(&["queue", "resume", "q"]);
    assert!(at(&trunkline).is_null());
    assert_eq!(of(&page(&trunkline, "q"), "state"), "open");
}

#[test]
fn stats_and_consumers_say_that_a_queue_is_paused() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    trunkline.ok(&["enqueue", "q", "x"]);
    assert_eq!(trunkline.json(&["stats", "--json"])[0]["paused"], false);
    trunkline.ok(&["queue", "pause", "q"]);
    for args in [&["stats", "--json"][..], &["stats", "q", "--json"]] {
        assert_eq!(trunkline.json(args)[0]["paused"], true, "{args:?}");
    }
    assert!(trunkline.ok(&["stats"]).contains("q (paused)"));
    let output = trunkline.run(&["dequeue", "q"]);
    let warning = String::from_utf8_lossy(&output.stderr);
    assert!(output.stdout.is_empty() && warning.contains("q is paused and delivers nothing"), "{warning}");
}

#[test]
fn a_role_sees_of_a_page_what_it_may_see() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    let role = format!("half_blind_{}", std::process::id());
    sql(&trunkline.url, &format!("create role {role} login"));
    trunkline.ok(&["grant", "q", "--producer", &role]);
    let theirs = Trunkline { url: trunkline.url.replace("user=trunkline", &format!("user={role}")) };
    let shown = page(&theirs, "q");
    assert_eq!(of(&shown, "type"), "text");
    for name in ["messages", "dead letters", "schedules", "rights"] {
        assert_eq!(of(&shown, name), "(this role may not see them)", "{name}");
    }
    sql(&trunkline.url, &format!("select trunkline.revoke_rights('{role}'); drop owned by {role}; drop role {role}"));
}
