//! Checks that the settings of a run take effect.

use crate::fixture::{Bench, Folder, connect, name, run, server};

#[tokio::test]
async fn list_prints_each_row_once_as_suite_case_and_contender() {
    let listed = Bench::new("list").lines().await;
    for row in ["layer-comparison/send-batch-100/coalesced", "throughput/drain/river", "soak/5000-a-second/trunkline"] {
        assert_eq!(listed.iter().filter(|name| *name == row).count(), 1, "{row}");
    }
    assert_eq!(listed.last().map(String::as_str), Some("drivers"), "what has a program of its own is named, too");
    let drains = Bench::new("list").pattern("drain/trunkline$").lines().await;
    assert_eq!(drains, ["throughput/drain/trunkline", "lanes/drain/trunkline"]);
}

#[tokio::test]
async fn requested_batch_sizes_are_sent() {
    let listed = Bench::new("list").env("BENCH_BATCH_SIZES", "3,7").pattern("^send/send-batch").lines().await;
    let expected =
        [3, 7].map(|n| ["statements", "sql", "queue", "pgmq"].map(|layer| format!("send/send-batch-{n}/{layer}")));
    assert_eq!(listed, expected.concat());
    let rows = run().env("BENCH_BATCH_SIZES", "7").pattern("^send/send-batch-7/queue$").rows("3").await;
    let round = &rows[0]["rounds"][0];
    let calls = round["latency"]["count"].as_u64().expect("calls are timed");
    assert_eq!((rows[0]["told"]["batch"].as_u64(), round["sent"].as_u64()), (Some(7), Some(7 * calls)), "{}", rows[0]);
}

#[tokio::test]
async fn requested_callers_run_and_appear_in_the_row_name() {
    let listed = Bench::new("list").args(["--callers", "2,5"]).pattern("^throughput/send,*/trunkline$").lines().await;
    assert_eq!(listed, [2, 5].map(|n| format!("throughput/send, {n} callers/trunkline")));
    let rows = run().args(["--callers", "2,5"]).pattern("^throughput/send,*/trunkline$").rows("3").await;
    for (row, callers) in rows.iter().zip([2, 5]) {
        assert_eq!((&row["outcome"], &row["told"]["producers"]), (&"measured".into(), &callers.into()), "{row}");
        assert!(row["rounds"][0]["sent"].as_u64() > Some(0), "{row}");
    }
    let why = Bench::new("list").args(["--callers", "2,0"]).fails().await;
    assert!(why.contains("--callers") && why.contains("at least one"), "{why}");
}

#[tokio::test]
async fn waiting_rows_and_throughput_can_be_left_out() {
    let (poll, throughput) = ("read/read-with-poll", "throughput/");
    let count = |listed: &[String], start: &str| listed.iter().filter(|row| row.starts_with(start)).count();
    let all = Bench::new("list").lines().await;
    for (setting, gone) in [("BENCH_ENABLE_POLL", poll), ("BENCH_ENABLE_THROUGHPUT", throughput)] {
        assert!(count(&all, gone) > 0, "{gone}");
        let without = Bench::new("list").env(setting, "false").lines().await;
        assert_eq!((count(&without, gone), without.len()), (0, all.len() - count(&all, gone)), "{setting}");
    }
}

#[tokio::test]
async fn rows_defined_by_a_number_have_the_requested_messages() {
    let folder = Folder::new();
    let csv = folder.0.join("rows.csv");
    let rows = run()
        .env("BENCH_MESSAGE_COUNT", "50")
        .pattern("^throughput/drain/trunkline$")
        .pattern("^throughput/send-n-sequential/statements$")
        .pattern("^throughput/full-cycle-n-batched-100/queue$")
        .args(["--csv", csv.to_str().expect("a folder with a name that is text")])
        .rows("60")
        .await;
    let received: Vec<_> = rows.iter().map(|row| row["rounds"][0]["received"].as_u64()).collect();
    assert_eq!(received, [Some(50); 3], "{rows:?}");
    let csv = std::fs::read_to_string(csv).expect("the rows as CSV");
    assert_eq!(csv.lines().count(), 4, "{csv}");
    assert!(csv.contains("trunkline"), "{csv}");
}

#[tokio::test]
async fn server_that_libpq_variables_name_is_measured() {
    let server = server();
    let admin = connect(&server, "postgres").await;
    let kept = "select count(*) from pg_database where datname like 'trunkline\\_bench\\_%'";
    let before: i64 = admin.query_one(kept, &[]).await.expect("a count").get(0);
    let (host, port) = (server.socket_dir().to_str().expect("text").to_owned(), server.port().to_string());
    let named = |verb| Bench::new(verb).env("PGHOST", &host).env("PGPORT", &port).env("PGUSER", server.user());
    let rows = named("run").env("BENCH_SKIP_CLEANUP", "true").pattern("^send/send-single/sql$").rows("0.2").await;
    assert_eq!(rows[0]["outcome"], "measured", "{}", rows[0]);
    let after: i64 = admin.query_one(kept, &[]).await.expect("a count").get(0);
    assert!(after > before, "the run was there");
    for (run, why) in [
        (named("run").env("PGSSLMODE", "require"), "PGSSLMODE is set"),
        (Bench::new("run").env("PGUSER", "me"), "neither PGHOST nor PGPORT"),
        (named("run").args(["--setting", "fsync=off"]), "unset PG_CONNECTION_STRING, PGHOST and PGPORT"),
        (named("drivers").env("PGSERVICE", "mine"), "PGSERVICE is set"),
    ] {
        let said = run.pattern("^send/send-single/sql$").fails().await;
        assert!(said.contains(why), "{why}: {said}");
    }
}

#[tokio::test]
async fn list_ends_quietly_when_its_reader_goes_away() {
    let mut listing = Bench::new("list").started();
    drop(listing.stdout.take());
    let status = listing.wait().await.expect("it ends");
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn run_reports_its_server_and_disk() {
    let folder = Folder::new();
    let results = folder.0.join("results.json");
    let said = Bench::new("run")
        .pattern("^send/send-single/sql$")
        .args(["--rounds", "1", "--seconds", "0.2", "--results", results.to_str().expect("text")])
        .says()
        .await;
    for fact in ["PostgreSQL 1", "fsync on", "synchronous_commit on", "wal_level replica", " processors; "] {
        assert!(said.contains(fact), "{fact}: {said}");
    }
    assert!(said.contains("fdatasync") || said.contains("pg_test_fsync is not here"), "{said}");
}

#[tokio::test]
async fn databases_on_a_named_server_are_dropped_unless_kept() {
    let server = server();
    let admin = connect(&server, "postgres").await;
    let kept = "select count(*) from pg_database where datname like 'trunkline\\_bench\\_%'";
    // Each row has two databases. One belongs to the program that counts allocations.
    for (keep, stay) in [("false", 0_i64), ("true", 2)] {
        let url = server.url("postgres");
        let run = Bench::new("run").env("PG_CONNECTION_STRING", &url).env("BENCH_SKIP_CLEANUP", keep);
        let rows = run.pattern("^send/send-single/sql$").rows("0.2").await;
        assert_eq!((name(&rows[0]).as_str(), &rows[0]["outcome"]), ("send/send-single/sql", &"measured".into()));
        let left: i64 = admin.query_one(kept, &[]).await.expect("a count").get(0);
        assert_eq!(left, stay, "BENCH_SKIP_CLEANUP={keep}");
    }
}
