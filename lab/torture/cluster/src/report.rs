//! The report of a run, for people and for programs.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use serde_json::json;

use crate::{
    fault::Fault,
    history::Stream,
    outcome::{Failover, Outcome, Plan},
};

/// The time after a promotion within which every stream must continue.
pub const BAR: Duration = Duration::from_secs(2);

fn seconds(time: Option<Duration>) -> String {
    time.map_or_else(|| "never".to_owned(), |time| format!("{:.2}", time.as_secs_f64()))
}

/// Returns the time until the last of these streams had its first success.
fn slowest(failover: &Failover, streams: &[Stream]) -> Option<Duration> {
    let all = Stream::ALL.iter().zip(&failover.went_on).filter(|((stream, _), _)| streams.contains(stream));
    let all: Option<Vec<Duration>> = all.map(|(_, time)| *time).collect();
    all?.into_iter().max()
}

/// Returns the line to print after a failover.
pub fn line(failover: &Failover) -> String {
    let streams =
        Stream::ALL.iter().zip(&failover.went_on).map(|((_, name), time)| format!("{name} {}", seconds(*time)));
    format!(
        "{} {}→{}: promoted after {} s; then a commit {}, {}, listens {}; outage {} s, whole after {} s",
        failover.fault.name(),
        failover.from,
        failover.to,
        seconds(failover.promoted),
        seconds(failover.commits),
        streams.collect::<Vec<_>>().join(", "),
        seconds(failover.hears),
        seconds(Some(failover.outage)),
        seconds(Some(failover.whole)),
    )
}

/// Returns the smallest value that is at least as large as this share of the values.
fn at(values: &mut [Duration], part: f64) -> Option<Duration> {
    values.sort_unstable();
    let place = (values.len() as f64 * part).ceil() as usize;
    values.get(place.saturating_sub(1)).copied()
}

fn both(mut values: Vec<Duration>) -> String {
    format!("{} / {}", seconds(at(&mut values, 0.5)), seconds(at(&mut values, 1.0)))
}

pub fn markdown(outcome: &Outcome, plan: &Plan, versions: &str, strict: bool) -> String {
    let Outcome { failovers, verdict, errors, lasted } = outcome;
    let mut text = String::new();
    let mode = if strict { "synchronous_mode_strict" } else { "synchronous_mode" };
    let _ = writeln!(
        text,
        "# {} failovers\n\n{versions}; three nodes on one machine, `{mode}`, ttl 20 s, loop_wait 1 s. Clients' options: `{}`. Seed {}. {:.0} minutes.\n",
        failovers.len(),
        plan.options.trim(),
        plan.seed,
        lasted.as_secs_f64() / 60.0
    );
    verdicts(&mut text, outcome);
    times(&mut text, failovers);
    counts(&mut text, outcome);
    if !errors.is_empty() {
        let _ = writeln!(text, "\n## Errors that callers saw\n\n| call | means | times | text |\n|---|---|---|---|");
        for (stream, unknown, error, count) in errors {
            let means = if *unknown { "outcome unknown" } else { "it has not happened" };
            let _ = writeln!(text, "| {stream} | {means} | {count} | {} |", error.replace('|', "/"));
        }
    }
    let _ = writeln!(text, "\n## Each failover\n\n```text");
    for (failover, number) in failovers.iter().zip(1..) {
        let _ = writeln!(text, "{number}: {}", line(failover));
    }
    let _ = writeln!(text, "```\n\n```json\n{}\n```", summary(outcome, plan, strict));
    debug_assert_eq!(verdict.violations.is_empty(), text.contains("Nothing was violated"));
    text
}

