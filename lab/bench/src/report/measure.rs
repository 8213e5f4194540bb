//! The measures by which rows are reported and compared.

use crate::{
    report::number,
    results::{Latency, Round, Row, Spread},
};

pub struct Measure {
    pub of: fn(&Row) -> Option<Spread>,
    pub show: fn(f64) -> String,
    /// Set if a larger value is better.
    pub more: bool,
}

pub const RATE: Measure = Measure { of: rate, show: number::rate, more: true };
pub const MEAN: Measure = time(|row| latency(row, |latency| Some(latency.mean)));
pub const P50: Measure = time(|row| latency(row, |latency| Some(latency.p50 as f64)));
pub const P90: Measure = time(|row| latency(row, |latency| Some(latency.p90()? as f64)));
pub const P99: Measure = time(|row| latency(row, |latency| Some(latency.p99()? as f64)));
pub const P999: Measure = time(|row| latency(row, |latency| Some(latency.p999()? as f64)));
pub const CLIENT_CPU: Measure = time(|row| over(row, Round::client_cpu_us));
pub const SERVER_CPU: Measure = time(|row| over(row, Round::server_cpu_us));
pub const CLIENT_USE: Measure = share(|row| over(row, Round::client_cpu));
pub const SERVER_USE: Measure = share(|row| over(row, Round::server_cpu));
pub const STATEMENTS_PER_SECOND: Measure = count(|row| over(row, |round| round.statements_per_second));
pub const WAL: Measure = bytes(|row| over(row, |round| round.wal_bytes));
pub const WAL_PER_SECOND: Measure = bytes(|row| over(row, |round| round.wal_per_second));
pub const READ_PER_SECOND: Measure = bytes(|row| over(row, |round| round.read_per_second));
pub const WRITTEN_PER_SECOND: Measure = bytes(|row| over(row, |round| round.written_per_second));
pub const CLIENT_MEMORY: Measure = bytes(|row| over(row, |round| round.client_memory.map(|bytes| bytes as f64)));
pub const TRANSACTIONS: Measure = count(|row| over(row, |round| round.transactions));
pub const STATEMENTS: Measure = count(|row| over(row, |round| round.statements));
pub const ALLOCATIONS: Measure = count(|row| over(row, |round| round.allocations));
pub const ALLOCATED: Measure = bytes(|row| over(row, |round| round.allocated_bytes));
/// The bytes of payloads per second. Rows with small payloads do not have this measure, because
/// their cost depends on the number of calls.
pub const PAYLOADS: Measure =
    Measure { of: |row| over(row, |round| round.payloads_per_second(&row.told)), show: number::bytes, more: true };
pub const SENT: Measure = Measure { of: |row| over(row, Round::sent_per_second), show: number::rate, more: true };
pub const RECEIVED: Measure =
    Measure { of: |row| over(row, Round::received_per_second), show: number::rate, more: true };

const fn time(of: fn(&Row) -> Option<Spread>) -> Measure {
    Measure { of, show: number::time, more: false }
}

const fn share(of: fn(&Row) -> Option<Spread>) -> Measure {
    Measure { of, show: number::percent, more: false }
}

const fn count(of: fn(&Row) -> Option<Spread>) -> Measure {
    Measure { of, show: number::rate, more: false }
}

const fn bytes(of: fn(&Row) -> Option<Spread>) -> Measure {
    Measure { of, show: number::bytes, more: false }
}

impl Measure {
    /// Returns true if the row's rounds differ too much for a comparison by this measure.
    pub fn scatters(&self, row: &Row) -> bool {
        (self.of)(row).is_some_and(|spread| spread.scatters())
    }

    pub fn median(&self, row: &Row) -> Option<f64> {
        (self.of)(row).map(|spread| spread.median)
    }

    pub fn told(&self, row: &Row) -> Option<String> {
        self.median(row).map(self.show)
    }

    /// Returns the median, with the minimum and the maximum if they differ.
    pub fn spread(&self, row: &Row) -> Option<String> {
        let Spread { median, least, most } = (self.of)(row)?;
        let show = self.show;
        match least < most {
            true if most > 3.0 * least => Some(format!("says nothing ({}–{})", show(least), show(most))),
            true => Some(format!("{} ({}–{})", show(median), show(least), show(most))),
            false => Some(show(median)),
        }
    }

    /// Returns the ratio by which the first value is better than the second.
    pub fn better(&self, first: f64, second: f64) -> f64 {
        if self.more { first / second } else { second / first }
    }
}

/// Returns the received messages per second. In cases that only send, returns the sent messages per
/// second.
fn rate(row: &Row) -> Option<Spread> {
    match row.told.case.starts_with("send") {
        true => over(row, Round::sent_per_second),
        false => over(row, Round::received_per_second),
    }
}

fn latency(row: &Row, figure: fn(&Latency) -> Option<f64>) -> Option<Spread> {
    over(row, |round| round.latency.as_ref().and_then(figure))
}

/// Collects a figure over all rounds, without rounds whose figure is a division by zero.
fn over(row: &Row, figure: impl Fn(&Round) -> Option<f64>) -> Option<Spread> {
    row.over(|round| figure(round).filter(|value| value.is_finite()))
}
