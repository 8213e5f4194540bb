//! Runs Trunkline's own row of the comparison for a few seconds.

use std::process::Command;

use serde_json::Value;

#[test]
fn trunkline_keeps_what_it_promises_among_its_rivals() {
    let folder = std::env::temp_dir().join(format!("trunkline-rivals-{}", std::process::id()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline-torture"));
    command.args(["rivals", "--rival", "trunkline", "--minutes", "0.3", "--seed", "1", "--folder"]).arg(&folder);
    command.arg("--table").arg(folder.with_extension("md"));
    let output = command.output().expect("the program starts");
    let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{complaint}");
    let line = said.lines().find(|line| line.starts_with('{')).expect("a line of JSON");
    let verdict: Value = serde_json::from_str(line).expect("JSON");
    assert!(verdict["counts"]["enqueued"].as_u64() > Some(50), "{verdict}");
    assert!(verdict["counts"]["handled"].as_u64() > Some(50), "{verdict}");
    assert!(verdict["counts"]["effects"].as_u64() > Some(20), "{verdict}");
    let faults: u64 = verdict["faults"].as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum();
    assert!(faults > 0, "{verdict}");
    let rules = verdict["rules"].as_object().expect("rules");
    assert_eq!(rules.len(), 12);
    assert!(rules.values().all(|rule| rule["held"] == true), "{verdict}");
    let table = std::fs::read_to_string(folder.with_extension("md")).expect("a table");
    assert!(table.contains("| an acknowledged message does not come again | held |"), "{table}");
    let _ = std::fs::remove_dir_all(&folder);
    let _ = std::fs::remove_file(folder.with_extension("md"));
}
