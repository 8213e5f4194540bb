use std::time::Duration;

use super::{
    Report,
    number::{away, head, line, short, spread, times},
};
use crate::{measured::Measured, ways::OURS, workloads::WORKLOADS};

/// Shows one table per workload, with every way at every delay, and its ratio to our way.
pub fn section(report: &Report) -> String {
    let mut text = "## Workloads\n\nA ratio is to the row `trunkline` of the same column; CPU is the client's, in microseconds a statement, \
        without any delay.\n\n"
        .to_owned();
    for workload in WORKLOADS {
        let rows: Vec<&Measured> = report.measured.iter().filter(|row| row.workload == *workload).collect();
        let Some(first) = rows.first() else { continue };
        let mut delays: Vec<Duration> = rows.iter().map(|row| row.delay).collect();
        delays.dedup();
        let mut cells = vec!["way".to_owned()];
        for delay in &delays {
            cells.extend([away(*delay), String::new()]);
            if *delay == first.delay {
                cells.extend(["CPU".to_owned(), String::new()]);
            }
        }
        text += "### ";
        text += workload.name;
        text += "\n\n";
        text += &head(&cells);
        for row in rows.iter().filter(|row| row.delay == first.delay) {
            let mut cells =
                vec![if row.way.starts_with(OURS) { format!("**{}**", row.way) } else { row.way.to_owned() }];
            for delay in &delays {
                let (here, ours) =
                    (report.row(*delay, workload.name, row.way), report.row(*delay, workload.name, OURS));
                cells.push(spread(here.and_then(Measured::milliseconds)) + once(here));
                cells
                    .push(times(report.time(*delay, workload.name, row.way), report.time(*delay, workload.name, OURS)));
                if *delay == first.delay {
                    let (here, ours) = (here.and_then(Measured::cpu), ours.and_then(Measured::cpu));
                    cells.extend([here.map_or_else(|| "-".to_owned(), short), times(here, ours)]);
                }
            }
            text += &line(&cells);
        }
        text.push('\n');
    }
    text
}

/// Returns the note for a way that was too slow for a second turn.
fn once(row: Option<&Measured>) -> &'static str {
    if row.is_some_and(|row| row.turns.len() == 1) { ", once" } else { "" }
}
