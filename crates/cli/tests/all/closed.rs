//! A standard input or output that the program was started without.

use std::process::Output;

use crate::fixture::{Trunkline, unset_database};

/// Runs a line of the shell, in which `$T` is the program.
fn shell(trunkline: &Trunkline, line: &str) -> (Option<i32>, String, String) {
    let mut sh = std::process::Command::new("sh");
    unset_database(&mut sh);
    sh.args(["-c", line]).env("DATABASE_URL", &trunkline.url).env("T", env!("CARGO_BIN_EXE_trunkline"));
    let Output { status, stdout, stderr } = sh.output().expect("it runs");
    (status.code(), String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn closed_standard_input_is_no_message() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    for verb in [
        "enqueue q -",
        "enqueue q --direct -",
        "enqueue q --file -",
        "enqueue q --lines -",
        "enqueue q --json-lines -",
        "schedule set s q @daily -",
        "console --hash-password",
    ] {
        let (code, out, error) = shell(&trunkline, &format!("exec $T {verb} <&-"));
        assert!(code == Some(1) && out.is_empty() && error.contains("standard input is closed"), "{verb}: {error}");
    }
    assert_eq!(trunkline.json(&["stats", "--json"])[0]["messages"], 0);
    assert_eq!(trunkline.lines(&["schedule", "list", "--json"]).len(), 0);
    let (code, out, error) = shell(&trunkline, "exec $T enqueue q - </dev/null");
    assert!(code == Some(0) && out.lines().count() == 1, "an empty file is an empty message: {error}");
}

#[test]
fn closed_standard_output_fails_verbs_that_only_print() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    let id = trunkline.lines(&["enqueue", "q", "kept"]).remove(0);
    for verb in [
        "stats",
        "stats --json",
        "peek q",
        "peek q --json",
        "queue list",
        "queue describe q",
        "dead list q",
        "archive q",
        "schedule list",
        "shard list",
        &format!("find q {id}"),
    ] {
        let (code, _, error) = shell(&trunkline, &format!("exec $T {verb} >&-"));
        assert!(code == Some(1) && error.contains("standard output is closed"), "{verb}: {code:?} {error}");
        assert_eq!(shell(&trunkline, &format!("exec $T {verb} >/dev/null")).0, Some(0), "{verb}");
    }
    // These verbs succeed even with a closed output: the exit code says enough about a change that
    // was made, and about the doctor's findings.
    for verb in ["enqueue q another", "queue alter q --max-attempts 3", "doctor --skip-check settings"] {
        let (code, _, error) = shell(&trunkline, &format!("exec $T {verb} >&-"));
        assert_eq!(code, Some(0), "{verb}: {error}");
    }
    assert_eq!(trunkline.json(&["stats", "--json"])[0]["messages"], 2);
}
