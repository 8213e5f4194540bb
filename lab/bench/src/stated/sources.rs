use std::{collections::BTreeMap, path::Path};

use super::figure::{Figure, Unit, Value};
use crate::{
    Failure, parts,
    report::measure,
    results::{Results, Row, Spread},
};

/// The name of each measure in a mark, and its unit.
const MEASURES: &[(&str, &measure::Measure, Unit)] = &[
    ("messages_per_s", &measure::RATE, Unit::Count),
    ("sent_per_s", &measure::SENT, Unit::Count),
    ("received_per_s", &measure::RECEIVED, Unit::Count),
    ("payload_per_s", &measure::PAYLOADS, Unit::Bytes),
    ("statements_per_s", &measure::STATEMENTS_PER_SECOND, Unit::Count),
    ("mean", &measure::MEAN, Unit::Time),
    ("p50", &measure::P50, Unit::Time),
    ("p90", &measure::P90, Unit::Time),
    ("p99", &measure::P99, Unit::Time),
    ("p999", &measure::P999, Unit::Time),
    ("client_cpu_us", &measure::CLIENT_CPU, Unit::Time),
    ("server_cpu_us", &measure::SERVER_CPU, Unit::Time),
    ("client_cpu", &measure::CLIENT_USE, Unit::Share),
    ("server_cpu", &measure::SERVER_USE, Unit::Share),
    ("wal_bytes", &measure::WAL, Unit::Bytes),
    ("wal_per_s", &measure::WAL_PER_SECOND, Unit::Bytes),
    ("transactions", &measure::TRANSACTIONS, Unit::Count),
    ("allocations", &measure::ALLOCATIONS, Unit::Count),
    ("allocated_bytes", &measure::ALLOCATED, Unit::Bytes),
    ("client_memory", &measure::CLIENT_MEMORY, Unit::Bytes),
];
/// The name of the measure for ways of driving Postgres.
const MILLISECONDS: &str = "ms";

/// The published results, in which figures are looked up.
pub struct Sources {
    rows: BTreeMap<String, Row>,
    /// The figures of each way of driving Postgres, as its page prints them: `0.58 (0.51, 0.98)`.
    drivers: BTreeMap<String, String>,
}

impl Sources {
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        let page = std::fs::read_to_string(folder.join("drivers.md")).unwrap_or_default();
        Ok(Self::of(parts::read(folder)?, &page))
    }

    pub fn of(results: Results, page: &str) -> Self {
        let rows = results.rows.into_iter().map(|row| (row.name(), row)).collect();
        Self { rows, drivers: drivers(page) }
    }

    /// Returns the value of `NAME MEASURE`, or the ratio of `NAME MEASURE over NAME`.
    pub fn value(&self, words: &str) -> Result<Value, String> {
        let (first, over) = match words.split_once(" over ") {
            Some((first, over)) => (first, Some(over)),
            None => (words, None),
        };
        let (name, measure) = first.trim().rsplit_once(' ').ok_or("the mark has no measure")?;
        let value = self.of_row(name, measure)?;
        let Some(over) = over else { return Ok(Value { rounded: 0.0, ..value }) };
        let other = self.of_row(over.trim(), measure)?;
        let ratio = value.number / other.number;
        let rounded = ratio * (value.rounded / value.number + other.rounded / other.number);
        Ok(Value { number: ratio, unit: Unit::Ratio, rounded })
    }

    fn of_row(&self, name: &str, measure: &str) -> Result<Value, String> {
        if measure == MILLISECONDS {
            let cell = self.drivers.get(name).ok_or_else(|| format!("drivers.md has no row {name:?}"))?;
            let median = cell.split(' ').next().unwrap_or_default();
            let figure = Figure::last(&format!("{median} ms"));
            return figure.map(Value::from).ok_or_else(|| format!("{name} is {cell:?}"));
        }
        let known = MEASURES.iter().find(|(known, ..)| *known == measure);
        let (_, figure, unit) = known.ok_or_else(|| {
            let names: Vec<&str> = MEASURES.iter().map(|(name, ..)| *name).collect();
            format!("there is no measure {measure:?}: there are {}, and ms for drivers", names.join(", "))
        })?;
        let row = self.rows.get(name).ok_or_else(|| format!("the published results have no row {name:?}"))?;
        let spread = (figure.of)(row).ok_or_else(|| format!("{name} has no {measure}"))?;
        Self::steady(name, spread, *unit)
    }

    fn steady(name: &str, spread: Spread, unit: Unit) -> Result<Value, String> {
        match spread.scatters() {
            true => Err(format!("{name} scatters more than threefold, and says nothing")),
            false => Ok(Value { number: spread.median, unit, rounded: 0.0 }),
        }
    }
}

/// Returns the cells of the page's tables. Their keys are `drivers/WORKLOAD/WAY`, or
/// `drivers@5/WORKLOAD/WAY` with a delay of 5 ms.
fn drivers(page: &str) -> BTreeMap<String, String> {
    let (mut cells, mut workload, mut titles) = (BTreeMap::new(), "", Vec::new());
    for line in page.lines() {
        workload = line.strip_prefix("### ").unwrap_or(workload);
        let row: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        match row[0] {
            _ if !line.starts_with('|') => titles.clear(),
            _ if titles.is_empty() => titles = row,
            name if ["way", "verb"].contains(&titles[0]) => {
                for (title, cell) in titles.iter().zip(&row) {
                    let delay = match title.split_once("ms each way") {
                        Some((delay, "")) => format!("@{delay}"),
                        _ if *title == "0 ms" => String::new(),
                        _ => continue,
                    };
                    let name = match titles[0] {
                        "verb" => format!("drivers{delay}/{name}/trunkline queue"),
                        _ => format!("drivers{delay}/{workload}/{}", name.trim_matches('*')),
                    };
                    cells.insert(name, (*cell).to_owned());
                }
            }
            _ => {}
        }
    }
    cells
}
