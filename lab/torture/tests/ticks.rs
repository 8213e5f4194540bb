//! Runs the benchmark of schedules for a few seconds.

use std::process::Command;

#[test]
fn each_tick_is_sent_once_while_schedulers_are_killed() {
    let folder = std::env::temp_dir().join(format!("trunkline-ticks-{}", std::process::id()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline-torture"));
    command.args(["ticks", "--schedules", "50", "--seconds", "5", "--kill-every", "1", "--folder"]).arg(&folder);
    let output = command.output().expect("the program starts");
    let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{complaint}");
    assert!(said.contains("250 messages of 250 ticks, 250 of them different; 4 processes were killed"), "{said}");
    let _ = std::fs::remove_dir_all(&folder);
}
