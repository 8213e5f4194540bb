//! Checks that all of our rows run. With one second per row, the whole test would take four
//! minutes. A fifth of a second is enough for most rows; a comment explains each exception.

use serde_json::Value;

use crate::fixture::{Bench, OWN, name, run};

/// The suites that run together, and the seconds per row.
const THROUGHPUT: (&[&str], &str) = (&["throughput", "processes", "lanes", "burst"], "0.2");
const STEPS: (&[&str], &str) = (&["send", "read", "ack"], "0.2");
const LAYERS: (&[&str], &str) = (&["layer-comparison"], "0.2");
const GRID: (&[&str], &str) = (&["grid", "latency"], "0.2");
const DISTANCE: (&[&str], &str) = (&["distance"], "0.2");
/// The suites at one message per second. A shorter turn would contain no message.
const IDLE: (&[&str], &str) = (&["idle"], "1");
const LEDGER: (&[&str], &str) = (&["exactly-once"], "1");
/// The suites that take a sample every second or two. A change needs two samples.
const LONG: (&[&str], &str) = (&["headline", "old-snapshot", "soak"], "4");

/// The seconds per row in a second run, for rows that had no message in a fifth of a second on a
/// busy machine.
const LONGER: &str = "8";
/// The seconds per sampled row in a second run.
const MUCH_LONGER: &str = "20";

fn patterns((suites, _): (&[&str], &str)) -> Vec<String> {
    suites.iter().flat_map(|suite| OWN.map(|own| format!("^{suite}/*/{own}$"))).collect()
}

/// Runs all of our rows in these suites, and checks the kept rows.
async fn measured(group: (&[&str], &str)) {
    let patterns = patterns(group);
    let choose = |bench: Bench| patterns.iter().fold(bench, |bench, pattern| bench.pattern(pattern));
    let longer = if group == LONG { MUCH_LONGER } else { LONGER };
    let listed = choose(Bench::new("list")).lines().await;
    // Without autovacuum, dead rows stay until they have been counted.
    let run = || run().args(["--messages", "2000", "--backlog", "2000", "--setting", "autovacuum=off"]);
    let rows = choose(run().args(["--settle", "0.5"])).rows(group.1).await;
    // Ignores the order, because rows with a standby run after the others.
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    assert_eq!(sorted(rows.iter().map(name).collect()), sorted(listed));
    let (told, silent): (Vec<&Value>, Vec<&Value>) = rows.iter().partition(|row| tells(row, &row["rounds"][0]));
    let again = silent.iter().fold(run(), |bench, row| bench.pattern(&format!("^{}$", name(row))));
    let again = if silent.is_empty() { Vec::new() } else { again.rows(longer).await };
    assert_eq!(again.len(), silent.len());
    for (rows, seconds) in [(told, group.1), (again.iter().collect(), longer)] {
        for row in rows {
            assert_eq!(row["outcome"], "measured", "{row}");
            check_row(row, seconds.parse().expect("seconds"));
        }
    }
    let watched = rows.iter().any(|row| row["suite"] == "grid");
    let waited = rows.iter().any(|row| row["rounds"][0]["waits"].is_object());
    assert!(!watched || waited, "no session was ever sampled");
}

fn number(of: &Value, figure: &str) -> f64 {
    let number = of[figure].as_f64();
    number.filter(|number| number.is_finite() && *number >= 0.0).unwrap_or_else(|| panic!("{figure} is not told: {of}"))
}

fn check_row(row: &Value, seconds: f64) {
    for (of, figure) in
        [("server", "version"), ("server", "fsync"), ("server", "synchronous_commit"), ("server", "processor")]
    {
        assert_ne!(row[of][figure].as_str().expect(figure), "", "{figure}: {row}");
    }
    let server = &row["server"];
    assert_eq!((&server["fsync"], &server["connection"]), (&"off".into(), &"unix socket".into()), "{row}");
    assert_eq!(server["wal_level"], "replica", "{row}");
    assert!(number(server, "processors") > 0.0, "{row}");
    assert!(server["commit_delay"].is_string(), "{row}");
    for words in ["version", "runtime", "settings"] {
        assert_ne!(row[words].as_str().expect(words), "", "{words}: {row}");
    }
    assert!(number(row, "measured_at") > 0.0, "{row}");
    assert!(row["made"]["arguments"].as_str().expect("arguments").starts_with("run --setting fsync=off"), "{row}");
    assert!(row["made"]["build"].is_string() && row["made"]["commit"].is_string(), "{row}");
    assert!(!row["run"].as_str().expect("a run").is_empty() && row["planned_rounds"] == 1, "{row}");
    assert!((number(&row["told"], "seconds") - seconds).abs() < f64::EPSILON, "{row}");
    let rounds = row["rounds"].as_array().expect("rounds");
    assert_eq!(rounds.len(), 1, "{row}");
    check_round(row, &rounds[0]);
}

