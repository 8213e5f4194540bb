//! Shows producers × consumers in the format of hasql-queue's README: enqueues/s / dequeues/s.

use crate::{
    report::{
        binds, foot,
        markdown::Table,
        measure, number,
        race::{Race, is_measured, shown},
    },
    results::Row,
};

/// Makes one table per way to wait and per batch size.
pub fn tables(races: &[Race]) -> String {
    let rows: Vec<&Row> = races.iter().flat_map(|race| race.rows.iter().copied()).collect();
    let mut apart: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        let alike = |other: &Row| {
            (&row.told.wait, row.told.batch, row.told.dequeue_batch, row.told.payload)
                == (&other.told.wait, other.told.batch, other.told.dequeue_batch, other.told.payload)
                && row.server == other.server
        };
        match apart.iter_mut().find(|rows| alike(rows[0])) {
            Some(rows) => rows.push(row),
            None => apart.push(vec![row]),
        }
    }
    apart.iter().map(|rows| table(rows)).collect()
}

fn table(rows: &[&Row]) -> String {
    let mut contenders: Vec<&str> = Vec::new();
    let mut places: Vec<(usize, usize)> = Vec::new();
    for row in rows {
        if !contenders.contains(&row.contender.as_str()) {
            contenders.push(&row.contender);
        }
        if !places.contains(&place(row)) {
            places.push(place(row));
        }
    }
    let titles = contenders.iter().map(|name| shown(name));
    let mut table = Table::new(std::iter::once("enqueues/s / dequeues/s".to_owned()).chain(titles));
    for at in places {
        let cell = |contender: &&str| {
            let row = rows.iter().find(|row| place(row) == at && row.contender == **contender)?;
            cell(row)
        };
        let (producers, consumers) = at;
        let cells = contenders.iter().map(cell);
        table.row(std::iter::once(Some(format!("{producers} × {consumers}"))).chain(cells));
    }
    let first = &rows[0].told;
    let fetched =
        if first.dequeue_batch == 0 { String::new() } else { format!(", fetched by {}", first.dequeue_batch) };
    let heading = format!("### wait {}, batch {}{fetched}\n\n", first.wait, number::whole(first.batch as f64));
    let scattered =
        foot::scatter(rows.iter().copied().filter(|row| is_measured(row) && measure::RECEIVED.scatters(row)));
    format!("{heading}{}{}{scattered}{}{}", foot::in_common(rows), table.text(), binding(rows), foot::foot(rows))
}

fn binding(rows: &[&Row]) -> String {
    binds::table(rows)
}

fn place(row: &Row) -> (usize, usize) {
    (row.told.producers, row.told.consumers)
}

fn cell(row: &Row) -> Option<String> {
    if !is_measured(row) {
        return None;
    }
    let told = |measure: &measure::Measure| match measure.scatters(row) {
        true => measure.spread(row).unwrap_or_else(|| number::NONE.into()) + " ‡",
        false => measure.told(row).unwrap_or_else(|| number::NONE.into()),
    };
    let dagger = if row.rounds.iter().any(|round| round.disturbed.is_some()) { " †" } else { "" };
    Some(format!("{} / {}{dagger}", told(&measure::SENT), told(&measure::RECEIVED)))
}
