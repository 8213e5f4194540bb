//! Tests the axis of an fsync's duration.

use super::{FIGURES, fake, readme, section};
use crate::results::Results;

fn fsyncs() -> Results {
    let mut results = fake::results();
    results.rows.retain(|row| row.suite == "fsync");
    results
}

fn figure(results: &Results) -> Option<String> {
    let (_, draw) = FIGURES.iter().find(|(name, _)| *name == "fsync.svg").expect("it has a figure");
    draw(results).expect("it is drawn")
}

#[test]
fn table_has_columns_by_time_and_lines_by_callers() {
    let text = readme(&fsyncs(), &["fsync.svg"]);
    let text = section(&text, "fsync");
    assert!(text.contains("![fsync](fsync.svg)"), "{text}");
    for line in [
        "| sent/s, p99 of a send | callers | as the disk is | 1 ms | 5 ms | 20 ms |",
        "| **`trunkline`** | 64 | 160 k, 2.40 ms | 45.7 k, 8.40 ms | 11.9 k, 32.4 ms | 3.14 k, 122 ms |",
        "| **`trunkline`** | 1,024 | 2.56 M, 2.40 ms | 731 k, 8.40 ms | 190 k, 32.4 ms | 50.2 k, 122 ms |",
        "| `pgq` | 64 | – | – | – | – |",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(text.contains("| 1 ms or more |") && text.contains("| as the disk is |"), "{text}");
}

#[test]
fn figure_labels_differing_callers_and_names_the_missing() {
    let mut results = fsyncs();
    let drawn = figure(&results).expect("a figure");
    for words in [
        "trunkline, 64 callers",
        "trunkline-bytea, 1024 callers",
        "pgmq, 64 callers",
        "messages sent a second",
        "99th percentile",
        "Not shown: pgq, 64 callers (missing: the extension",
    ] {
        assert!(drawn.contains(words), "{words}: {drawn}");
    }
    results.rows.retain(|row| row.told.producers == 64);
    let drawn = figure(&results).expect("a figure");
    assert!(drawn.contains(">\ntrunkline\n<") && !drawn.contains("64 callers"), "{drawn}");
}

#[test]
fn one_time_is_no_axis() {
    let mut results = fsyncs();
    results.rows.retain(|row| row.told.fsync_ms == Some(1.0));
    assert_eq!(figure(&results), None);
}

#[test]
fn left_end_is_the_fsync_time_of_the_disk() {
    let drawn = figure(&fsyncs()).expect("a figure");
    // The first tick is the median around the rounds: 7,403 durable writes per second take 135 µs
    // each.
    for tick in ["135 µs", "1 ms", "5 ms", "20 ms"] {
        assert!(drawn.contains(&format!(">\n{tick}\n<")), "{tick}: {drawn}");
    }
}
