//! The program supports everything that its messages recommend.

use crate::fixture::{Trunkline, sql};

#[test]
fn advice_names_verbs_and_options_of_the_program() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    trunkline.ok(&["queue", "create", "keyed", "--type", "text", "--partitions", "2"]);
    for (args, told) in [
        (&["enqueue", "q", "x", "--priority", "5"][..], "--priorities 3`"),
        (&["enqueue", "q", "x", "--key", "k"], "`trunkline queue create NAME --partitions 64`, or leave out --key"),
        (&["enqueue", "q", "x", "--unique", "k"], "`trunkline queue create NAME --uniqueness`"),
        (&["enqueue", "keyed", "x"], "pass one with --key KEY"),
        (&["enqueue", "nope", "x"], "create it with `trunkline queue create nope`"),
        (&["schedule", "set", "s", "q", "@daily", "x", "--priority", "5"], "--priorities"),
        (&["schedule", "set", "s", "q", "@daily", "x", "--key", "k"], "--partitions 64"),
        (&["schedule", "set", "s", "keyed", "@daily", "x"], "--key"),
        (&["schedule", "pause", "nope"], "schedule"),
        (&["queue", "alter", "q", "--partitions", "8"], "--partitions 64"),
        (&["queue", "limit", "q", "--key-per-second", "1"], "--per-second"),
    ] {
        let (_, error) = trunkline.fails(args);
        assert!(error.contains(told), "{args:?}: {error}");
        assert!(!["::", "=> ", "select ", "trunkline."].iter().any(|word| error.contains(word)), "{args:?}: {error}");
    }
}

#[test]
fn a_database_without_queues_is_said_to_have_none() {
    let trunkline = Trunkline::bare();
    for args in
        [&["stats"][..], &["queue", "list"], &["enqueue", "q", "x"], &["grant", "--all", "--producer", "postgres"]]
    {
        let (code, error) = trunkline.fails(args);
        assert!(code == 1 && error.contains("there is no schema `trunkline` in this database"), "{error}");
        assert!(error.contains("run `trunkline migrate` first") && !error.contains("version 0"), "{error}");
    }
}

#[test]
fn role_that_may_create_no_schema_is_told_the_right() {
    let trunkline = Trunkline::bare();
    let role = format!("migrator_{}", std::process::id());
    sql(&trunkline.url, &format!("create role {role} login"));
    let theirs = Trunkline { url: trunkline.url.replace("user=trunkline", &format!("user={role}")) };
    let (code, error) = theirs.fails(&["migrate"]);
    assert!(code == 1 && error.contains("`grant create on database DATABASE to ROLE`"), "{error}");
    sql(&trunkline.url, &format!("drop role {role}"));
}
