//! Summarizes the state of all queues.

use serde::Serialize;

use super::{
    pulse::{Gathered, Known},
    row::Row,
    words,
};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The worst state of a queue: see [`Row::states`]. `unknown` if the numbers are not updated.
    pub state: &'static str,
    /// The state, in a few words.
    pub text: String,
    /// The number of queues and the number of messages.
    pub held: String,
    /// The queues with problems, the worst first.
    pub troubles: Vec<Trouble>,
    /// The number of further queues with problems.
    pub more: usize,
    /// The sums over all queues, by the names of the page's cells.
    pub sums: [(&'static str, String); 8],
}

/// The problems of one queue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trouble {
    pub queue: String,
    pub state: &'static str,
    pub what: String,
    /// The path of the page about the problem, relative to the queue's page.
    pub place: &'static str,
}

/// All states with their texts, the worst first. A queue may have several states, and counts toward
/// each of them.
const STATES: [(&str, &str); 4] =
    [("behind", "behind"), ("dead", "with dead letters"), ("paused", "paused"), ("hidden", "not visible")];
/// The maximum number of queues with problems on the page.
const SHOWN: usize = 8;

impl Verdict {
    /// Returns the summary. `problem` is the reason if the numbers are not updated.
    pub fn of(picture: &Gathered, problem: Option<&str>) -> Self {
        let rows: Vec<Row> = picture.queues.values().map(Row::of).collect();
        let of_state = |state: &str| rows.iter().filter(|row| row.states.contains(&state)).count();
        let counted = STATES.map(|(state, what)| (state, of_state(state), what));
        let said: Vec<String> = counted
            .iter()
            .filter(|(_, count, _)| *count > 0)
            .map(|(_, count, what)| format!("{count} {what}"))
            .collect();
        let (state, text) = match counted.iter().find(|(_, count, _)| *count > 0) {
            _ if problem.is_some() => ("unknown", "It is not known whether all is well".to_owned()),
            None => ("ok", "All is well".to_owned()),
            Some((state, ..)) => (*state, format!("Needs attention: {}", said.join(", "))),
        };
        let mut troubles: Vec<Trouble> = rows.iter().filter_map(Trouble::of).collect();
        troubles.sort_by_key(|trouble| STATES.iter().position(|(state, _)| *state == trouble.state));
        let more = troubles.len().saturating_sub(SHOWN);
        troubles.truncate(SHOWN);
        let sums = sums(picture);
        let held = format!(
            "{}, {}",
            words::several(picture.queues.len() as i64, "queue"),
            words::several(held(picture), "message")
        );
        let held = match problem {
            None => held,
            Some(_) if picture.queues.is_empty() => "The queues could not be read".to_owned(),
            Some(_) => format!("{held}, as of the last reading"),
        };
        Self { state, text, held, troubles, more, sums }
    }
}

fn held(picture: &Gathered) -> i64 {
    picture.queues.values().filter_map(|known| known.counts).map(|counts| counts.depth()).sum()
}

fn sums(picture: &Gathered) -> [(&'static str, String); 8] {
    let messages = |place: usize| {
        let all = picture.queues.values().filter_map(|known| known.counts).map(|counts| counts.messages[place]);
        words::thousands(all.sum::<i64>())
    };
    let rate = |of: fn(&Known) -> f64| words::rate(picture.queues.values().map(of).sum());
    [
        ("due", messages(0)),
        ("leased", messages(2)),
        ("retrying", messages(3)),
        ("delayed", messages(1)),
        ("dead", messages(4)),
        ("came", rate(|known| known.flow.came)),
        ("went", rate(|known| known.flow.went)),
        ("died", rate(|known| known.failing.unwrap_or_default().max(known.flow.died))),
    ]
}

impl Trouble {
    fn of(row: &Row) -> Option<Self> {
        let what = row.states.iter().filter_map(|state| match *state {
            // The oldest due message may be known before the queue is counted again.
            "behind" if matches!(row.due.as_str(), "0" | "–") => Some(format!("a message due for {}", row.oldest)),
            "behind" => Some(format!("{} due, the oldest for {}", row.due, row.oldest)),
            "dead" => Some(format!("{} dead", row.dead)),
            "paused" => Some("paused".to_owned()),
            "hidden" => Some("not counted yet, or the console's role may not read it".to_owned()),
            _ => None,
        });
        let what = what.collect::<Vec<_>>().join("; ");
        let state = *row.states.first()?;
        let place = if state == "dead" { "/dead" } else { "" };
        (!what.is_empty()).then(|| Self { queue: row.name.clone(), state, what, place })
    }
}