fn verdicts(text: &mut String, outcome: &Outcome) {
    if outcome.verdict.violations.is_empty() {
        let _ = writeln!(text, "**Nothing was violated.**");
    }
    for violation in &outcome.verdict.violations {
        let _ = writeln!(text, "- **VIOLATED** {violation}");
    }
    let all = outcome.failovers.len();
    let within = |streams: &[Stream]| {
        let soon = |failover: &&Failover| slowest(failover, streams).is_some_and(|slowest| slowest <= BAR);
        outcome.failovers.iter().filter(soon).count()
    };
    let others = [
        Stream::Enqueue,
        Stream::EnqueueIn,
        Stream::Work,
        Stream::LeaseAck,
        Stream::Ledger,
        Stream::Take,
        Stream::Bell,
    ];
    let _ = writeln!(
        text,
        "Within {BAR:?} of the promotion enqueues went on in {} of {all} failovers, workers in {}, both and every other consumer in {}.",
        within(&[Stream::Enqueue]),
        within(&[Stream::Work]),
        within(&others)
    );
}

/// Writes the median and the maximum time for each fault.
fn times(text: &mut String, failovers: &[Failover]) {
    let mut of: BTreeMap<Fault, Vec<&Failover>> = BTreeMap::new();
    for failover in failovers {
        of.entry(failover.fault).or_default().push(failover);
    }
    let _ = writeln!(
        text,
        "\n## Seconds: the median / the longest\n\nFrom the promotion to the first success, but for the first column, which is from the fault to the promotion.\n"
    );
    let names = Stream::ALL.map(|(_, name)| name).join(" | ");
    let _ = writeln!(
        text,
        "| fault | times | promoted | a commit | {names} | listens | outage of enqueues |\n|---|---|---|---|{}---|---|",
        "---|".repeat(Stream::ALL.len())
    );
    for (fault, all) in of {
        let each =
            |of: &dyn Fn(&Failover) -> Option<Duration>| both(all.iter().filter_map(|failover| of(failover)).collect());
        let streams: Vec<String> = (0..Stream::ALL.len()).map(|at| each(&|failover| failover.went_on[at])).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            fault.name(),
            all.len(),
            each(&|failover| failover.promoted),
            each(&|failover| failover.commits),
            streams.join(" | "),
            each(&|failover| failover.hears),
            each(&|failover| Some(failover.outage)),
        );
    }
}

fn counts(text: &mut String, outcome: &Outcome) {
    let _ = writeln!(
        text,
        "\n## Messages\n\n| queue | Ok | outcome unknown | of these, there | failed | came again | lost | slowest, s |\n|---|---|---|---|---|---|---|---|"
    );
    for (queue, count) in &outcome.verdict.counts {
        let _ = writeln!(
            text,
            "| {queue} | {} | {} | {} | {} | {} | {} | {} |",
            count.ok,
            count.unknown,
            count.unknown_and_there,
            count.failed,
            count.again,
            count.lost,
            seconds(Some(count.slowest))
        );
    }
    let (is, should) = outcome.verdict.sums;
    let _ = writeln!(text, "\nThe ledger's sum is {is}, and should be {should}.");
}

fn summary(outcome: &Outcome, plan: &Plan, strict: bool) -> serde_json::Value {
    let millis = |time: Option<Duration>| time.map(|time| time.as_millis() as u64);
    let failovers = outcome.failovers.iter().map(|failover| {
        let streams = Stream::ALL
            .iter()
            .zip(&failover.went_on)
            .map(|((_, name), time)| ((*name).to_owned(), json!(millis(*time))));
        json!({
            "fault": failover.fault.name(),
            "promoted_ms": millis(failover.promoted),
            "went_on_ms": streams.collect::<serde_json::Map<_, _>>(),
            "commits_ms": millis(failover.commits),
            "hears_ms": millis(failover.hears),
            "outage_ms": millis(Some(failover.outage)),
        })
    });
    json!({
        "seed": plan.seed,
        "strict": strict,
        "violations": outcome.verdict.violations,
        "lost_at_most_once": outcome.verdict.counts.values().map(|count| count.lost).sum::<usize>(),
        "failovers": failovers.collect::<Vec<_>>(),
    })
}
