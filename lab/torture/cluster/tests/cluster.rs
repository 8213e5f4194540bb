//! A cluster of one's own, for minutes: only where it is asked for by name.

#[path = "../../../../tests/all/required.rs"]
mod required;

use std::process::Command;

use required::{Part, skipped};

/// The program's word for: not run, for want of a program.
const SKIPPED: i32 = 77;

#[test]
#[ignore = "takes minutes, and fetches etcd and Patroni where they are not: cargo test --manifest-path lab/Cargo.toml -p trunkline-torture-cluster -- --ignored"]
fn nothing_that_was_acknowledged_is_lost_in_three_failovers() {
    let mut run = Command::new(env!("CARGO_BIN_EXE_trunkline-cluster"));
    run.args([
        "--failovers",
        "3",
        "--seed",
        "1",
        "--fault",
        "switchover",
        "--fault",
        "server-killed",
        "--fault",
        "standby-cut",
    ]);
    let output = run.output().expect("it runs");
    let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(SKIPPED) {
        return skipped(Part::Cluster, complaint.trim());
    }
    assert!(output.status.success(), "{complaint}\n{said}");
    assert!(said.contains("**Nothing was violated.**"), "{said}");
    assert_eq!(said.matches("promoted after").count(), 3, "{said}");
}
