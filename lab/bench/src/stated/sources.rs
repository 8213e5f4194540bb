use std::{collections::BTreeMap, path::Path};

use super::figure::{Unit, Value};
use crate::{
    Failure,
    report::{self, measure},
    results::{Results, Row, Spread},
};

/// A measure's name in a mark, and its unit.
const MEASURES: &[(&str, &measure::Measure, Unit)] = &[
    ("messages_per_s", &measure::RATE, Unit::Count),
    ("sent_per_s", &measure::SENT, Unit::Count),
    ("received_per_s", &measure::RECEIVED, Unit::Count),
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
/// The measure of the ways of driving Postgres.
const MILLISECONDS: &str = "ms";

/// The published results, in which figures are looked up.
pub struct Sources {
    rows: BTreeMap<String, Row>,
    /// The microseconds of each way's turns.
    drivers: BTreeMap<String, Vec<f64>>,
}

impl Sources {
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        let drivers = std::fs::read_to_string(folder.join("drivers.csv")).unwrap_or_default();
        Ok(Self::of(report::read(&folder.join("results.json"))?, &drivers))
    }

    pub fn of(results: Results, drivers: &str) -> Self {
        let mut turns: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        // delay_ms,"workload","way",statements,turn,milliseconds,client_cpu_us
        for line in drivers.lines().skip(1) {
            let parts: Vec<&str> = line.split('"').collect();
            let [delay, workload, _, way, figures] = parts[..] else { continue };
            let time = figures.split(',').nth(3).and_then(|time| time.parse::<f64>().ok());
            let delay = match delay.trim_end_matches(',') {
                "0" => String::new(),
                delay => format!("@{delay}"),
            };
            turns.entry(format!("drivers{delay}/{workload}/{way}")).or_default().extend(time.map(|time| 1e3 * time));
        }
        let rows = results.rows.into_iter().map(|row| (row.name(), row)).collect();
        Self { rows, drivers: turns }
    }

    /// Returns the value of `NAME MEASURE`, or the ratio of `NAME MEASURE over NAME`.
    pub fn value(&self, words: &str) -> Result<Value, String> {
        let (first, over) = match words.split_once(" over ") {
            Some((first, over)) => (first, Some(over)),
            None => (words, None),
        };
        let (name, measure) = first.trim().rsplit_once(' ').ok_or("the mark has no measure")?;
        let value = self.of_row(name, measure)?;
        let Some(over) = over else { return Ok(value) };
        let other = self.of_row(over.trim(), measure)?;
        Ok(Value { value: value.value / other.value, unit: Unit::Ratio })
    }

    fn of_row(&self, name: &str, measure: &str) -> Result<Value, String> {
        if measure == MILLISECONDS {
            let turns = self.drivers.get(name).ok_or_else(|| format!("drivers.csv has no row {name:?}"))?;
            let spread = Spread::of(turns.clone()).ok_or_else(|| format!("{name} has no turn"))?;
            return Self::steady(name, spread, Unit::Time);
        }
        let known = MEASURES.iter().find(|(known, ..)| *known == measure);
        let (_, figure, unit) = known.ok_or_else(|| {
            let names: Vec<&str> = MEASURES.iter().map(|(name, ..)| *name).collect();
            format!("there is no measure {measure:?}: there are {}, and ms for drivers", names.join(", "))
        })?;
        let row = self.rows.get(name).ok_or_else(|| format!("results.json has no row {name:?}"))?;
        let spread = (figure.of)(row).ok_or_else(|| format!("{name} has no {measure}"))?;
        Self::steady(name, spread, *unit)
    }

    fn steady(name: &str, spread: Spread, unit: Unit) -> Result<Value, String> {
        match spread.scatters() {
            true => Err(format!("{name} scatters more than threefold, and says nothing")),
            false => Ok(Value { value: spread.median, unit }),
        }
    }
}
