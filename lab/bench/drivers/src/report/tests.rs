use std::time::Duration;

use super::{Made, Report, pages};
use crate::{
    measured::{Measured, Turn},
    ways::{OUR_ARRAYS, OURS, PIPELINED, SEQUENCE, TEXT, THEIR_ARRAYS},
    workloads::{INSERTS, WORKLOADS},
};

/// Returns a report with the given rows: workload, delay in milliseconds, way, and turns in
/// milliseconds.
fn report(rows: &[(&str, u64, &'static str, &[f64])]) -> Report {
    let row = |(workload, delay, way, turns): &(&str, u64, &'static str, &[f64])| Measured {
        delay: Duration::from_millis(*delay),
        workload: *WORKLOADS.iter().find(|known| known.name == *workload).expect("a workload"),
        way,
        turns: turns
            .iter()
            .map(|time| Duration::from_secs_f64(time / 1e3))
            .map(|time| Turn { time, cpu: time })
            .collect(),
    };
    let measured = rows.iter().map(row).collect();
    Report { machine: "a machine".to_owned(), made: Made::default(), measured, verbs: Vec::new() }
}

/// Returns the lines of a page that contain these words.
fn lines<'a>(text: &'a str, words: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.contains(words)).collect()
}

#[test]
fn bars_compare_with_the_fastest_of_all_rivals() {
    let rows: [(&str, u64, &str, &[f64]); 6] = [
        (INSERTS, 0, OURS, &[2.0]),
        (INSERTS, 0, OUR_ARRAYS, &[1.0]),
        (INSERTS, 0, SEQUENCE, &[9.0]),
        (INSERTS, 0, THEIR_ARRAYS, &[3.0]),
        (INSERTS, 0, "libpq pipelined", &[1.5]),
        (INSERTS, 0, "sqlx, arrays", &[1.2]),
    ];
    let text = report(&rows).markdown();
    let shown = lines(&text, &format!("| {INSERTS}: the"));
    assert_eq!(
        shown,
        [
            "| insert ×1000 returning: the fastest of all rivals (libpq pipelined) | ≥ 1 | 0.75 | **missed** | 0.75 |",
            "| insert ×1000 returning: the fastest of tokio-postgres' ways | ≥ 1 | 4.50 | held | 4.50 |",
            "| insert ×1000 returning: the same statement with arrays, by tokio-postgres | ≥ 1 | 3.00 | held | 3.00 |",
            "| insert ×1000 returning: the same statement with arrays, by the fastest of all rivals (sqlx, arrays) | ≥ 1 | 1.20 | held | 1.20 |",
        ]
    );
    // The bars of the pipelined ways were not measured.
    assert!(text.contains("1 of 4 are missed; they come first."));
}

#[test]
fn missed_bars_come_first() {
    let rows: [(&str, u64, &str, &[f64]); 4] = [
        ("get ×100", 0, OURS, &[1.0]),
        ("get ×100", 0, SEQUENCE, &[2.0]),
        ("select list ×100", 0, OURS, &[2.0]),
        ("select list ×100", 0, PIPELINED, &[1.0]),
    ];
    let text = report(&rows).markdown();
    let bars: Vec<&str> = text.lines().filter(|line| line.contains("≥") || line.contains("≤")).collect();
    assert!(bars[0].contains("select list ×100: the fastest of tokio-postgres' ways"), "{bars:#?}");
    assert!(bars.iter().skip(1).all(|line| !line.contains("missed")), "{bars:#?}");
}

#[test]
fn a_bar_ignores_rivals_that_scatter() {
    let rows: [(&str, u64, &str, &[f64]); 3] = [
        ("get ×100", 0, OURS, &[1.0]),
        ("get ×100", 0, "libpq pipelined", &[0.1, 0.5, 0.9]),
        ("get ×100", 0, TEXT, &[4.0]),
    ];
    let text = report(&rows).markdown();
    let bars = lines(&text, "get ×100: the fastest of all rivals (tokio-postgres, text in sequence)");
    assert_eq!(bars.len(), 1);
    assert!(bars[0].contains("4.00"), "{bars:?}");
}

