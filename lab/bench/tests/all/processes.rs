//! Checks that callers in separate processes run in each language, under the conditions that their
//! rows name.

use serde_json::Value;

use crate::fixture::{Bench, name, run, server};

/// Runs these rows, and requires that all of them are measured.
async fn measured(patterns: &[&str]) -> Vec<Value> {
    let choose = |bench: Bench| patterns.iter().fold(bench, |bench, pattern| bench.pattern(pattern));
    let listed = choose(Bench::new("list")).lines().await;
    let rows = choose(run()).rows("1").await;
    assert_eq!(rows.iter().map(name).collect::<Vec<_>>(), listed);
    for row in &rows {
        assert_eq!(row["outcome"], "measured", "{row}");
        let round = &row["rounds"][0];
        assert!(round["sent"].as_u64() > Some(0) && round["latency"]["p50"].as_u64() > Some(0), "{row}");
        assert_eq!(round["received"].as_u64() > Some(0), row["suite"] == "latency", "{row}");
        assert!(row["settings"].as_str().is_some_and(|said| said.starts_with("a process per caller")), "{row}");
    }
    rows
}

#[tokio::test]
async fn processes_send_beside_a_sleeping_consumer_and_without() {
    let rows = measured(&[
        "^processes/1 process/library-process$",
        "^processes/8 processes, a sleeping consumer/library-process$",
        "^processes/8 processes, a sleeping consumer/plain-insert-and-notify$",
        "^processes/8 processes, 10 kB/plain-insert$",
        "^latency/100-a-second, 8 processes/library-process$",
    ])
    .await;
    let told = rows.iter().map(|row| (&row["told"]["producers"], &row["told"]["sleeper"], &row["told"]["payload"]));
    let some = |producers: u64, sleeper: bool, payload: u64| (producers.into(), sleeper.into(), payload.into());
    let expected: [(Value, Value, Value); 5] =
        [some(1, false, 100), some(8, true, 100), some(8, true, 100), some(8, false, 10_000), some(8, false, 100)];
    assert!(told.eq(expected.iter().map(|(one, two, three)| (one, two, three))), "{rows:?}");
}

#[tokio::test]
async fn messages_cross_a_network_of_a_millisecond() {
    let rows = measured(&["^processes/8 processes, 1 ms each way/library-process$"]).await;
    assert!(rows[0]["rounds"][0]["latency"]["p50"].as_u64() >= Some(2000), "{}", rows[0]);
}

#[tokio::test]
async fn only_a_private_server_has_a_standby() {
    let row = "^processes/8 processes, a synchronous standby/library-process$";
    measured(&[row]).await;
    let server = server();
    let elsewhere = || Bench::new("run").args(["--database-url", &server.url("postgres")]).pattern(row);
    let rows = elsewhere().rows("0.2").await;
    let said = rows[0]["outcome"]["missing"].as_str().unwrap_or_else(|| panic!("{}", rows[0]));
    assert!(said.starts_with("only the private cluster has a standby; leave out --database-url"), "{said}");
    let why = elsewhere().args(["--rounds", "1", "--require-all"]).fails().await;
    assert!(why.contains("1 rows were skipped, and all are required"), "{why}");
}

#[tokio::test]
#[ignore = "needs Go, Node.js with npm, Python with venv, and Java with Maven"]
async fn callers_in_every_language_are_measured() {
    let callers = ["psycopg", "pgx", "node-postgres", "jdbc"];
    let patterns = callers
        .map(|caller| [format!("^processes/8 processes/{caller}$"), format!("^latency/100-a-second, 8 */{caller}$")]);
    measured(&patterns.iter().flatten().map(String::as_str).collect::<Vec<_>>()).await;
}
