//! A missing command costs no message an attempt.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::work_ends::{NOTE, Place, ended};

/// Runs the program, which must fail. Returns its standard error.
fn failed(place: &Place, exec: &str, more: &[&str]) -> String {
    let output = place.work(exec, &[&["--drain"], more].concat()).wait_with_output().expect("it ends");
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{exec}: {error}");
    error
}

/// Checks that no message is missing, and that each message's next attempt is its first.
fn assert_uncharged(place: &Place, messages: u64) {
    assert_eq!(place.stats(["messages", "due", "dead"]), [messages, messages, 0]);
    assert!(ended(place.work(NOTE, &["--drain"])).starts_with(&format!("q: {messages} done, 0 failed")));
    let begun = place.lines("begun");
    assert!(begun.len() as u64 == messages && begun.iter().all(|line| line.ends_with(" 1")), "{begun:?}");
}

#[test]
fn missing_command_is_found_before_anything_is_leased() {
    let place = Place::new(20, &["--max-attempts", "1"]);
    for (exec, told) in [
        ("nosuchprogram", "the command \"nosuchprogram\" does not exist"),
        ("A=1 nosuchprogram | cat", "the command \"nosuchprogram\" does not exist"),
        ("./nosuchfile --fast", "the command \"./nosuchfile\" cannot be executed: No such file"),
        ("/etc/passwd", "the command \"/etc/passwd\" is not executable"),
        ("/etc", "the command \"/etc\" is a folder"),
    ] {
        let error = failed(&place, exec, &[]);
        assert!(error.contains(told) && error.contains("no message was leased"), "{error}");
    }
    assert_uncharged(&place, 20);
}

#[test]
fn command_unknown_to_the_shell_gives_all_messages_back() {
    let place = Place::new(300, &["--max-attempts", "1"]);
    for exec in
        ["exec nosuchprogram", "cat > /dev/null; nosuchprogram", "true; /etc/passwd", "$DIR/nosuch", "env nosuch"]
    {
        for concurrency in ["1", "8"] {
            let error = failed(&place, exec, &["--concurrency", concurrency]);
            assert!(error.contains("error: the command cannot be run: exit code 12"), "{error}");
            assert!(error.contains("given back") && error.contains("hint: "), "{error}");
        }
    }
    assert_uncharged(&place, 300);
}

#[test]
fn a_script_that_has_run_may_exit_with_127() {
    let place = Place::new(4, &["--max-attempts", "1"]);
    let exec = "read -r number; [ $number = 0 ] && exit 0; exit 12$((5 + number))";
    let last = ended(place.work(exec, &["--drain", "--concurrency", "1"]));
    assert_eq!(last, "q: 1 done, 0 failed, 3 dead");
    assert_eq!(place.stats(["messages", "dead"]), [0, 3]);
}

#[test]
fn a_command_that_goes_away_gives_back_what_is_left() {
    let place = Place::new(10, &["--max-attempts", "1"]);
    let handler = place.folder.join("handler");
    fs::write(&handler, "#!/bin/sh\nread -r number; [ $number = 2 ] && rm \"$0\"; exit 0\n")
        .expect("it can be written");
    fs::set_permissions(&handler, fs::Permissions::from_mode(0o755)).expect("it can be made executable");
    let error = failed(&place, handler.to_str().expect("text"), &["--concurrency", "1"]);
    assert!(error.contains("the command cannot be run: exit code 127"), "{error}");
    assert_eq!(place.stats(["messages", "due", "dead"]), [7, 7, 0]);
}
