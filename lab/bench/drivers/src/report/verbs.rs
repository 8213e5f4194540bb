use std::time::Duration;

use super::{
    Report,
    number::{away, head, line, short, spread},
};
use crate::queue::Verb;

/// Shows the queue's own verbs at each delay, with the number of round trips per verb.
pub fn section(report: &Report) -> String {
    let mut text =
        "## The queue's own verbs\n\nPayloads of 100 bytes; one caller. Round trips are what the least takes longer than the least without \
        any delay, by twice the delay.\n\n"
            .to_owned();
    let mut delays: Vec<Duration> = report.verbs.iter().map(|row| row.delay).collect();
    delays.dedup();
    let Some(nearest) = delays.first() else { return String::new() };
    let mut cells = vec!["verb".to_owned()];
    for delay in &delays {
        cells.push(away(*delay));
        cells.extend((!delay.is_zero()).then(|| "round trips".to_owned()));
    }
    text += &head(&cells);
    for row in report.verbs.iter().filter(|row| row.delay == *nearest) {
        let mut cells = vec![row.name.to_owned()];
        for delay in &delays {
            let here = report.verbs.iter().find(|other| other.name == row.name && other.delay == *delay);
            cells.push(spread(here.and_then(Verb::milliseconds)));
            let least = |verb: &Verb| verb.milliseconds().map(|time| time.least);
            let longer = here.and_then(least).zip(least(row)).map(|(here, near)| here - near);
            let trips = longer.map_or_else(|| "-".to_owned(), |longer| short(longer / (2e3 * delay.as_secs_f64())));
            cells.extend((!delay.is_zero()).then_some(trips));
        }
        text += &line(&cells);
    }
    text.push('\n');
    text
}
