//! Runs a cluster. The test takes several minutes, so it runs only when it is selected by name.

use std::process::Command;

#[test]
#[ignore = "needs etcd, Patroni and minutes: see lab/torture/cluster/README.md"]
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
    assert!(output.status.success(), "{complaint}\n{said}");
    assert!(said.contains("**Nothing was violated.**"), "{said}");
    assert_eq!(said.matches("promoted after").count(), 3, "{said}");
}
