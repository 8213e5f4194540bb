use std::{fmt::Write, time::Duration};

use super::Report;
use crate::measured::Turn;

/// Writes one line per turn.
pub fn csv(report: &Report) -> String {
    let mut text = "delay_ms,workload,way,statements,turn,milliseconds,client_cpu_us\n".to_owned();
    let mut turns = |delay: Duration, workload: &str, way: &str, statements: usize, turns: &[Turn]| {
        for (number, turn) in turns.iter().enumerate() {
            let (delay, time, cpu) = (delay.as_secs_f64() * 1e3, turn.time.as_secs_f64() * 1e3, turn.cpu.as_micros());
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{delay},\"{workload}\",\"{way}\",{statements},{},{time:.4},{cpu}", number + 1);
        }
    };
    for row in &report.measured {
        turns(row.delay, row.workload.name, row.way, row.workload.statements, &row.turns);
    }
    for row in &report.verbs {
        turns(row.delay, row.name, "trunkline queue", row.messages, &row.turns);
    }
    text
}
