use std::time::Duration;

use super::{
    Report,
    number::{away, head, line, short, times},
};
use crate::{
    measured::Measured,
    ways::{OUR_ARRAYS, OURS, PIPELINED, PIPELINED_TOGETHER, SEQUENCE, SEQUENCE_TOGETHER, TEXT, THEIR_ARRAYS},
};

/// A workload, and a list of changes, each with the way that makes it. Each change builds on the
/// previous changes.
type Chain = (&'static str, &'static [(&'static str, &'static str)]);

const CHAINS: &[Chain] = &[
    (
        "get ×100",
        &[
            ("values in the text, answers as text", TEXT),
            ("binary, prepared", SEQUENCE),
            ("pipelined, a Sync each", PIPELINED),
            ("one Sync", OURS),
            ("one statement: `= any`", OUR_ARRAYS),
        ],
    ),
    (
        "insert ×100 returning",
        &[
            ("values in the text, one transaction", TEXT),
            ("binary, prepared", SEQUENCE_TOGETHER),
            ("pipelined, a Sync each", PIPELINED_TOGETHER),
            ("one Sync", OURS),
            ("one statement: `unnest`", OUR_ARRAYS),
        ],
    ),
    (
        "insert many ×1000",
        &[
            ("values in the text, one transaction", TEXT),
            ("binary, prepared", SEQUENCE_TOGETHER),
            ("one statement: `unnest`, by tokio-postgres", THEIR_ARRAYS),
            ("the same by `insert_many`", OURS),
        ],
    ),
    (
        "delete ×100, select",
        &[
            ("values in the text, one transaction", TEXT),
            ("binary, prepared", SEQUENCE_TOGETHER),
            ("pipelined, a Sync each", PIPELINED_TOGETHER),
            ("sent and not awaited, one Sync", OURS),
            ("one statement: `= any`", OUR_ARRAYS),
        ],
    ),
    (
        "update ×100",
        &[
            ("binary, prepared, a transaction each", SEQUENCE),
            ("one transaction", SEQUENCE_TOGETHER),
            ("pipelined, a Sync each", PIPELINED_TOGETHER),
            ("one Sync", OURS),
            ("one statement: `unnest`", OUR_ARRAYS),
        ],
    ),
    (
        "select list ×100",
        &[
            ("values in the text, answers as text", TEXT),
            ("binary, prepared", SEQUENCE),
            ("pipelined, a Sync each", PIPELINED),
            ("one Sync", OURS),
        ],
    ),
    (
        "results parsing, 10,000 rows",
        &[("answers as text", TEXT), ("binary", SEQUENCE), ("decoded where they are", OURS)],
    ),
];

/// Shows the gain of each step, as the ratio of the previous step's time to its own.
pub fn section(report: &Report) -> String {
    let mut text = "## What gives what\n\nEach row changes one thing; a ratio says how many times faster it is than the row above, CPU is the \
        client's a statement.\n\n"
        .to_owned();
    let delays = report.delays();
    for (workload, steps) in CHAINS {
        let delays: Vec<Duration> =
            delays.iter().copied().filter(|delay| report.time(*delay, workload, OURS).is_some()).collect();
        let Some(nearest) = delays.first() else { continue };
        let mut cells = vec![(*workload).to_owned()];
        for delay in &delays {
            cells.extend([away(*delay), String::new()]);
            if delay == nearest {
                cells.extend(["CPU".to_owned(), String::new()]);
            }
        }
        text += &head(&cells);
        let mut before: Option<&str> = None;
        for (what, way) in *steps {
            let mut cells = vec![(*what).to_owned()];
            for delay in &delays {
                let time = |way| report.time(*delay, workload, way);
                let cpu = |way| report.row(*delay, workload, way).and_then(Measured::cpu);
                let told = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
                cells.extend([told(time(way)), times(before.and_then(time), time(way))]);
                if delay == nearest {
                    cells.extend([told(cpu(way)), times(before.and_then(cpu), cpu(way))]);
                }
            }
            text += &line(&cells);
            before = Some(way);
        }
        text.push('\n');
    }
    text
}
