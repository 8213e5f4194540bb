//! Checks that each part of a publication is one whole run, and continues after an interruption.

use std::{path::Path, time::Duration};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use trunkline_embedded::Binaries;

use crate::fixture::{Bench, Folder, name};

fn publication(folder: &Path) -> Bench {
    let bench = Bench::new("publication").args(["--folder", folder.to_str().expect("text"), "--majors", ""]);
    bench.args(["--setting", "fsync=off", "--rounds", "2", "--seconds", "0.3"])
}

fn kept(folder: &Path) -> Value {
    let text = std::fs::read(folder.join("send.json")).expect("results are kept");
    serde_json::from_slice(&text).expect("results are JSON")
}

async fn until_there(file: &Path) {
    let patience = tokio::time::Instant::now() + Duration::from_secs(60);
    while !file.exists() {
        assert!(tokio::time::Instant::now() < patience, "{} is not there", file.display());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn interrupted_publication_continues_and_lists_its_hours() {
    let folder = Folder::new();
    let some = || publication(&folder.0).pattern("^send/send-single/sql$").pattern("^send/send-batch-10/sql$");
    let mut first = some().started();
    let mut lines = BufReader::new(first.stdout.take().expect("its output")).lines();
    while let Some(line) = lines.next_line().await.expect("its output is text") {
        if line.starts_with("1 send/send-single/sql") {
            break;
        }
    }
    // Each turn is saved immediately after it is reported.
    let file = folder.0.join("send.json");
    until_there(&file).await;
    first.kill().await.expect("it was running");
    let before = kept(&folder.0);

    let mut elsewhere = before.clone();
    elsewhere["rows"][0]["server"]["version"] = "9.6".into();
    std::fs::write(&file, elsewhere.to_string()).expect("written");
    let why = some().fails().await;
    assert!(why.contains("PostgreSQL was 9.6, and is ") && why.contains("`--restart send`"), "{why}");
    std::fs::write(&file, before.to_string()).expect("written");

    some().says().await;
    let after = kept(&folder.0);
    let rounds = |kept: &Value| kept["rows"][0]["rounds"].as_array().expect("rounds").clone();
    assert_eq!(rounds(&after).len(), 2);
    assert_eq!(rounds(&after)[0], rounds(&before)[0], "what was there was not measured again");
    assert_eq!(after["runs"][0]["id"], before["runs"][0]["id"]);
    assert_eq!(after["runs"][0]["sittings"].as_array().map(Vec::len), Some(2), "{}", after["runs"]);
    let rows = after["rows"].as_array().expect("rows");
    assert_eq!(rows.iter().map(name).collect::<Vec<_>>(), ["send/send-single/sql", "send/send-batch-10/sql"]);
    let page = std::fs::read_to_string(folder.0.join("README.md")).expect("a page");
    assert!(page.contains("- `send`: run ") && page.contains(", and from "), "{page}");

    let why = publication(&folder.0).pattern("^send/send-single/queue$").fails().await;
    assert!(why.contains("was begun with other rows") && why.contains("--restart"), "{why}");
    let why = Bench::new("publish").args([folder.0.to_str().expect("text")]).fails().await;
    for reason in ["left out rows whose names", "it was a trial", "--release"] {
        assert!(why.contains(reason), "{reason}: {why}");
    }

    let mut again = some().args(["--restart"]).started();
    until_there(&folder.0.join("send.json.old")).await;
    again.kill().await.expect("it was running");
    let why = Bench::new("publish").args([folder.0.to_str().expect("text")]).fails().await;
    assert!(why.contains("has no part"), "{why}");
}

#[tokio::test]
async fn a_run_writes_nothing_into_the_tree() {
    let inside = concat!(env!("CARGO_MANIFEST_DIR"), "/../results/throughput.json.gz");
    let before = std::fs::read(inside).expect("results are published");
    for (verb, option) in
        [("run", "--results"), ("run", "--csv"), ("claims", "--markdown"), ("publication", "--folder")]
    {
        let why = Bench::new(verb).args([option, inside]).args(["-p", "e"]).fails().await;
        assert!(why.contains("is in the source tree"), "{verb} {option}: {why}");
    }
    assert!(std::fs::read(inside).expect("they are still there") == before);
}

#[tokio::test]
async fn a_publication_names_the_postgres_that_is_not_here() {
    let folder = Folder::new();
    let bench =
        Bench::new("publication").args(["--folder", folder.0.to_str().expect("text"), "--plan", "--majors", "99"]);
    let why = bench.env("TRUNKLINE_PG_BINS", "").fails().await;
    assert!(why.contains("there is no PostgreSQL 99") && why.contains("TRUNKLINE_PG_BINS"), "{why}");
}

#[tokio::test]
async fn rows_are_measured_on_the_postgres_that_was_asked_for() {
    let named = std::env::var_os("TRUNKLINE_PG_BINS").unwrap_or_default();
    let mut all: Vec<Binaries> = std::env::split_paths(&named)
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(|folder| Binaries::inspect(&folder).expect("TRUNKLINE_PG_BINS names what runs here"))
        .collect();
    if all.is_empty() {
        all.push(Binaries::find_or_fetch(|_, _| {}).expect("a PostgreSQL"));
    }
    for binaries in all {
        let run = crate::fixture::run().args(["--server-bin", binaries.dir().to_str().expect("text")]);
        // Without autovacuum, dead rows stay until they have been counted.
        let run = run.args(["--setting", "autovacuum=off"]);
        let rows =
            run.pattern("^throughput/send-sequential/trunkline$").pattern("^layer-comparison/delete-single/queue$");
        for row in rows.rows("0.3").await {
            assert_eq!(row["outcome"], "measured", "{row}");
            let version = row["server"]["version"].as_str().expect("a version");
            assert_eq!(version.split('.').next(), Some(&*binaries.major().to_string()), "{version}");
            let dead = row["rounds"][0]["dead_after"].as_u64().expect("dead tuples");
            assert!(row["suite"] == "throughput" || dead > 0, "{row}");
        }
    }
}

#[tokio::test]
async fn every_claim_is_measured_and_says_its_command() {
    let folder = Folder::new();
    let page = folder.0.join("claims.md");
    let claims = Bench::new("claims").args(["--setting", "fsync=off", "--rounds", "2", "--rows", "500"]);
    claims.args(["--markdown", page.to_str().expect("text")]).says().await;
    let page = std::fs::read_to_string(page).expect("a page");
    for claim in [
        "explicit value or default",
        "sequence or timestamp",
        "statement without parameters",
        "partitions dropped, or rows deleted, under a held snapshot",
        "marked and dropped, or deleted",
        "marked and dropped, or deleted, under a held snapshot",
    ] {
        assert!(page.contains(&format!("## {claim}\n")), "{claim}: {page}");
        assert!(page.contains(&format!("claims --rounds 2 --rows 500 -p '{claim}'")), "{claim}: {page}");
    }
    assert!(page.contains(", commit `") && page.contains("2 rounds of 500 rows"), "{page}");
}
