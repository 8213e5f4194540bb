use trunkline_embedded::Cluster;

use crate::fixture::{Session, Trunkline, sql};

/// Starts a server for one test, because the doctor also examines the server's other sessions.
fn alone() -> (Cluster, Trunkline) {
    let server = Cluster::temporary().start().expect("a server");
    let trunkline = Trunkline { url: server.url("postgres") };
    trunkline.ok(&["migrate"]);
    trunkline.ok(&["queue", "create", "q", "--type", "text"]);
    (server, trunkline)
}

/// Returns the standard output, whether the program succeeds or fails.
fn said(trunkline: &Trunkline, args: &[&str]) -> String {
    String::from_utf8(trunkline.run(args).stdout).expect("text")
}

#[test]
fn doctor_finds_nothing_wrong_and_exits_with_zero() {
    let (_server, trunkline) = alone();
    trunkline.ok(&["enqueue", "q", "just enqueued"]);
    assert_eq!(trunkline.lines(&["doctor"]), ["nothing is wrong"]);
    assert!(trunkline.json(&["doctor", "--json"]).is_empty());
}

#[test]
fn finding_names_the_statement_that_mends_it() {
    let (_server, trunkline) = alone();
    sql(&trunkline.url, "drop index trunkline.due_q");
    let (code, error) = trunkline.fails(&["doctor"]);
    assert_eq!(code, 1);
    assert!(error.contains("one thing is wrong"), "{error}");
    let told = said(&trunkline, &["doctor"]);
    assert!(told.starts_with("wrong: q: index due_q is missing [indexes]\n"), "{told}");
    let line = said(&trunkline, &["doctor", "--json"]);
    let finding: serde_json::Value = serde_json::from_str(&line).expect("one line of JSON");
    assert_eq!(
        (&finding["check"], &finding["severity"], &finding["queue"]),
        (&"indexes".into(), &"wrong".into(), &"q".into())
    );
    assert!(finding["since"].is_null() && finding["why"].is_string(), "{finding}");
    let mend = finding["mend"].as_str().expect("a statement");
    assert!(told.contains(mend), "{told}");
    sql(&trunkline.url, mend);
    assert_eq!(trunkline.lines(&["doctor"]), ["nothing is wrong"]);
}

#[test]
fn wait_beyond_patience_is_found_and_control_characters_are_removed() {
    let (_server, trunkline) = alone();
    trunkline.ok(&["enqueue", "q", "one"]);
    sql(&trunkline.url, "update trunkline.queue_q set due_at = now() - interval '1 hour'");
    assert_eq!(trunkline.lines(&["doctor", "--patience", "2h"]), ["nothing is wrong"]);
    let told = said(&trunkline, &["doctor"]);
    assert!(
        told.contains("wrong: q: the oldest due message has waited for 01:00:") && told.contains("[consumers]"),
        "{told}"
    );
    assert!(told.contains("  since  ") && told.contains("(1.0 h)"), "{told}");
    let holder = Session::begin(&trunkline.url, "begin; select 1 -- \u{1b}[31m red");
    let told = said(&trunkline, &["doctor", "--patience", "0s"]);
    assert!(told.contains("[31m red [snapshots]") && !told.contains('\u{1b}'), "{told}");
    drop(holder);
    let (code, error) = trunkline.fails(&["doctor", "--patience", "soon"]);
    assert!(code == 2 && error.contains("--patience"), "{error}");
}

#[test]
fn exit_code_follows_the_worst_finding() {
    let (server, trunkline) = alone();
    trunkline.ok(&["enqueue", "q", "one"]);
    sql(&trunkline.url, "update trunkline.queue_q set due_at = now() - interval '1 hour'");
    sql(&trunkline.url, "select trunkline.pause_queue('q')");
    assert!(said(&trunkline, &["doctor"]).starts_with("advice: q: "), "advice alone is no failure");
    trunkline.ok(&["doctor"]);
    let (code, error) = trunkline.fails(&["doctor", "--strict"]);
    assert!(code == 4 && error.contains("the doctor has one piece of advice"), "{code}: {error}");
    sql(&trunkline.url, "create role looks login; select trunkline.grant_rights('looks', 'producer', 'q')");
    let looks = Trunkline { url: server.url("postgres").replace("user=trunkline", "user=looks") };
    let (code, error) = looks.fails(&["doctor"]);
    assert!(code == 3 && error.contains("could not run"), "{code}: {error}");
    sql(&trunkline.url, "select trunkline.resume_queue('q')");
    assert_eq!(trunkline.fails(&["doctor", "--strict"]).0, 1);
}

#[test]
fn server_that_is_away_hides_no_finding_of_the_others() {
    let (_server, trunkline) = alone();
    trunkline.ok(&["enqueue", "q", "one"]);
    sql(&trunkline.url, "update trunkline.queue_q set due_at = now() - interval '1 hour'");
    let nowhere = "host=127.0.0.1 port=1 user=trunkline dbname=postgres";
    let both = Trunkline { url: format!("{nowhere}\n{}", trunkline.url) };
    let told = said(&both, &["doctor"]);
    assert!(told.contains("cannot connect") && told.contains("[server]"), "{told}");
    assert!(told.contains("q: the oldest due message has waited"), "{told}");
    let (code, error) = both.fails(&["doctor"]);
    assert!(code == 1 && error.contains("2 things are wrong"), "{code}: {error}");
}

#[test]
fn checks_and_queues_are_left_out_by_name() {
    let (_server, trunkline) = alone();
    for name in ["nightly_a", "nightly_b"] {
        trunkline.ok(&["queue", "create", name, "--type", "text"]);
        trunkline.ok(&["enqueue", name, "one"]);
        sql(&trunkline.url, &format!("update trunkline.queue_{name} set due_at = now() - interval '1 hour'"));
    }
    assert_eq!(trunkline.fails(&["doctor"]).0, 1);
    assert_eq!(trunkline.lines(&["doctor", "--skip-queue", "nightly_*"]), ["nothing is wrong"]);
    assert_eq!(trunkline.lines(&["doctor", "--skip-check", "bloat,consumers"]), ["nothing is wrong"]);
    let told = said(&trunkline, &["doctor", "--skip-queue", "nightly_a"]);
    assert!(told.contains("wrong: nightly_b: ") && !told.contains("nightly_a"), "{told}");
    let (_, error) = trunkline.fails(&["doctor", "--skip-queue", "nightly_a,nigthly_b,daily_*"]);
    for name in ["nigthly_b", "daily_*"] {
        assert!(error.contains(&format!("warning: --skip-queue {name} leaves out nothing")), "{error}");
    }
    assert_eq!(error.matches("warning: ").count(), 2, "{error}");
    let (code, error) = trunkline.fails(&["doctor", "--skip-check", "consumer"]);
    assert!(code == 2 && error.contains("there is no check \"consumer\"") && error.contains("consumers"), "{error}");
}
