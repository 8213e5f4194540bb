mod fsync;
mod lost;
mod published;

use std::path::PathBuf;

use super::{charts::FIGURES, csv, fake, readme, write};
use crate::results::{Outcome, Results, Row};

fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let after = text.split_once(&format!("## {heading}\n")).unwrap_or_else(|| panic!("no {heading} in {text}")).1;
    after.split("\n## ").next().unwrap_or(after)
}

fn race(rows: &[(&str, f64)]) -> Results {
    let row = |(name, rate): &(&str, f64)| {
        let mut row = fake::measured(fake::row("throughput", "cycle", name), *rate, 100.0);
        row.rounds.iter_mut().for_each(|round| (round.server_cpu_us, round.wal_bytes) = (None, None));
        row
    };
    Results { runs: Vec::new(), rows: rows.iter().map(row).collect() }
}

/// A folder for one test, removed with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("trunkline-report-{name}-{}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn lost_comparisons_come_first_the_worst_at_the_top() {
    let mut results = race(&[("trunkline", 1000.0), ("pgq", 1500.0)]);
    let mut drained = race(&[("trunkline", 1000.0), ("river", 3000.0), ("pgmq", 900.0)]);
    drained.rows.iter_mut().for_each(|row| row.case = "drain".into());
    results.rows.extend(drained.rows);
    let text = readme(&results, &[]);
    assert!(text.find("\n## ") == text.find("\n## What was lost"), "{text}");
    let lost = section(&text, "What was lost");
    let worst =
        "| `throughput` `drain`, at least once, messages/s | ×3.00 | `river` 3.00 k (×3.00); ours `trunkline` 1.00 k |";
    let next =
        "| `throughput` `cycle`, at least once, messages/s | ×1.50 | `pgq` 1.50 k (×1.50); ours `trunkline` 1.00 k |";
    assert!(lost.find(worst).expect(lost) < lost.find(next).expect(lost), "{lost}");
}

#[test]
fn promises_and_doors_are_compared_apart() {
    let mut results = race(&[
        ("trunkline", 900.0),
        ("trunkline-at-most-once", 1500.0),
        ("sql", 100.0),
        ("hasql-queue", 1200.0),
        ("pgmq", 200.0),
    ]);
    results.rows.iter_mut().for_each(|row| (row.suite, row.case) = ("grid".into(), "1/1".into()));
    let lost = readme(&results, &[]);
    let lost = section(&lost, "What was lost");
    assert!(
        lost.contains(
            "`grid` `1/1`, at least once, messages/s | ×1.33 | `hasql-queue` 1.20 k (×1.33); ours `trunkline` 900"
        ),
        "{lost}"
    );
    assert!(
        lost.contains("`grid` `1/1`, SQL with SQL, messages/s | ×2.00 | `pgmq` 200 (×2.00); ours `sql` 100"),
        "{lost}"
    );
    assert!(!lost.contains("at most once, messages/s"), "{lost}");
}

#[test]
fn a_loss_says_with_how_many_callers_where_they_differ() {
    let mut results = race(&[("trunkline", 1000.0), ("pgq", 1500.0)]);
    results.rows[0].told.producers = 1024;
    let text = readme(&results, &[]);
    assert!(
        text.contains("`pgq` 1.50 k with 16 callers (×1.50); ours `trunkline` 1.00 k with 1024 callers |"),
        "{text}"
    );
}

#[test]
fn a_suite_without_a_loss_says_so() {
    let text = readme(&race(&[("trunkline", 1000.0), ("pgq", 500.0)]), &[]);
    assert!(text.contains("Nothing was lost in `throughput`."), "{text}");
}

#[test]
fn a_race_that_ours_did_not_end_is_lost() {
    let mut results = race(&[("trunkline", 1000.0), ("pgq", 500.0)]);
    results.rows[0].outcome = Outcome::Failed("it fell over".into());
    let text = readme(&results, &[]);
    assert!(section(&text, "What was lost").contains("`pgq` 500; no row of Trunkline was measured"), "{text}");
}

