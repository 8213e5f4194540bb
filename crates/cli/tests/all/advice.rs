//! The advice in errors is right: a role that gets what the error names may run the verb.

use std::os::unix::fs::PermissionsExt;

use crate::{
    fixture::{Folder, Trunkline, sql},
    rights::role,
};

/// Runs what the error advises for the role, as the schema's owner.
fn follow(owner: &Trunkline, error: &str, role: &str) {
    let command = error.split("`trunkline grant ").nth(1).and_then(|rest| rest.split('`').next());
    let command = command.unwrap_or_else(|| panic!("no advice in {error}")).replace("ROLE", role);
    let args: Vec<&str> = ["grant"].into_iter().chain(command.split(' ')).collect();
    owner.ok(&args);
}

#[test]
fn role_that_gets_the_right_in_the_error_may_run_the_verb() {
    let trunkline = Trunkline::with_queue(&["--type", "text", "--uniqueness"]);
    trunkline.ok(&["queue", "create", "other", "--type", "text"]);
    for args in [
        &["enqueue", "q", "x"][..],
        &["enqueue", "q", "x", "--unique", "new"],
        &["enqueue", "q", "x", "--unique", "there", "--replace"],
        &["enqueue", "q", "x", "--direct"],
        &["dequeue", "q", "-n", "1"],
        &["dequeue", "q", "-n", "1", "--mode", "at-most-once"],
        &["work", "q", "--drain", "--exec", "true"],
        &["peek", "q"],
        &["stats", "q"],
        &["find", "q", "7"],
        &["cancel", "q", "7"],
        &["reschedule", "q", "7", "--now"],
        &["purge", "q", "--yes"],
        &["archive", "q"],
        &["prune", "q", "--older-than", "7d"],
        &["dead", "list", "q"],
        &["dead", "replay", "q", "7"],
        &["dead", "discard", "q", "7"],
        &["compact", "q", "--at-least", "0"],
        &["schedule", "list"],
        &["schedule", "set", "s", "q", "@daily", "x"],
        &["schedule", "now", "s"],
    ] {
        trunkline.ok(&["enqueue", "q", "x", "--unique", "there"]);
        for kind in ["nothing", "producer"] {
            let (name, theirs) = role(&trunkline, kind);
            // Grants a right on another queue, if not on this one, because every right includes the
            // right to use the schema.
            trunkline.ok(&["grant", if kind == "nothing" { "other" } else { "q" }, "--producer", &name]);
            let output = theirs.run(args);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            if kind == "producer" && !error.contains("permission denied") {
                continue; // skips verbs that a producer may run
            }
            assert!(error.contains("permission denied") && !error.contains("pipeline"), "{args:?}: {error}");
            follow(&trunkline, &error, &name);
            let output = theirs.run(args);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!error.contains("permission denied"), "{args:?} of {kind}: {error}");
        }
    }
}

#[test]
fn what_only_the_owner_may_do_names_the_owner() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    let (name, theirs) = role(&trunkline, "operator");
    trunkline.ok(&["grant", "--all", "--operator", &name]);
    for args in [
        &["queue", "create", "mine"][..],
        &["queue", "alter", "q", "--max-attempts", "3"],
        &["queue", "pause", "q"],
        &["queue", "resume", "q"],
        &["queue", "limit", "q", "--per-second", "3"],
        &["queue", "drop", "q", "--yes"],
        &["grant", "q", "--producer", &name],
        &["revoke", "q", "--from", &name],
        &["teardown", "--yes"],
    ] {
        let (_, error) = theirs.fails(args);
        assert!(error.contains("Only the role that owns the schema may do this"), "{args:?}: {error}");
    }
}

#[test]
fn schema_of_another_role_is_not_called_missing() {
    let trunkline = Trunkline::bare();
    let (code, error) = trunkline.fails(&["migrate", "--schema", "public"]);
    assert!(code == 1 && error.contains("belongs to pg_database_owner"), "{error}");
    assert!(!error.contains("no Trunkline schema yet") && !error.contains("Migrate as pg_database_owner"), "{error}");
    assert!(error.contains("--schema NAME"), "{error}");
    sql(
        &trunkline.url,
        "create schema of_another; create role another_owner; alter schema of_another owner to another_owner",
    );
    let (_, error) = trunkline.fails(&["migrate", "--schema", "of_another"]);
    assert!(error.contains("Migrate as another_owner") && !error.contains("no Trunkline schema yet"), "{error}");
}

#[test]
fn password_file_that_others_may_read_is_a_warning() {
    let (trunkline, folder) = (Trunkline::new(), Folder::new());
    let file = folder.join("pgpass");
    std::fs::write(&file, "*:*:*:*:secret\n").expect("written");
    let run = |mode| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("set");
        let output = trunkline.command(&["queue", "list", "-q"]).env("PGPASSFILE", &file).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let warned = run(0o644);
    assert!(warned.starts_with("warning: the password file ") && warned.contains("chmod 600 "), "{warned}");
    assert_eq!((run(0o600), warned.lines().count()), (String::new(), 1));
}