/// Returns true if the row sent and received what its case requires. A sampled row must have done
/// so in each sample.
fn tells(row: &Value, round: &Value) -> bool {
    let went = |of: &Value| (of["sent"].as_f64().unwrap_or(0.0), of["received"].as_f64().unwrap_or(0.0));
    let goes = |sample: &Value| went(sample).0 > 0.0 && went(sample).1 > 0.0;
    let (sent, received) = went(round);
    if is_long(row) && (series(round).len() < 2 || !series(round).iter().all(goes)) {
        return false;
    }
    match row["told"]["case"].as_str().expect("a case") {
        "send" => sent > 0.0 && received == 0.0,
        "drain" | "ledger" => sent == 0.0 && received > 0.0,
        // Rows without a rate measure waiting consumers, and nothing is sent.
        "cycle" if row["told"]["rate"] == 0.0 => sent == 0.0 && received == 0.0,
        "cycle" => sent > 0.0 && received > 0.0,
        _ => sent > 0.0 && round["sent"] == round["received"],
    }
}

fn is_long(row: &Value) -> bool {
    LONG.0.contains(&row["suite"].as_str().expect("a suite"))
}

fn series(round: &Value) -> &[Value] {
    round["series"].as_array().map_or(&[], Vec::as_slice)
}

fn check_round(row: &Value, round: &Value) {
    let (told, case) = (&row["told"], row["told"]["case"].as_str().expect("a case"));
    let silent = told["rate"] == 0.0;
    assert!(tells(row, round), "{row}");
    assert!(number(round, "seconds") > 0.0, "{row}");
    for figure in ["dead_after", "stolen", "wal_per_second"] {
        number(round, figure);
    }
    assert_eq!(
        round["dead_before"].is_number(),
        number(told, "backlog") > 0.0,
        "only a table that was counted knows: {row}"
    );
    // Leasing, deleting or archiving a message leaves a dead row behind.
    let settles = ["read-single", "read-batch", "delete", "archive", "pop"].iter().any(|step| case.starts_with(step));
    assert!(!settles || number(round, "dead_after") > 0.0, "the server's statistics were not flushed: {row}");
    let watched = ["grid", "exactly-once"].contains(&row["suite"].as_str().expect("a suite"));
    // A turn of a fifth of a second may end before the first sample is taken.
    assert!(watched || !round["waits"].is_object(), "{row}");
    assert!(number(round, "fsyncs_before") > 0.0 && number(round, "fsyncs_after") > 0.0, "{row}");
    if cfg!(target_os = "linux") {
        for figure in ["client_cpu", "server_cpu", "read_per_second", "written_per_second"] {
            number(round, figure);
        }
        assert!(number(round, "client_memory") > 1e6 && number(round, "cpu_step") < 0.01, "{row}");
    }
    // Steps that need other steps before them have no cost per message. The same applies to rows
    // whose consumers lag, which may happen in such a short time.
    let prepared = ["read", "delete", "archive", "pop"].iter().any(|verb| case.starts_with(verb));
    assert!(!prepared || round["wal_bytes"].is_null(), "{row}");
    if !silent && !prepared && case != "cycle" {
        assert!(number(round, "wal_bytes") > 0.0 && number(round, "transactions") > 0.0, "{row}");
        if cfg!(target_os = "linux") {
            for figure in ["client_cpu_us", "server_cpu_us"] {
                number(round, figure);
            }
        }
    }
    // A closed loop measures the time of a call, and an open loop the time of a message. All other
    // cases have only a rate.
    let timed = !silent && case != "drain" && case != "ledger" && (case != "cycle" || told["rate"].is_number());
    assert_eq!(round["latency"].is_object(), timed, "{row}");
    if timed {
        let latency = &round["latency"];
        let steps = ["p50", "p90", "p99", "p999", "max"].map(|figure| number(latency, figure));
        assert!(number(latency, "count") > 0.0 && steps[0] > 0.0 && steps.is_sorted(), "{latency}: {row}");
        assert!(number(latency, "mean") > 0.0 && number(latency, "mean") <= steps[4], "{latency}: {row}");
    }
    // Many callers share statements, so only a row for throughput counts the allocations of their
    // calls.
    let suite = row["suite"].as_str().expect("a suite");
    let counted = ["throughput", "layer-comparison", "send", "read", "ack"].contains(&suite)
        && (suite == "throughput" || number(told, "producers") <= 1.0)
        && !case.starts_with("read-with-poll");
    for figure in ["allocations", "allocated_bytes"] {
        assert_eq!(round[figure].is_number(), counted, "{figure}: {row}");
        assert!(!counted || number(round, figure) > 0.0, "{figure}: {row}");
    }
    if told["held_snapshot"] == true {
        assert!(number(round, "dead_after") > 0.0, "nothing died: {row}");
    }
    assert_eq!(series(round).len() >= 2, is_long(row), "{row}");
    for sample in series(round) {
        for figure in ["at", "sent", "received", "size"] {
            assert!(number(sample, figure) > 0.0, "{figure}: {row}");
        }
        number(sample, "server_cpu_us");
        number(sample, "dead");
    }
}