#[test]
fn rows_of_different_servers_are_not_compared() {
    let mut results = race(&[("trunkline", 1000.0), ("pgq", 5000.0)]);
    results.rows[1].server.version = "18.1".into();
    let text = readme(&results, &[]);
    assert!(text.contains("Without a peer, or without a row of Trunkline: `throughput`."), "{text}");
}

#[test]
fn reaching_the_rate_never_loses_to_a_faster_peer() {
    let mut results = race(&[("trunkline", 998.0), ("pgq", 1010.0)]);
    results.rows.iter_mut().for_each(|row| row.told.rate = Some(1000.0));
    assert!(readme(&results, &[]).contains("Nothing was lost"));
}

#[test]
fn a_figure_is_the_median_of_its_rounds() {
    let text = readme(&race(&[("trunkline", 1000.0)]), &[]);
    assert!(text.contains("| **`trunkline`** | `cycle` | 1.00 k (900–1.04 k) |"), "{text}");
}

#[test]
fn missing_contenders_are_named_with_their_reason() {
    let text = readme(&fake::results(), &[]);
    let absent = section(&text, "Who could not be measured");
    assert!(
        absent.contains("| `pgq` | missing | the extension pgq is not installed \\| &lt;on this server> |"),
        "{absent}"
    );
    assert!(absent.contains("| `awa` | stalled | it said nothing for twenty seconds |"), "{absent}");
    for (name, draw) in FIGURES.iter().filter(|(name, _)| ["throughput.svg", "old-snapshot.svg"].contains(name)) {
        let drawn = draw(&fake::results()).expect(name).expect(name);
        assert!(drawn.contains("missing: the extension"), "{name}");
    }
    let mut results = fake::results();
    let failed = results.rows.iter_mut().find(|row| row.case == "send-batch-100").expect("a row of ours");
    failed.outcome = Outcome::Failed("it fell over".into());
    let (_, draw) = FIGURES[0];
    let drawn = draw(&results).expect("it is drawn").expect("a figure");
    assert!(drawn.contains("Not shown: trunkline in send-batch-100 (failed: it fell over)."), "{drawn}");
}

#[test]
fn disturbed_rows_are_marked_with_the_reason() {
    let text = readme(&fake::results(), &[]);
    assert!(text.contains("| `river` † |"), "{text}");
    assert!(
        text.contains(
            "† disturbed: `river` `send-sequential`: round 2 of 3, the disk went from 7403 to 3100 fsyncs/s."
        )
    );
}

#[test]
fn summary_of_figures_appears_only_with_rows() {
    assert!(!readme(&race(&[("trunkline", 1000.0)]), &[]).contains("What the figures say"));
    let text = readme(&fake::results(), &[]);
    let says = section(&text, "What the figures say");
    for topic in ["Layer overhead", "Batch scaling", "Read against send", "Payload size", "Full cycle"] {
        assert!(says.contains(&format!("**{topic}**")), "{topic}: {says}");
    }
    assert!(says.contains("`queue` takes 1.11 ("), "{says}");
}

#[test]
fn held_snapshot_is_reported_from_first_to_last_tenth() {
    let text = readme(&fake::results(), &[]);
    let old = section(&text, "old-snapshot");
    assert!(old.contains("first tenth → last tenth") && old.contains("6.00 k → 60.0 k"), "{old}");
}

#[test]
fn nothing_is_not_a_number() {
    let mut results = fake::results();
    for row in results.rows.iter_mut().step_by(3) {
        for round in &mut row.rounds {
            (round.seconds, round.sent, round.received) = (0.0, 0, 0);
            (round.client_cpu_us, round.server_cpu_us) = (Some(f64::NAN), Some(f64::INFINITY));
            round.series.iter_mut().for_each(|sample| sample.server_cpu_us = f64::NAN);
        }
    }
    let mut all = vec![readme(&results, &[]), csv(&results), super::json(&results).expect("rows")];
    all.extend(FIGURES.iter().filter_map(|(name, draw)| draw(&results).expect(name)));
    for text in all {
        let words = text.split(|letter: char| !letter.is_alphanumeric());
        assert!(!words.into_iter().any(|word| ["NaN", "inf", "Infinity"].contains(&word)), "{text}");
    }
}

