//! Checks that the disk is as slow as a row's name says, and that no other row's disk is slow.

use serde_json::Value;

use crate::fixture::{Bench, OWN, name, run};

/// Returns patterns for all of our rows in the suite.
pub fn patterns() -> Vec<String> {
    OWN.map(|own| format!("^fsync/*/{own}$")).into()
}

fn p50(row: &Value) -> f64 {
    row["rounds"][0]["latency"]["p50"].as_f64().unwrap_or_else(|| panic!("no latency: {row}"))
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn send_waits_for_the_disk_of_its_row() {
    let patterns = patterns();
    let choose = |bench: Bench| patterns.iter().fold(bench, |bench, pattern| bench.pattern(pattern));
    let listed = choose(Bench::new("list")).lines().await;
    assert_eq!(listed.len(), 16);
    // A row with a normal disk comes first, because no other row may run on the slow server.
    let rows = choose(Bench::new("run")).pattern("^send/send-single/queue$").rows("0.5").await;
    assert_eq!(rows.iter().map(name).collect::<Vec<_>>(), [&["send/send-single/queue".to_owned()], &*listed].concat());
    for row in &rows {
        assert_eq!((&row["outcome"], &row["server"]["fsync"]), (&"measured".into(), &"on".into()), "{row}");
        let told = &row["told"];
        let least = told["fsync_ms"].as_f64();
        assert_eq!(least.is_some(), row["suite"] == "fsync", "{row}");
        assert!(p50(row) >= 1000.0 * least.unwrap_or(0.0), "{row}");
        if row["suite"] == "fsync" {
            let said = match least {
                Some(least) if least > 0.0 => format!("send, {} callers, {least} ms an fsync", told["producers"]),
                _ => format!("send, {} callers, the disk as it is", told["producers"]),
            };
            assert_eq!(row["case"], said.as_str());
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_disk_is_as_it_was_after_a_slow_row() {
    // Uses few callers, so that every caller waits for the disk rather than for the processor.
    let run = || Bench::new("run").args(["--callers", "1,2"]).pattern("^fsync/*/trunkline-bytea$").rows("0.5");
    // Repeats the run, because another process may keep the disk busy during one turn. A disk that
    // was not restored is slow in every turn.
    for turn in 1..=3 {
        let rows = run().await;
        let told: Vec<_> =
            rows.iter().map(|row| (row["told"]["producers"].as_u64(), row["told"]["fsync_ms"].as_f64())).collect();
        let times = [0.0, 1.0, 5.0, 20.0];
        assert_eq!(told, [1, 2].map(|callers| times.map(|least| (Some(callers), Some(least)))).concat());
        for slow in [3, 7] {
            assert!(p50(&rows[slow]) >= 20_000.0, "{}", rows[slow]);
        }
        let as_it_is = [p50(&rows[0]), p50(&rows[4])];
        if as_it_is.iter().all(|p50| *p50 < 20_000.0) {
            break;
        }
        assert!(turn < 3, "{as_it_is:?} us");
    }
}

#[tokio::test]
async fn rows_without_a_slow_disk_name_the_reason() {
    let row = "^fsync/send, 64 callers, 5 ms an fsync/trunkline$";
    for (bench, why) in
        [(run(), "no commit waits for a disk with fsync=off"), (Bench::new("run"), "leave out --database-url")]
    {
        let server = crate::fixture::server();
        let bench = if why.contains("--database-url") {
            bench.args(["--database-url", &server.url("postgres")])
        } else {
            bench
        };
        let rows = bench.pattern(row).rows("0.2").await;
        let said = rows[0]["outcome"]["missing"].as_str().unwrap_or_else(|| panic!("{}", rows[0]));
        assert!(said.contains(why) || !cfg!(target_os = "linux"), "{said}");
    }
}
