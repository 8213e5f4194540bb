//! The columns of the suites' tables. A table omits columns in which no row has a figure.

use crate::{
    report::{
        measure::{self, Measure},
        number,
        race::Race,
    },
    results::Row,
};

pub struct Column {
    pub title: &'static str,
    pub cell: fn(&Race, &Row) -> Option<String>,
}

const RATE: Column = Column { title: "messages/s", cell: |_, row| measure::RATE.spread(row) };
const PAYLOADS: Column = Column { title: "payload/s", cell: |_, row| measure::PAYLOADS.told(row) };
const RATIO: Column = Column { title: "relative to our best", cell: ratio };
const MEAN: Column = Column { title: "mean", cell: |_, row| measure::MEAN.spread(row) };
const OVERHEAD: Column = Column { title: "to the lowest layer", cell: overhead };
const P50: Column = Column { title: "p50", cell: |_, row| measure::P50.told(row) };
const P90: Column = Column { title: "p90", cell: |_, row| measure::P90.told(row) };
const P99: Column = Column { title: "p99", cell: |_, row| measure::P99.told(row) };
const P999: Column = Column { title: "p99.9", cell: |_, row| measure::P999.told(row) };
const CLIENT_CPU: Column = Column { title: "client CPU a message", cell: |_, row| measure::CLIENT_CPU.told(row) };
const SERVER_CPU: Column = Column { title: "server CPU a message", cell: |_, row| measure::SERVER_CPU.told(row) };
const CLIENT_USE: Column =
    Column { title: "client CPU of one processor", cell: |_, row| measure::CLIENT_USE.told(row) };
const SERVER_USE: Column =
    Column { title: "server CPU of one processor", cell: |_, row| measure::SERVER_USE.told(row) };
const STATEMENTS_PER_SECOND: Column =
    Column { title: "statements/s", cell: |_, row| measure::STATEMENTS_PER_SECOND.told(row) };
const WAL: Column = Column { title: "WAL a message", cell: |_, row| measure::WAL.told(row) };
const TRANSACTIONS: Column = Column { title: "transactions a message", cell: |_, row| measure::TRANSACTIONS.told(row) };
const STATEMENTS: Column = Column { title: "statements a message", cell: |_, row| measure::STATEMENTS.told(row) };
const ALLOCATIONS: Column = Column { title: "allocations a call", cell: |_, row| measure::ALLOCATIONS.told(row) };
const ALLOCATED: Column = Column { title: "allocated a call", cell: |_, row| measure::ALLOCATED.told(row) };
const DEAD: Column = Column { title: "dead tuples", cell: |_, row| dead(row) };
const WAL_PER_SECOND: Column = Column { title: "WAL/s", cell: |_, row| measure::WAL_PER_SECOND.told(row) };
const READ_PER_SECOND: Column = Column { title: "read from disk/s", cell: |_, row| measure::READ_PER_SECOND.told(row) };
const WRITTEN_PER_SECOND: Column =
    Column { title: "written to disk/s", cell: |_, row| measure::WRITTEN_PER_SECOND.told(row) };
const CLIENT_MEMORY: Column = Column { title: "client memory", cell: |_, row| measure::CLIENT_MEMORY.told(row) };

