//! Starts runs that cannot keep what their options require.

use std::process::Command;

#[test]
fn run_that_is_too_short_for_its_required_faults_names_them() {
    let folder = std::env::temp_dir().join(format!("trunkline-short-{}", std::process::id()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline-torture"));
    command.args(["run", "--minutes", "0.2", "--seed", "1", "--fault", "stop,kill,crash", "--require-all", "--folder"]);
    let output = command.arg(&folder).output().expect("the program starts");
    let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let _ = std::fs::remove_dir_all(&folder);
    assert_eq!(output.status.code(), Some(2), "{said}{complaint}");
    let last = complaint.lines().last();
    assert_eq!(last, Some("0.2 minutes with seed 1 have no time for what is required: crash"), "{complaint}");
}
