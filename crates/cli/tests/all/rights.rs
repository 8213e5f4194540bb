//! `trunkline grant` and `trunkline revoke`: the rights that roles have or lack.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fixture::{Trunkline, sql};

/// Creates a role, which belongs to the whole cluster. Returns its name, and the program that
/// connects to the same database as this role.
pub fn role(trunkline: &Trunkline, kind: &str) -> (String, Trunkline) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!("{kind}_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    sql(&trunkline.url, &format!("create role {name} login"));
    let url = trunkline.url.replace("user=trunkline", &format!("user={name}"));
    (name, Trunkline { url })
}

/// Checks that the role lacks the right.
fn may_not(theirs: &Trunkline, args: &[&str]) {
    let (code, error) = theirs.fails(args);
    let is_lack = error.contains("permission denied") || error.contains("must be owner");
    assert!(code == 1 && is_lack, "{args:?}: {error}");
}

#[test]
fn a_producer_enqueues_and_does_nothing_else() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    trunkline.ok(&["queue", "create", "other", "--type", "text"]);
    let (name, theirs) = role(&trunkline, "producer");
    may_not(&theirs, &["enqueue", "q", "x"]);
    trunkline.ok(&["grant", "q", "--producer", &name]);
    theirs.ok(&["enqueue", "q", "x", "y"]);
    for args in [
        &["enqueue", "other", "x"][..],
        &["dequeue", "q"],
        &["stats"],
        &["peek", "q"],
        &["purge", "q", "--yes"],
        &["queue", "drop", "q", "--yes"],
        &["grant", "q", "--consumer", &name],
    ] {
        may_not(&theirs, args);
    }
    assert_eq!(trunkline.lines(&["dequeue", "q"]), ["x", "y"]);
    trunkline.ok(&["revoke", "q", "--from", &name]);
    may_not(&theirs, &["enqueue", "q", "x"]);
}

#[test]
fn a_consumer_dequeues_from_its_queue() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    trunkline.ok(&["queue", "create", "other", "--type", "text"]);
    let (name, theirs) = role(&trunkline, "consumer");
    trunkline.ok(&["grant", "q", "--consumer", &name]);
    trunkline.ok(&["enqueue", "q", "a", "b", "c"]);
    // Without names, `stats` counts the queues that the role may read, and names the others.
    let output = theirs.run(&["stats", "--json"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1, "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("warning: cannot count other"), "{output:?}");
    may_not(&theirs, &["stats", "other"]);
    assert_eq!(theirs.lines(&["dequeue", "q", "-n", "1"]), ["a"]);
    assert_eq!(theirs.lines(&["dequeue", "q", "-n", "1", "--mode", "at-most-once"]), ["b"]);
    let output = theirs.run(&["work", "q", "--drain", "--exec", "cat; exit 100"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(trunkline.json(&["dead", "list", "q", "--json"]).len(), 1);
    may_not(&theirs, &["dequeue", "other"]);
    may_not(&theirs, &["queue", "drop", "q", "--yes"]);
    trunkline.ok(&["revoke", "q", "--from", &name]);
    may_not(&theirs, &["dequeue", "q"]);
}

#[test]
fn worker_without_rights_ends_with_an_error() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    let (name, theirs) = role(&trunkline, "producer");
    trunkline.ok(&["enqueue", "q", "x"]);
    trunkline.ok(&["grant", "q", "--producer", &name]);
    for drain in [&[][..], &["--drain"]] {
        let (code, error) = theirs.fails(&[&["work", "q", "--exec", "cat"], drain].concat());
        assert!(code == 1 && error.contains("`trunkline grant q --consumer ROLE`"), "{error}");
    }
    assert_eq!(trunkline.lines(&["dequeue", "q"]), ["x"]);
}

#[test]
fn refusal_names_the_right_that_the_verb_needs() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    let (_, theirs) = role(&trunkline, "stranger");
    let (_, error) = theirs.fails(&["enqueue", "q", "x"]);
    assert!(error.contains("`trunkline grant q {--producer|--consumer|--operator} ROLE`"), "{error}");
    let (_, error) = theirs.fails(&["queue", "create", "mine"]);
    assert!(error.contains("Only the role that owns the schema"), "{error}");
    let output = theirs.run(&["doctor"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("[queues]"), "{output:?}");
}

#[test]
fn an_operator_looks_after_queues_created_later_too() {
    let trunkline = Trunkline::with_queue(&["--type", "text", "--max-attempts", "1"]);
    let (name, theirs) = role(&trunkline, "operator");
    trunkline.ok(&["grant", "--all", "--operator", &name]);
    trunkline.ok(&["queue", "create", "later", "--type", "text", "--max-attempts", "1"]);
    for queue in ["q", "later"] {
        trunkline.ok(&["enqueue", queue, "a", "b"]);
        let fail =
            format!("select trunkline.retry('{queue}', id, attempt, '0', 'x') from trunkline.lease('{queue}', 2)");
        sql(&trunkline.url, &fail);
        let dead = theirs.json(&["dead", "list", queue, "--json"]);
        assert_eq!(dead.len(), 2);
        let id = dead[0]["id"].to_string();
        assert_eq!(theirs.lines(&["dead", "replay", queue, &id]), ["1"]);
        assert_eq!(theirs.lines(&["dead", "discard", queue, "--all", "--yes"]), ["1"]);
        assert_eq!(theirs.json(&["peek", queue, "--json"]).len(), 1);
        assert_eq!(theirs.lines(&["purge", queue, "--yes"]), ["1"]);
        may_not(&theirs, &["queue", "drop", queue, "--yes"]);
    }
    let (code, error) = trunkline.fails(&["revoke", "q", "--from", &name]);
    assert!(code == 1 && !error.contains("select"), "what it has in all queues is not taken in one: {error}");
    trunkline.ok(&["revoke", "--all", "--from", &name]);
    may_not(&theirs, &["purge", "q", "--yes"]);
    may_not(&theirs, &["purge", "later", "--yes"]);
}

#[test]
fn all_rights_of_a_call_are_granted_or_none() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    let (one, theirs) = role(&trunkline, "one");
    let (other, others) = role(&trunkline, "Other");
    let (code, error) = trunkline.fails(&["grant", "q", "--producer", &one, "--consumer", "no such role"]);
    assert!(code == 1 && error.contains("there is no role \"no such role\"; nothing was changed"), "{error}");
    assert!(error.contains("`create role NAME login`"), "{error}");
    may_not(&theirs, &["enqueue", "q", "x"]);
    // Grants the right to a role whose name was created without quotes, and is therefore in lower
    // case.
    trunkline.ok(&["grant", "q", "--producer", &one, "--consumer", &other.to_lowercase()]);
    theirs.ok(&["enqueue", "q", "x"]);
    let others = Trunkline { url: others.url.replace(&other, &other.to_lowercase()) };
    assert_eq!(others.lines(&["dequeue", "q"]), ["x"]);
    let (code, error) = trunkline.fails(&["revoke", "q", "--from", "no such role"]);
    assert!(code == 1 && error.contains("there is no role \"no such role\""), "{error}");
}