#[test]
fn summary_shows_each_source_at_each_delay() {
    let mut rows: Vec<(&str, u64, &'static str, &[f64])> = Vec::new();
    for (delay, plain, ours) in [(0, &[8.0], &[2.0]), (1, &[200.0], &[4.0]), (5, &[1008.0], &[12.0])] {
        rows.extend([("get ×100", delay, TEXT, &plain[..]), ("get ×100", delay, SEQUENCE, &plain[..])]);
        rows.extend([("get ×100", delay, OURS, &ours[..]), ("get ×100", delay, OUR_ARRAYS, &ours[..])]);
        rows.extend([("delete ×100, select", delay, TEXT, &plain[..]), ("delete ×100, select", delay, OURS, &[1.0])]);
    }
    rows.extend([("update ×100", 0, TEXT, &[9.0][..]), ("update ×100", 0, OURS, &[1.0])]); // no row at 1 and 5 ms
    let text = report(&rows).markdown();
    let summary = text.split("\n## ").nth(1).expect("the first section");
    assert_eq!(
        lines(summary, "|")[2..],
        [
            "| binary protocol: prepared, each awaited | 1 | 1.00× (1.00, 1.00) | 1.00× (1.00, 1.00) | 1.00× (1.00, 1.00) |",
            "| `unnest`: one statement for all rows | 0 | - | - | - |",
            "| fire-and-forget: writes are sent, not awaited | 1 | 8.00× (8.00, 8.00) | 200× (200, 200) | 1008× (1008, 1008) |",
            "| pipelining: reads share one Sync | 1 | 4.00× (4.00, 4.00) | 50.0× (50.0, 50.0) | 84.0× (84.0, 84.0) |",
            "| together | 2 | 5.66× (4.00, 8.00) | 100× (50.0, 200) | 291× (84.0, 1008) |",
        ]
    );
    let growth = "Together they gain 5.66× at 0 ms and 291× at 5ms each way, 51.4 times as much: at get ×100 a millisecond each way \
                  costs 200 ms in text and in sequence, and 2.00 ms together.";
    assert!(summary.contains(growth), "{summary}");
}

#[test]
fn summary_of_one_delay_says_nothing_of_growth() {
    let text = report(&[("get ×100", 0, TEXT, &[8.0]), ("get ×100", 0, OURS, &[2.0])]).markdown();
    assert!(text.contains("| together | 1 | 4.00× (4.00, 4.00) |") && !text.contains("Together they gain"));
    let text = report(&[("results parsing, 10,000 rows", 0, OURS, &[2.0])]).markdown();
    assert!(!text.contains("## Where the gain comes from"), "no source was measured");
}

#[test]
fn every_workload_of_hasql_has_a_page_with_bars() {
    const MANY: &str = "parameters rendering, 6,000 in one statement";
    let mut report = report(&[
        (MANY, 0, OURS, &[2.0, 1.0, 3.0]),
        (MANY, 0, "libpq pipelined", &[1.0]),
        (MANY, 0, TEXT, &[1.0, 5.0, 9.0]),
        ("writing transaction ×20", 5, OURS, &[4.0]),
        ("get ×100", 0, OURS, &[4.0]),
    ]);
    report.machine = "a machine <of> R&D".to_owned();
    let pages = pages(&report);
    let names: Vec<&str> = pages.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["parameters-rendering.html", "writing-transaction.html"], "only those that were measured");
    let text = &pages[0].1;
    for elsewhere in ["http", "src=", "<script", "<link", "url("] {
        assert!(!text.contains(elsewhere), "a page loads nothing: {elsewhere}");
    }
    assert!(text.contains("a machine &lt;of&gt; R&amp;D"), "{text}");
    let rows: Vec<&str> = lines(text, "<td>").into_iter().map(|row| row.split("<svg").next().expect("a row")).collect();
    assert_eq!(
        rows,
        [
            "<tr><td>libpq pipelined<td>1.00<td>1.00 to 1.00<td>0.50×<td>1.00<td>",
            "<tr class=\"ours\"><td>trunkline<td>2.00<td>1.00 to 3.00<td>1.00×<td>2.00<td>",
            "<tr><td>tokio-postgres, text in sequence<td>says nothing<td>1.00 to 9.00<td>-<td>5.00<td>",
        ],
        "the fastest first, and the one that scatters last"
    );
    let bars: Vec<bool> = lines(text, "<svg").into_iter().map(|row| row.contains("<rect")).collect();
    assert_eq!(bars, [true, true, false]);
    assert!(pages[1].1.contains("<h2>writing transaction ×20, 5ms each way</h2>"));
}
