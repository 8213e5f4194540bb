//! Groups rows into races. A race contains the comparable rows of one case on the same server.

use crate::{
    contenders::CONTENDERS,
    report::{markdown::code, measure::Measure, settings},
    results::{Outcome, Results, Row, Told},
};

/// Rows of one suite and case with the same settings.
pub struct Race<'a> {
    pub rows: Vec<&'a Row>,
}

/// Groups rows into races, in the order of each race's first row.
pub fn races<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<Race<'a>> {
    let mut races: Vec<Race> = Vec::new();
    for row in rows {
        match races.iter_mut().find(|race| comparable(race.first(), row)) {
            Some(race) => race.rows.push(row),
            None => races.push(Race { rows: vec![row] }),
        }
    }
    races
}

/// Returns true for Trunkline's own layers and ways; all other contenders are peers.
pub fn is_ours(contender: &str) -> bool {
    // Old results may contain ways of driving Postgres that the table no longer has.
    CONTENDERS.iter().any(|known| known.name == contender && known.is_own()) || contender.starts_with("trunkline")
}

/// Returns a contender's name as code. Our names are bold.
pub fn shown(contender: &str) -> String {
    if is_ours(contender) { format!("**{}**", code(contender)) } else { code(contender) }
}

pub fn is_measured(row: &Row) -> bool {
    row.outcome == Outcome::Measured && !row.rounds.is_empty()
}

/// Returns the outcome of a row that was not measured, and the reason.
pub fn excuse(row: &Row) -> Option<(&'static str, &str)> {
    match &row.outcome {
        Outcome::Measured if row.rounds.is_empty() => Some(("not measured", "it has no round")),
        Outcome::Measured => None,
        Outcome::Missing(words) => Some(("missing", words)),
        Outcome::Stalled(words) => Some(("stalled", words)),
        Outcome::Failed(words) => Some(("failed", words)),
    }
}

/// Returns the rows of a suite on the server that most of its rows used, because a figure has no
/// room for server names.
pub fn on_one_server<'a>(results: &'a Results, suite: &str) -> Vec<&'a Row> {
    let rows: Vec<&Row> = results.rows.iter().filter(|row| row.suite == suite).collect();
    let met = |row: &Row| rows.iter().filter(|other| other.server == row.server).count();
    let Some(most) = rows.iter().max_by_key(|row| met(row)) else { return rows };
    rows.iter().copied().filter(|row| row.server == most.server).collect()
}

impl<'a> Race<'a> {
    pub fn first(&self) -> &'a Row {
        // A race starts with one row, and rows are never removed from it.
        self.rows[0]
    }

    pub fn measured(&self) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().copied().filter(|row| is_measured(row))
    }

    /// Returns the measured rows, the best first. The ranking uses `open` if a rate was requested,
    /// otherwise `fast`.
    pub fn ranked(&self, fast: &Measure, open: &Measure) -> Vec<&'a Row> {
        let by = if self.first().told.rate.is_some() { open } else { fast };
        let mut rows: Vec<&Row> = self.measured().collect();
        let worth = |row: &Row| by.median(row).map_or(f64::NEG_INFINITY, |value| if by.more { value } else { -value });
        rows.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
        rows
    }

    /// Returns the best of our own rows by this measure, with its median.
    pub fn our_best(&self, by: &Measure) -> Option<(&'a Row, f64)> {
        let ours = self.measured().filter(|row| is_ours(&row.contender) && !by.scatters(row));
        ours.filter_map(|row| Some((row, by.median(row)?)))
            .max_by(|a, b| if by.more { a.1.total_cmp(&b.1) } else { b.1.total_cmp(&a.1) })
    }

    /// Returns the case, and the settings that distinguish the race from other races of the same
    /// case.
    pub fn name(&self, among: &[Race]) -> String {
        let row = self.first();
        let namesakes: Vec<&Row> =
            among.iter().map(Race::first).filter(|other| other.suite == row.suite && other.case == row.case).collect();
        let apart: Vec<String> = settings::apart(&namesakes).iter().map(|setting| setting.told(row)).collect();
        match apart.is_empty() {
            true => row.case.clone(),
            false => format!("{} ({})", row.case, apart.join(", ")),
        }
    }
}

fn comparable(a: &Row, b: &Row) -> bool {
    // Ignores the number of callers and the size of the backlog. Each contender has its own best
    // number and a sufficient backlog, and neither changes the contender's task.
    let told = |row: &Row| {
        let told = Told { seconds: 0.0, producers: 0, consumers: 0, backlog: 0, settle: 0.0, ..row.told.clone() };
        // Ignores the way to wait in the suite `idle`, which compares ways to wait.
        if row.suite == "idle" { Told { wait: String::new(), ..told } } else { told }
    };
    a.suite == b.suite && a.case == b.case && a.server == b.server && told(a) == told(b)
}
