//! Shows the rate and latency of each contender and number of callers by the duration of an fsync.

use crate::{
    report::{
        markdown::Table,
        measure::{P99, RATE},
        number,
        race::{excuse, is_measured, is_ours, shown},
        settings,
    },
    results::Row,
};

/// The rows of one contender with one number of callers.
pub struct ContenderRows<'a> {
    rows: Vec<&'a Row>,
    /// Set if the numbers of callers differ. Then the name contains the number.
    says_callers: bool,
}

/// Sorts our series first, then by the number of callers, then in the order of the rows.
pub fn series<'a>(rows: &[&'a Row]) -> Vec<ContenderRows<'a>> {
    let mut all: Vec<ContenderRows> = Vec::new();
    for row in rows.iter().filter(|row| row.told.fsync_ms.is_some()) {
        match all.iter_mut().find(|of| of.key() == (&*row.contender, row.told.producers)) {
            Some(of) => of.rows.push(row),
            None => all.push(ContenderRows { rows: vec![row], says_callers: false }),
        }
    }
    let callers = |of: &ContenderRows| of.rows[0].told.producers;
    let differ = all.iter().any(|of| callers(of) != callers(&all[0]));
    for of in &mut all {
        of.says_callers = differ;
    }
    all.sort_by_key(|of| (!of.is_ours(), callers(of)));
    all
}

/// Returns the duration of an fsync without an added delay, in milliseconds. It is computed from
/// the disk's durable writes per second around the rows.
pub fn as_it_is(rows: &[&Row]) -> f64 {
    const COMMON: f64 = 0.05;
    settings::disk(rows).map_or(COMMON, |(_, median, _)| 1000.0 / median).min(0.9)
}

/// Lists the contenders without any figure, each with the reason.
pub fn absent(series: &[ContenderRows]) -> Vec<String> {
    let why = |of: &ContenderRows| {
        let (what, words) = excuse(of.rows[0])?;
        of.rows.iter().all(|row| !is_measured(row)).then(|| format!("{} ({what}: {words})", of.name()))
    };
    series.iter().filter_map(why).collect()
}

impl<'a> ContenderRows<'a> {
    fn key(&self) -> (&str, usize) {
        (&self.rows[0].contender, self.rows[0].told.producers)
    }

    pub fn contender(&self) -> &'a str {
        &self.rows[0].contender
    }

    pub fn is_ours(&self) -> bool {
        is_ours(self.contender())
    }

    pub fn name(&self) -> String {
        let (contender, callers) = self.key();
        if self.says_callers { format!("{contender}, {callers} callers") } else { contender.to_owned() }
    }

    /// Returns the minimum fsync durations that these rows used, in milliseconds.
    pub fn leasts(&self) -> Vec<f64> {
        let mut leasts: Vec<f64> = self.rows.iter().filter_map(|row| row.told.fsync_ms).collect();
        leasts.sort_by(f64::total_cmp);
        leasts.dedup();
        leasts
    }

    pub fn row(&self, least: f64) -> Option<&'a Row> {
        let of = |row: &&&Row| row.told.fsync_ms.is_some_and(|fsync| fsync.total_cmp(&least).is_eq());
        self.rows.iter().find(of).copied().filter(|row| is_measured(row))
    }
}

/// Shows the figure's values as a table.
pub fn table(rows: &[&Row]) -> String {
    let series = series(rows);
    let mut leasts: Vec<f64> = series.iter().flat_map(ContenderRows::leasts).collect();
    leasts.sort_by(f64::total_cmp);
    leasts.dedup();
    let title = |least: &f64| match *least > 0.0 {
        true => format!("{least} ms"),
        false => "as the disk is".to_owned(),
    };
    let titles = ["sent/s, p99 of a send".to_owned(), "callers".to_owned()].into_iter().chain(leasts.iter().map(title));
    let mut table = Table::new(titles);
    for of in &series {
        let (contender, callers) = of.key();
        let cell = |least: &f64| {
            let row = of.row(*least)?;
            let told = |measure: &crate::report::measure::Measure| match measure.scatters(row) {
                true => Some("says nothing".to_owned()),
                false => measure.told(row),
            };
            Some([told(&RATE), told(&P99)].into_iter().flatten().collect::<Vec<_>>().join(", "))
        };
        let first = [Some(shown(contender)), Some(number::whole(callers as f64))];
        table.row(first.into_iter().chain(leasts.iter().map(cell)));
    }
    table.text()
}