const RACE: &[Column] = &[
    RATE,
    PAYLOADS,
    RATIO,
    MEAN,
    P50,
    P90,
    P99,
    P999,
    CLIENT_CPU,
    SERVER_CPU,
    ALLOCATIONS,
    ALLOCATED,
    CLIENT_MEMORY,
    WAL,
    TRANSACTIONS,
    STATEMENTS,
    DEAD,
];
const STEP: &[Column] = &[
    MEAN,
    RATIO,
    P50,
    P90,
    P99,
    P999,
    RATE,
    CLIENT_CPU,
    SERVER_CPU,
    WAL,
    TRANSACTIONS,
    STATEMENTS,
    ALLOCATIONS,
    ALLOCATED,
    CLIENT_MEMORY,
    DEAD,
];
const LAYERS: &[Column] = &[
    MEAN,
    OVERHEAD,
    ALLOCATIONS,
    ALLOCATED,
    P50,
    P90,
    P99,
    P999,
    RATE,
    CLIENT_CPU,
    SERVER_CPU,
    WAL,
    TRANSACTIONS,
    STATEMENTS,
    CLIENT_MEMORY,
    DEAD,
];
const IDLE: &[Column] = &[
    STATEMENTS_PER_SECOND,
    CLIENT_USE,
    SERVER_USE,
    WAL_PER_SECOND,
    READ_PER_SECOND,
    WRITTEN_PER_SECOND,
    MEAN,
    P50,
    P90,
    P99,
    P999,
    CLIENT_CPU,
    SERVER_CPU,
    CLIENT_MEMORY,
    DEAD,
];

pub const LAYER_ORDER: [&str; 5] = ["statements", "sql", "queue", "coalesced", "worker"];

/// Returns the columns of a suite's tables, the most important first.
pub fn of(suite: &str) -> &'static [Column] {
    match suite {
        "layer-comparison" => LAYERS,
        "send" | "read" | "ack" | "distance" => STEP,
        "idle" => IDLE,
        _ => RACE,
    }
}

/// Returns the rows of a race in the order of its table.
pub fn ranked<'a>(race: &Race<'a>) -> Vec<&'a Row> {
    let suite = race.first().suite.as_str();
    match suite {
        // Lists layers from the lowest up, not by their speed.
        "layer-comparison" => {
            let mut rows: Vec<&Row> = race.measured().collect();
            rows.sort_by_key(|row| {
                LAYER_ORDER.iter().position(|layer| *layer == row.contender).unwrap_or(LAYER_ORDER.len())
            });
            rows
        }
        "idle" => race.ranked(&measure::STATEMENTS_PER_SECOND, &measure::STATEMENTS_PER_SECOND),
        _ => race.ranked(chief(race), &measure::P50),
    }
}

/// Returns the measure that ranks contenders if no rate is requested: the time for single calls,
/// the rate for races.
pub fn chief(race: &Race) -> &'static Measure {
    let steps = matches!(race.first().suite.as_str(), "send" | "read" | "ack" | "distance");
    let timed = race.measured().any(|row| measure::MEAN.median(row).is_some());
    if steps && timed { &measure::MEAN } else { &measure::RATE }
}

fn ratio(race: &Race, row: &Row) -> Option<String> {
    let chief = chief(race);
    // Returns no ratio, because all contenders that reach the requested rate are equally fast.
    if chief.more && row.told.rate.is_some() {
        return None;
    }
    if chief.scatters(row) {
        return None;
    }
    Some(number::times(chief.median(row)? / race.our_best(chief)?.1))
}

fn overhead(race: &Race, row: &Row) -> Option<String> {
    let lowest = lowest(race)?;
    if measure::MEAN.scatters(row) || measure::MEAN.scatters(lowest) {
        return None;
    }
    Some(number::times(measure::MEAN.median(row)? / measure::MEAN.median(lowest)?))
}

/// Returns the row to which the other rows of its race are compared. This is the row of the
/// library's own statements, or of the functions in SQL if the statements were not measured.
pub fn lowest<'a>(race: &Race<'a>) -> Option<&'a Row> {
    LAYER_ORDER[..2].iter().find_map(|layer| race.measured().find(|row| row.contender == *layer))
}

fn dead(row: &Row) -> Option<String> {
    let tuples = |figure: fn(&crate::results::Round) -> Option<u64>| {
        row.over(|round| figure(round).map(|count| count as f64)).map(|spread| number::rate(spread.median))
    };
    let (before, after) = (tuples(|round| round.dead_before), tuples(|round| round.dead_after));
    let after = after?;
    Some(before.map_or_else(|| after.clone(), |before| format!("{before} → {after}")))
}
