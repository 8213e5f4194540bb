//! The examples in help texts work.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use crate::fixture::{Folder, Trunkline, helps, program, unset_database};

/// Returns the commands below `Example` or `Examples` in a help text, without the remarks that
/// follow them.
fn examples(help: &str) -> Vec<&str> {
    let below = help.lines().skip_while(|line| !line.starts_with("Example")).skip(1);
    let lines = below.map_while(|line| line.strip_prefix("  "));
    lines.map(|line| line.split("   ").next().unwrap_or(line).trim_end()).collect()
}

/// Runs a command line of a document, with the program in `PATH` and the database in the
/// environment.
fn shell(line: &str, folder: &Folder, trunkline: &Trunkline) -> Output {
    let program = program();
    let program = Path::new(program.get_program()).parent().expect("it is in a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    unset_database(&mut command);
    command.args(["-c", line]).current_dir(&folder.0).env("PATH", path).env("DATABASE_URL", &trunkline.url);
    command.stdin(Stdio::null()).output().expect("sh runs")
}

/// Runs a command line that must succeed. Returns its output.
fn printed(line: &str, folder: &Folder, trunkline: &Trunkline) -> Vec<u8> {
    let output = shell(line, folder, trunkline);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn examples_of_help_run_one_after_another() {
    let (trunkline, folder) = (Trunkline::new(), Folder::new());
    fs::write(folder.join("words.txt"), "one\ntwo\n").expect("it can be written");
    fs::write(folder.join("list"), "# a remark\nthree\n").expect("it can be written");
    fs::write(folder.join("emails.ndjson"), "{\"to\": \"b@example.org\"}\n{\"to\": \n").expect("it can be written");
    let help = trunkline.ok(&["help"]);
    let enqueue = trunkline.ok(&["help", "enqueue"]);
    let mut ran = 0;
    for line in examples(&help).into_iter().chain(examples(&enqueue)) {
        // These commands never end, take long, or run a program that only the reader has.
        if !["demo", "--follow", "./send-mail"].iter().any(|part| line.contains(part)) {
            printed(line, &folder, &trunkline);
            ran += 1;
        }
    }
    assert!(ran >= 14, "{ran} of {help} {enqueue}");
    assert_eq!(fs::read(folder.join("rejected.ndjson")).expect("it was written"), b"{\"to\": \n");
    let messages = |queue: &str| trunkline.json(&["stats", queue, "--json"])[0]["messages"].as_u64();
    assert_eq!((messages("words"), messages("emails")), (Some(10), Some(4)));
}

#[test]
fn every_verb_has_an_example_and_takes_it() {
    let (nowhere, folder) = (Trunkline { url: "postgres://localhost:1/app".to_owned() }, Folder::new());
    for (verb, help) in helps() {
        let examples = examples(&help);
        assert!(examples.iter().any(|line| line.contains(&format!("trunkline {verb}"))), "{verb}: {help}");
        // Skips the examples of commands that need no database.
        let apart = ["demo", "delay-proxy", "postgres", "psql"];
        for line in examples.into_iter().filter(|line| !apart.iter().any(|part| line.contains(part))) {
            let output = shell(line, &folder, &nowhere);
            let error = String::from_utf8_lossy(&output.stderr);
            // Accepts the error of builds without relays, which explains how to get a build with
            // them.
            let taken = error.contains("error: cannot connect") || error.contains("built without relays");
            assert!(taken && !error.contains("--help"), "{line}: {error}");
        }
    }
}

#[test]
fn missing_queue_is_not_created_with_a_type_by_accident() {
    let (_, error) = Trunkline::new().fails(&["enqueue", "emails", "{}"]);
    assert!(error.contains("queue create NAME --type"), "{error}");
}

#[test]
fn pauses_are_said_to_be_random() {
    let help = Trunkline { url: String::new() }.ok(&["help", "work"]);
    let words: Vec<&str> = help.split_whitespace().collect();
    assert!(words.join(" ").contains("a random part between half and all"), "{help}");
}

#[test]
fn the_help_prefers_the_environment_for_passwords() {
    let help = Trunkline { url: String::new() }.ok(&["stats", "--help"]);
    let words: Vec<&str> = help.split_whitespace().collect();
    assert!(words.join(" ").contains("Keep a connection string with a password in the environment variable"), "{help}");
}