#[test]
fn every_figure_is_well_formed_and_has_a_title() {
    for (name, draw) in FIGURES {
        let figure = draw(&fake::results()).expect(name).expect(name);
        assert!(figure.contains("<title id=\"title\">") && figure.contains("<desc id=\"desc\">"), "{name}");
        let mut open: Vec<&str> = Vec::new();
        for tag in figure.split('<').skip(1) {
            let (tag, text) = tag.split_once('>').expect("a tag ends");
            assert!(!text.contains('>') || open.last() == Some(&"style"), "{name}: {text}");
            match tag.strip_prefix('/') {
                Some(closed) => assert_eq!(open.pop(), Some(closed), "{name}"),
                None if tag.ends_with('/') => {}
                None => open.push(tag.split(' ').next().unwrap_or(tag)),
            }
        }
        assert!(open.is_empty(), "{name}: {open:?}");
    }
}

#[test]
fn csv_has_one_line_per_round_or_row_without_rounds() {
    let results = fake::results();
    let text = csv(&results);
    let lines = |row: &Row| row.rounds.len().max(1);
    assert_eq!(text.lines().count(), 1 + results.rows.iter().map(lines).sum::<usize>());
    // Skips lines with quoted cells: only the cases of two suites contain commas.
    let columns = text.lines().next().expect("titles").split(',').count();
    for line in text.lines().filter(|line| !line.contains('"')) {
        assert_eq!(line.split(',').count(), columns, "{line}");
    }
}

#[test]
fn written_report_reads_back_unchanged() {
    let folder = Folder::new("again");
    let file = folder.0.join("results.json");
    let text = super::json(&fake::results()).expect("JSON");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    std::fs::write(&file, &text).expect("written");
    let read = || super::read(&file).expect("rows");
    let files = || ["README.md", "results.csv", "throughput.svg", "old-snapshot.svg"];
    let content = |name: &str| std::fs::read_to_string(folder.0.join(name)).expect(name);
    write(&read(), &folder.0).expect("the same folder");
    let before = files().map(content);
    write(&read(), &folder.0).expect("the same folder");
    assert!(files().map(content) == before);
    assert_eq!(text.lines().count(), fake::results().rows.len() + 2);
    super::pack(&text, &file).expect("packed");
    std::fs::remove_file(&file).expect("removed");
    assert_eq!(super::json(&read()).expect("JSON"), text, "the packed rows are the same");
    write(&read(), &folder.0).expect("the same folder");
    assert!(files().map(content) == before);
}

#[test]
fn no_results_give_a_clear_page_and_no_figures() {
    let folder = Folder::new("empty");
    write(&fake::results(), &folder.0).expect("a folder");
    write(&Results::default(), &folder.0).expect("the same folder");
    let text = std::fs::read_to_string(folder.0.join("README.md")).expect("a page");
    assert!(text.ends_with("Nothing was measured yet.\n"), "{text}");
    let mut left: Vec<_> =
        std::fs::read_dir(&folder.0).expect("the folder").flatten().map(|file| file.file_name()).collect();
    left.sort();
    assert_eq!(left, ["README.md", "results.csv"]);
}

/// Returns a race whose rounds have `count` latencies each.
fn sampled(count: u64) -> Results {
    let mut results = race(&[("trunkline", 1000.0), ("pgq", 900.0)]);
    for round in results.rows.iter_mut().flat_map(|row| &mut row.rounds) {
        round.latency.as_mut().expect("a latency").count = count;
    }
    results
}

