//! The bar of rates, for some seconds.

use std::process::Command;

#[test]
fn no_key_is_faster_than_its_rate_while_workers_are_killed() {
    let folder = std::env::temp_dir().join(format!("trunkline-rates-{}", std::process::id()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline-torture"));
    command.args([
        "rates",
        "--keys",
        "50",
        "--seconds",
        "4",
        "--kill-every",
        "1",
        "--processes",
        "2",
        "--lease",
        "500",
    ]);
    let output = command.arg("--folder").arg(&folder).output().expect("the program starts");
    let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{complaint}");
    assert!(said.contains("3 processes were killed"), "{said}");
    let _ = std::fs::remove_dir_all(&folder);
}
