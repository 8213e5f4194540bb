use crate::fixture::{Trunkline, sql};

fn queue() -> (Trunkline, Vec<String>) {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    let ids = trunkline.lines(&["enqueue", "q", "a", "b", "c", "d"]);
    (trunkline, ids)
}

#[test]
fn a_message_is_found_by_its_id() {
    let (trunkline, ids) = queue();
    let found = trunkline.json(&["find", "q", &ids[1], "--json"]).remove(0);
    assert!(
        found["id"].as_i64() == ids[1].parse().ok() && found["payload"] == "b" && found["state"] == "due",
        "{found}"
    );
    assert!(found["due_at"].is_string() && found["ended_at"].is_null() && found["error"].is_null(), "{found}");
    assert!(found["metadata"].as_object().is_some_and(serde_json::Map::is_empty), "{found}");
    sql(&trunkline.url, "select trunkline.bury('q', id, attempt, 'no such street') from trunkline.lease('q', 1)");
    let table = trunkline.lines(&["find", "q", &ids[0]]);
    assert!(table.len() == 2 && table[0].contains("ended at"), "{table:?}");
    assert!(["dead", "no such street", " a "].iter().all(|part| table[1].contains(part)), "{table:?}");
    let (code, error) = trunkline.fails(&["find", "q", "7"]);
    assert!(code == 1 && error.contains("has no message 7") && error.contains("hint: "), "{error}");
    assert_eq!(trunkline.fails(&["find", "q", "seven"]).0, 2);
}

#[test]
fn messages_are_cancelled() {
    let (trunkline, ids) = queue();
    assert_eq!(trunkline.lines(&["cancel", "q", &ids[2], "7", &ids[1]]), ids[1..3]);
    assert_eq!(trunkline.lines(&["dequeue", "q"]), ["a", "d"]);
    let (code, error) = trunkline.fails(&["cancel", "q", &ids[1]]);
    assert!(code == 1 && error.contains("hint: `trunkline find q ID`"), "{error}");
    assert_eq!(trunkline.fails(&["cancel", "q"]).0, 2, "which ones?");
}

#[test]
fn messages_are_due_at_another_time() {
    let (trunkline, ids) = queue();
    assert_eq!(trunkline.lines(&["reschedule", "q", &ids[0], &ids[1], "--in", "1h"]), ids[..2]);
    assert_eq!(trunkline.lines(&["reschedule", "q", &ids[3], "--at", "2090-01-01T02:30:00+02:00"]), ids[3..]);
    let found = trunkline.json(&["find", "q", &ids[3], "--json"]).remove(0);
    assert!(found["due_at"] == "2090-01-01T00:30:00.000000Z" && found["state"] == "delayed", "{found}");
    assert_eq!(trunkline.lines(&["dequeue", "q"]), ["c"]);
    assert_eq!(trunkline.lines(&["reschedule", "q", &ids[1], "--now"]), ids[1..2]);
    assert_eq!(trunkline.lines(&["reschedule", "q", &ids[3], "--at", "2020-01-01T00:00:00Z"]), ids[3..]);
    assert_eq!(trunkline.lines(&["dequeue", "q"]), ["b", "d"]);
    for wrong in [
        &["reschedule", "q", &ids[0]][..],
        &["reschedule", "q", "--now"],
        &["reschedule", "q", &ids[0], "--now", "--in", "1h"],
        &["reschedule", "q", &ids[0], "--at", "tomorrow"],
    ] {
        assert_eq!(trunkline.fails(wrong).0, 2, "{wrong:?}");
    }
    let (code, error) = trunkline.fails(&["reschedule", "q", "7", "--now"]);
    assert!(code == 1 && error.contains("hint: `trunkline find q ID`"), "{error}");
}
