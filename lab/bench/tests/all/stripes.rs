//! Checks that each row of the suite `stripes` runs on as many servers as its name states, sends
//! messages, and waits for the slow disks.

use crate::fixture::{Bench, name};

/// Returns a pattern for every row of the suite.
pub fn patterns() -> Vec<String> {
    vec!["^stripes/".to_owned()]
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn each_row_has_its_servers_and_waits_for_their_disks() {
    let listed = Bench::new("list").pattern("^stripes/").lines().await;
    let rows = Bench::new("run").pattern("^stripes/").rows("1").await;
    assert_eq!(rows.iter().map(name).collect::<Vec<_>>(), listed);
    for row in &rows {
        assert_eq!(row["outcome"], "measured", "{row}");
        let round = &row["rounds"][0];
        assert!(round["sent"].as_u64() > Some(0) && round["latency"]["p50"].as_u64() >= Some(5000), "{row}");
        // With several servers the counters are null, because they cover one server only.
        let servers = row["told"]["stripes"].as_u64().expect("told");
        assert_eq!(round["wal_bytes"].is_null(), servers > 1, "{row}");
    }
}

#[tokio::test]
async fn rows_without_a_slow_disk_name_fsync_off() {
    let row = "^stripes/send, 256 callers, 2 stripes/striped$";
    let rows = crate::fixture::run().pattern(row).rows("0.2").await;
    let said = rows[0]["outcome"]["missing"].as_str().unwrap_or_else(|| panic!("{}", rows[0]));
    assert!(said.contains("fsync=off") || !cfg!(target_os = "linux"), "{said}");
}
