//! Programs of the first release on the current schema, as in a rolling update between the
//! migration and the restart of the last program.

use std::{
    env,
    ffi::OsString,
    process::{Child, Command, Stdio},
};

use crate::fixture::{Trunkline, eventually, rows, signal, sql, unset_database};

/// Returns the path of the older program.
fn older() -> OsString {
    env::var_os("TRUNKLINE_OLDER").expect("TRUNKLINE_OLDER names no program of the first release: see .ci/older")
}

fn command(program: &OsString, url: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    unset_database(&mut command);
    command.args(args).env("DATABASE_URL", url).stdin(Stdio::null());
    command
}

/// Runs the older program, which must succeed. Returns its standard output.
fn run(program: &OsString, url: &str, args: &[&str]) -> String {
    let output = command(program, url, args).output().expect("the older program runs");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the output is text")
}

/// Creates a schema with the older program, and migrates it with the new one.
fn upgraded(program: &OsString) -> Trunkline {
    let new = Trunkline::bare();
    run(program, &new.url, &["migrate"]);
    new.ok(&["migrate"]);
    new
}

/// Returns a hash of each function of the schema.
fn functions(url: &str) -> Vec<String> {
    rows(
        url,
        "select md5(pg_get_functiondef(p.oid)) from pg_proc p where p.pronamespace = 'trunkline'::regnamespace order by 1",
    )
}

/// Returns the name that 0.1.0 has for an option.
fn in_older_words(word: &str) -> &str {
    if word == "--partitions" { "--lanes" } else { word }
}

/// A process that is killed when the test ends, even by a panic.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill(); // the process may have ended already
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs the program of the first release: see .ci/older"]
fn older_program_works_on_every_kind_of_queue() {
    let program = older();
    let new = upgraded(&program);
    let old = |args: &[&str]| run(&program, &new.url, args);
    // The new program creates some of the queues, and the older one the rest.
    let kinds: [(&str, &[&str]); 3] =
        [("plain", &[]), ("keyed", &["--partitions", "4"]), ("urgent", &["--priorities", "3"])];
    for (kind, settings) in kinds {
        for (queue, is_new) in [(format!("{kind}_new"), true), (format!("{kind}_old"), false)] {
            let create = [&["queue", "create", &queue, "--type", "text"], settings].concat();
            if is_new {
                new.ok(&create)
            } else {
                old(&create.iter().map(|word| in_older_words(word)).collect::<Vec<_>>())
            };
            let key: &[&str] = if kind == "keyed" { &["--key", "a"] } else { &[] };
            old(&[&["enqueue", &queue, "by the older"], key].concat());
            new.ok(&[&["enqueue", &queue, "by the newer"], key].concat());
            assert_eq!(old(&["peek", &queue, "--json"]).lines().count(), 2, "{queue}");
            if kind == "keyed" {
                let done = old(&["work", &queue, "--drain", "--exec", "cat"]);
                assert!(done.contains("by the older") && done.contains("by the newer"), "{queue}: {done}");
            } else {
                assert_eq!(old(&["dequeue", &queue, "-n", "1"]), "by the older\n", "{queue}");
                assert_eq!(new.ok(&["dequeue", &queue, "-n", "1"]), "by the newer\n", "{queue}");
            }
        }
    }
}

#[test]
#[ignore = "needs the program of the first release: see .ci/older"]
fn older_worker_retries_buries_and_replays() {
    let program = older();
    let new = upgraded(&program);
    new.ok(&["queue", "create", "q", "--type", "text", "--max-attempts", "1"]);
    let old = |args: &[&str]| run(&program, &new.url, args);
    old(&["enqueue", "q", "a", "b"]);
    old(&["work", "q", "--drain", "--exec", "false"]);
    assert_eq!(old(&["dead", "list", "q", "--json"]).lines().count(), 2);
    assert_eq!(new.ok(&["dead", "list", "q", "--json"]).lines().count(), 2);
    old(&["dead", "replay", "q", "--all"]);
    old(&["queue", "limit", "q", "--per-second", "1000"]);
    old(&["queue", "pause", "q"]);
    assert_eq!(new.ok(&["dequeue", "q"]), "");
    old(&["queue", "resume", "q"]);
    assert_eq!(new.lines(&["dequeue", "q", "-n", "2"]), ["a", "b"]);
    let id = new.lines(&["enqueue", "q", "c"]).remove(0);
    old(&["work", "q", "--drain", "--exec", "false"]);
    old(&["dead", "discard", "q", &id]);
    assert_eq!(new.ok(&["dead", "list", "q", "--json"]), "");
    old(&["archive", "q"]);
    old(&["prune", "q", "--older-than", "1h"]);
    old(&["stats"]);
    old(&["queue", "describe", "q"]);
}

#[test]
#[ignore = "needs the program of the first release: see .ci/older"]
fn older_schedules_tick() {
    let program = older();
    let new = upgraded(&program);
    new.ok(&["queue", "create", "q", "--type", "text"]);
    let old = |args: &[&str]| run(&program, &new.url, args);
    old(&["schedule", "set", "by-old", "q", "every 1 second", "tick"]);
    new.ok(&["schedule", "set", "by-new", "q", "every 1 second", "tock"]);
    assert_eq!(old(&["schedule", "list", "--json"]).lines().count(), 2);
    let mut run = command(&program, &new.url, &["schedule", "run"]);
    let mut run = Running(run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the older program runs"));
    let both = || {
        let there = rows(&new.url, "select distinct payload from trunkline.messages('q') order by 1");
        there == ["tick", "tock"]
    };
    eventually("both schedules tick", both);
    signal(&run.0, "TERM");
    assert!(run.0.wait().expect("it ends").success());
}

#[test]
#[ignore = "needs the program of the first release: see .ci/older"]
fn older_migrate_changes_nothing() {
    let program = older();
    let new = upgraded(&program);
    new.ok(&["queue", "create", "q", "--type", "text"]);
    let before = functions(&new.url);
    let report = run(&program, &new.url, &["migrate"]);
    assert!(report.contains("already"), "{report}");
    assert_eq!(functions(&new.url), before);
    // Simulates an older program that read the schema before this migration and continues to record
    // its own steps. The server must refuse its whole transaction.
    sql(
        &new.url,
        "do $$ begin
             update trunkline.migration set functions = '';
             raise exception 'it was not refused';
         exception when object_not_in_prerequisite_state then null;
         end $$",
    );
}

#[test]
#[ignore = "needs the program of the first release: see .ci/older"]
fn schema_of_the_older_program_is_brought_up_to_date() {
    let program = older();
    let new = Trunkline::bare();
    let old = |args: &[&str]| run(&program, &new.url, args);
    old(&["migrate"]);
    old(&["queue", "create", "q", "--type", "text"]);
    old(&["queue", "create", "k", "--type", "text", "--lanes", "4"]);
    old(&["enqueue", "q", "kept"]);
    old(&["enqueue", "k", "kept", "--key", "a"]);
    let (_, error) = new.fails(&["enqueue", "q", "early"]);
    assert!(error.contains("trunkline migrate"), "{error}");
    new.ok(&["migrate"]);
    assert_eq!(new.lines(&["dequeue", "q"]), ["kept"]);
    assert!(new.ok(&["work", "k", "--drain", "--exec", "cat"]).contains("kept"));
    assert_eq!(old(&["enqueue", "q", "after"]).lines().count(), 1);
    assert_eq!(new.lines(&["dequeue", "q"]), ["after"]);
}