#[tokio::test]
async fn every_suite_of_ours_is_in_one_of_these_tests() {
    let groups = [THROUGHPUT, STEPS, LAYERS, GRID, DISTANCE, IDLE, LEDGER, LONG];
    let mut expected = Vec::new();
    for group in groups {
        let patterns = patterns(group);
        expected.extend(patterns.iter().fold(Bench::new("list"), |list, pattern| list.pattern(pattern)).lines().await);
    }
    // These suites have their own tests, because they wait for the disk.
    let patterns = [crate::fsync::patterns(), crate::stripes::patterns()].concat();
    expected.extend(patterns.iter().fold(Bench::new("list"), |list, pattern| list.pattern(pattern)).lines().await);
    let mut ours = Bench::new("list").lines().await;
    ours.retain(|row| row.rsplit('/').next().is_some_and(|contender| OWN.contains(&contender)));
    expected.sort();
    ours.sort();
    assert_eq!(expected, ours);
}

#[tokio::test]
async fn our_rows_of_throughput_and_burst_are_measured() {
    measured(THROUGHPUT).await;
}

#[tokio::test]
async fn our_rows_of_send_read_and_ack_are_measured() {
    measured(STEPS).await;
}

#[tokio::test]
async fn our_rows_of_layer_comparison_are_measured() {
    measured(LAYERS).await;
}

#[tokio::test]
async fn our_rows_of_grid_and_latency_are_measured() {
    measured(GRID).await;
}

#[tokio::test]
async fn our_rows_of_distance_are_measured() {
    measured(DISTANCE).await;
}

#[tokio::test]
async fn our_rows_of_idle_are_measured() {
    measured(IDLE).await;
}

#[tokio::test]
async fn our_rows_of_exactly_once_are_measured() {
    measured(LEDGER).await;
}

#[tokio::test]
async fn consumers_at_rest_send_no_statements_unless_they_poll() {
    let ways = ["trunkline", "trunkline-notify", "hand-over", "trunkline-poll"];
    let run = ways.iter().fold(run(), |run, way| run.pattern(&format!("^idle/0-a-second/{way}$")));
    let rows = run.args(["--settle", "5"]).rows("20").await;
    for row in rows {
        assert_eq!(row["outcome"], "measured", "{row}");
        let statements = &row["rounds"][0]["statements_per_second"];
        // A server without pg_stat_statements cannot count statements.
        let Some(statements) = statements.as_f64() else { panic!("statements were not counted: {row}") };
        match row["contender"].as_str().expect("a contender") {
            "trunkline-poll" => assert!(statements > 1.0, "one who polls sends statements: {row}"),
            // Every half minute, `hand-over` leaves the wait list, takes, enters the list again and
            // probes the queue. That may happen within these twenty seconds.
            "hand-over" => assert!(statements < 1.0, "{statements} statements/s: {row}"),
            // A periodic probe and the listener's notification to itself may fall in this time.
            _ => assert!(statements < 0.5, "{statements} statements/s: {row}"),
        }
    }
}

#[tokio::test]
async fn our_rows_of_old_snapshot_and_soak_are_measured() {
    measured(LONG).await;
}