#[test]
fn percentiles_need_enough_samples() {
    let columns = |count| {
        let results = sampled(count);
        let text = readme(&results, &[]);
        let csv = csv(&results);
        let title = csv.lines().next().expect("titles").split(',').position(|title| title == "p999_us").expect("p99.9");
        let p999 = csv.lines().nth(1).expect("a round").split(',').nth(title).expect("a cell").to_owned();
        (text.contains("| p99 |"), text.contains("| p99.9 |"), !p999.is_empty())
    };
    assert_eq!(columns(99), (false, false, false));
    assert_eq!(columns(100), (true, false, false));
    assert_eq!(columns(999), (true, false, false));
    assert_eq!(columns(1000), (true, true, true));
}

#[test]
fn processor_time_of_a_few_ticks_is_not_reported() {
    let used = |step: f64| {
        let mut results = race(&[("trunkline", 1000.0), ("pgq", 900.0)]);
        for row in &mut results.rows {
            row.suite = "idle".into();
            for round in &mut row.rounds {
                (round.cpu_step, round.server_cpu, round.client_cpu) = (step, Some(0.0066), Some(0.0066));
            }
        }
        readme(&results, &[]).contains("server CPU of one processor")
    };
    assert!(!used(0.01), "66 ms are seven ticks");
    assert!(used(1e-6), "66 ms are many microseconds");
}

#[test]
fn rows_of_older_runs_had_their_processor_times_from_ticks() {
    let mut row =
        serde_json::to_value(fake::measured(fake::row("idle", "0-a-second", "trunkline"), 1.0, 1.0)).expect("JSON");
    row["rounds"][0].as_object_mut().expect("a round").remove("cpu_step");
    let row: Row = serde_json::from_value(row).expect("a row");
    assert!((row.rounds[0].cpu_step - 0.01).abs() < f64::EPSILON);
}

#[test]
fn a_row_that_scatters_more_than_threefold_says_nothing() {
    let mut results = race(&[("trunkline", 1000.0), ("pgq", 5000.0)]);
    results.rows[1].rounds[0].received /= 4;
    let text = readme(&results, &[]);
    assert!(text.contains("| `pgq` ‡ | `cycle` | says nothing (1.25 k–5.20 k) | – |"), "{text}");
    assert!(
        text.contains("‡ scatters more than threefold from round to round, and says nothing: `pgq` `cycle`."),
        "{text}"
    );
    let lost = section(&text, "What was lost");
    assert!(!lost.contains("×"), "{lost}");
    assert!(
        lost.contains("Not compared, because their rounds scatter more than threefold")
            && lost.contains("`pgq` `cycle`, messages/s"),
        "{lost}"
    );
}

#[test]
fn unknown_dead_tuples_are_not_zero() {
    let mut results = race(&[("trunkline", 1000.0)]);
    for round in &mut results.rows[0].rounds {
        (round.dead_before, round.dead_after) = (None, Some(77));
    }
    assert!(readme(&results, &[]).contains("| 77.0 |"));
    for round in &mut results.rows[0].rounds {
        round.dead_after = None;
    }
    assert!(!readme(&results, &[]).contains("dead tuples"));
}

#[test]
fn table_states_duration_rounds_and_origin_of_rows() {
    let mut results = race(&[("trunkline", 1000.0), ("pgq", 900.0)]);
    let text = readme(&results, &[]);
    assert!(
        text.contains("seconds per round 10, rounds 3, commit 0123456789ab, arguments `publication`, build release"),
        "{text}"
    );
    results.rows[1].told.seconds = 0.7;
    results.rows[1].rounds.truncate(1);
    results.rows[1].made = crate::results::Made::default();
    let text = readme(&results, &[]);
    assert!(text.contains("| seconds per round | rounds | commit | arguments | build |"), "{text}");
    assert!(text.contains("| 10 | 3 | 0123456789ab | `publication` | release |"), "{text}");
    assert!(text.contains("| 0.700 | 1 | not kept | `not kept` | not kept |"), "{text}");
}
