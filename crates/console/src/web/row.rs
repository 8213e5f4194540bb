//! A queue in the overview: its numbers and states in the form that a page shows.

use std::time::{Duration, SystemTime};

use super::{pulse::Known, spark, words};

/// A queue's row in the overview.
#[derive(Debug, Clone)]
pub struct Row {
    pub name: String,
    /// All states of the queue, the worst first: `behind`, `dead`, `paused`, or `hidden` if the
    /// queue was not counted yet or the role may not count it. If there are none, the only state is
    /// `ok`.
    pub states: Vec<&'static str>,
    pub is_paused: bool,
    pub due: String,
    pub leased: String,
    pub delayed: String,
    pub retrying: String,
    pub dead: String,
    pub oldest: String,
    pub came: String,
    pub went: String,
    pub died: String,
    pub bytes: String,
    pub points: String,
    pub at: String,
    pub payload: String,
    pub limits: String,
    /// The number of schedules, and the next tick.
    pub schedules: String,
}

impl Row {
    /// Returns the CSS class of the cell with this name. Zero and unknown values are shown faintly.
    pub fn faint(&self, cell: &str) -> &'static str {
        let text = match cell {
            "due" => &self.due,
            "oldest" => &self.oldest,
            "leased" => &self.leased,
            "retrying" => &self.retrying,
            "delayed" => &self.delayed,
            "dead" => &self.dead,
            "came" => &self.came,
            "went" => &self.went,
            _ => &self.died,
        };
        if matches!(text.as_str(), "0" | "–") { " zero" } else { "" }
    }
}

/// The number of seconds after which a due message counts as late. The doctor's default patience is
/// the same.
const PATIENCE: f64 = 300.0;

impl Row {
    pub fn of(known: &Known) -> Self {
        let is = &known.description;
        let all = [
            ("behind", known.alarms.is_some_and(|alarms| alarms.oldest_due >= PATIENCE) && !is.is_paused),
            ("dead", known.alarms.is_some_and(|alarms| alarms.has_dead)),
            ("paused", is.is_paused),
            ("hidden", known.counts.is_none()),
        ];
        let mut states: Vec<&'static str> = all.into_iter().filter(|(_, is)| *is).map(|(state, _)| state).collect();
        if states.is_empty() {
            states.push("ok");
        }
        let unknown = || "–".to_owned();
        let number =
            |place: usize| known.counts.map_or_else(unknown, |counts| words::thousands(counts.messages[place]));
        let oldest = known.alarms.map(|alarms| alarms.oldest_due).filter(|seconds| *seconds > 0.0);
        Self {
            name: is.name.clone(),
            states,
            is_paused: is.is_paused,
            due: number(0),
            delayed: number(1),
            leased: number(2),
            retrying: number(3),
            dead: match known.alarms.map(|alarms| alarms.has_dead) {
                Some(true) if known.counts.is_none_or(|counts| counts.messages[4] == 0) => "≥ 1".to_owned(),
                Some(false) => "0".to_owned(),
                _ => number(4),
            },
            oldest: oldest.map_or_else(unknown, age),
            came: words::rate(known.flow.came),
            went: words::rate(known.flow.went),
            died: words::rate(known.failing.unwrap_or_default().max(known.flow.died)),
            bytes: words::bytes(known.bytes),
            points: spark::points(known.points.iter().map(|point| point.depth)),
            at: words::time(known.at),
            payload: is.payload.clone(),
            limits: limits(is),
            schedules: schedules(known.schedules),
        }
    }
}

/// Formats a number of seconds. A time in a table that was written by hand may be infinite.
fn age(seconds: f64) -> String {
    words::age(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

fn schedules((count, next): (i64, Option<SystemTime>)) -> String {
    let next = next.map_or_else(String::new, |next| format!(", next tick {}", words::ago(next)));
    match count {
        0 => String::new(),
        1 => format!("1 schedule{next}"),
        _ => format!("{count} schedules{next}"),
    }
}

fn limits(is: &trunkline::Description) -> String {
    let limits = &is.limits;
    let mut said = Vec::new();
    said.extend(limits.max_leased.map(|most| format!("at most {most} leased")));
    said.extend(limits.per_second.map(|rate| format!("at most {rate} per second")));
    said.extend((is.priorities > 1).then(|| format!("{} priorities", is.priorities)));
    said.extend((is.partitions > 0).then(|| format!("{} partitions", is.partitions)));
    said.extend(is.uniqueness.then(|| "unique keys".to_owned()));
    said.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_beyond_all_durations_is_the_longest() {
        assert_eq!(age(90.5), "1 min 30 s");
        for seconds in [1e300, f64::INFINITY] {
            assert_eq!(age(seconds), words::age(Duration::MAX));
        }
    }
}
