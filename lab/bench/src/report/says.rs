//! Writes sentences that repeat figures. Omits a sentence if its rows are missing.

use crate::{
    report::{
        columns,
        markdown::code,
        measure::{ALLOCATED, ALLOCATIONS, MEAN, Measure},
        number,
        race::{is_measured, is_ours, races},
    },
    results::{Results, Row},
};

/// The suites of single steps. The most comparable suite comes first.
const STEPS: [&str; 4] = ["layer-comparison", "send", "read", "ack"];

pub fn section(results: &Results) -> String {
    let contenders = contenders(results);
    let each = |say: fn(&Results, &str) -> Vec<String>| -> Vec<String> {
        contenders.iter().flat_map(|contender| say(results, contender)).collect()
    };
    let topics = [
        ("Layer overhead", layers(results)),
        ("Allocations", allocations(results)),
        ("Batch scaling", each(batches)),
        ("Read against send", each(reads)),
        ("Payload size", each(payloads)),
        ("Full cycle", each(cycles)),
    ];
    let told = topics.into_iter().filter(|(_, says)| !says.is_empty());
    let told: Vec<String> = told.map(|(topic, says)| format!("- **{topic}**\n  - {}", says.join("\n  - "))).collect();
    if told.is_empty() { String::new() } else { format!("## What the figures say\n\n{}\n\n", told.join("\n")) }
}

/// Returns the contenders of single steps, ours first.
fn contenders(results: &Results) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in results.rows.iter().filter(|row| STEPS.contains(&row.suite.as_str())) {
        if !names.contains(&row.contender.as_str()) {
            names.push(&row.contender);
        }
    }
    names.sort_by_key(|name| !is_ours(name));
    names
}

/// A layer's ratios to the lowest layer, each with its case.
struct Ratios<'a> {
    layer: &'a str,
    lowest: &'a str,
    cases: Vec<(f64, &'a str)>,
}

impl Ratios<'_> {
    /// Returns the range of the ratios, with the cases at its ends.
    fn range(&self) -> Option<String> {
        let told = |(ratio, case): &(f64, &str)| format!("{} ({})", number::rate(*ratio), code(case));
        let (least, most) = (self.cases.first()?, self.cases.last()?);
        let upper = if self.cases.len() > 1 { format!(" to {}", told(most)) } else { String::new() };
        Some(format!("{}{upper}", told(least)))
    }
}

/// Returns the ratios of each of our layers to the lowest layer, by a measure, in ascending order.
fn ratios<'a>(results: &'a Results, measure: &Measure) -> Vec<Ratios<'a>> {
    let mut all: Vec<Ratios<'_>> = Vec::new();
    for race in races(results.rows.iter().filter(|row| row.suite == "layer-comparison")) {
        let Some(lowest) = columns::lowest(&race).filter(|row| !measure.scatters(row)) else { continue };
        let Some(base) = measure.median(lowest).filter(|figure| *figure > 0.0) else { continue };
        let layers = race.measured().filter(|row| row.contender != lowest.contender && is_ours(&row.contender));
        for row in layers.filter(|row| !measure.scatters(row)) {
            let Some(figure) = measure.median(row) else { continue };
            let at = all.iter().position(|ratios| ratios.layer == row.contender).unwrap_or_else(|| {
                all.push(Ratios { layer: &row.contender, lowest: &lowest.contender, cases: Vec::new() });
                all.len() - 1
            });
            all[at].cases.push((figure / base, &row.case));
        }
    }
    for ratios in &mut all {
        ratios.cases.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    all
}

/// States the cost of each layer's steps as a range of ratios to the lowest layer.
fn layers(results: &Results) -> Vec<String> {
    let say = |ratios: Ratios<'_>| {
        Some(format!("{} takes {} times as long as {}.", code(ratios.layer), ratios.range()?, code(ratios.lowest)))
    };
    ratios(results, &MEAN).into_iter().filter_map(say).collect()
}

/// States the number and size of each layer's allocations, as ranges of ratios to the lowest layer.
fn allocations(results: &Results) -> Vec<String> {
    let bytes = ratios(results, &ALLOCATED);
    let say = |ratios: Ratios<'_>| {
        let bytes = bytes.iter().find(|bytes| bytes.layer == ratios.layer)?;
        Some(format!(
            "{} allocates {} times as often as {}, and {} times as many bytes.",
            code(ratios.layer),
            ratios.range()?,
            code(ratios.lowest),
            bytes.range()?
        ))
    };
    let mut says: Vec<String> = ratios(results, &ALLOCATIONS).into_iter().filter_map(say).collect();
    if !says.is_empty() {
        says.push(WHY_IT_ALLOCATES.to_owned());
    }
    says
}

/// The reasons for the library's allocations, which no figure shows.
const WHY_IT_ALLOCATES: &str = "What the library allocates beyond its statements: a task and a channel for each call, so that a call that is dropped \
    loses no message; the batch that concurrent calls share; each message with its metadata.";

/// States the cost of a message alone and in a batch.
fn batches(results: &Results, contender: &str) -> Vec<String> {
    let say = |(verb, done): (&str, &str)| {
        let mean = |row: &Row| MEAN.median(row).map(|mean| mean / row.told.batch.max(1) as f64);
        let single = step(results, contender, &format!("{verb}-single"))?;
        let among = format!("{verb}-batch-");
        let largest = rows(results, contender)
            .filter(|row| row.case.starts_with(&among) && row.told.payload == single.told.payload)
            .filter(|row| row.told.producers == single.told.producers)
            .max_by_key(|row| row.told.batch)?;
        let (alone, together) = (mean(single)?, mean(largest)?);
        Some(format!(
            "{done} in {} by itself and in {} among {} ({})",
            number::time(alone),
            number::time(together),
            largest.told.batch,
            number::times(together / alone)
        ))
    };
    let verbs = [("send", "sent"), ("read", "read"), ("delete", "deleted"), ("archive", "archived")];
    let said: Vec<String> = verbs.into_iter().filter_map(say).collect();
    match said.is_empty() {
        true => Vec::new(),
        false => vec![format!("{}: a message is {}.", code(contender), said.join("; "))],
    }
}

fn reads(results: &Results, contender: &str) -> Vec<String> {
    let ratio = |(kind, words): (&str, &str)| {
        let send = mean(results, contender, &format!("send-{kind}"))?;
        let read = mean(results, contender, &format!("read-{kind}"))?;
        Some(format!("{} {words}", number::times(read / send)))
    };
    let kinds = [("single", "one by one"), ("batch-10", "by 10"), ("batch-50", "by 50"), ("batch-100", "by 100")];
    let ratios: Vec<String> = kinds.into_iter().filter_map(ratio).collect();
    match ratios.is_empty() {
        true => Vec::new(),
        false => vec![format!("{}: a read takes the time of a send {}.", code(contender), ratios.join(", "))],
    }
}

/// States the time of a send by size of payload, from the smallest to the largest.
fn payloads(results: &Results, contender: &str) -> Vec<String> {
    let mut sized: Vec<&Row> = rows(results, contender).filter(|row| row.case.starts_with("send-payload-")).collect();
    sized.sort_by_key(|row| row.told.payload);
    let told = |row: &&Row| Some((number::bytes(row.told.payload as f64), MEAN.median(row)?));
    let sized: Vec<(String, f64)> = sized.iter().filter_map(told).collect();
    let [(size, least), larger @ ..] = sized.as_slice() else { return Vec::new() };
    if larger.is_empty() {
        return Vec::new();
    }
    let grew = larger
        .iter()
        .map(|(size, mean)| format!("{size} in {} ({})", number::time(*mean), number::times(mean / least)));
    let grew: Vec<String> = grew.collect();
    vec![format!("{} sends {size} in {}, {}.", code(contender), number::time(*least), grew.join(", "))]
}

/// States the time of a full cycle compared to the time of its send.
fn cycles(results: &Results, contender: &str) -> Vec<String> {
    let cycle = mean(results, contender, "full-cycle");
    let send = mean(results, contender, "send-single");
    let said = cycle.zip(send).map(|(cycle, send)| {
        format!(
            "{} takes {} to send, read and delete a message, {} times its send.",
            code(contender),
            number::time(cycle),
            number::rate(cycle / send)
        )
    });
    said.into_iter().collect()
}

fn mean(results: &Results, contender: &str, case: &str) -> Option<f64> {
    step(results, contender, case).and_then(|row| MEAN.median(row)).filter(|mean| *mean > 0.0)
}

fn step<'a>(results: &'a Results, contender: &'a str, case: &str) -> Option<&'a Row> {
    rows(results, contender).find(|row| row.case == case)
}

/// Returns a contender's measured rows of the suites that measure single steps.
fn rows<'a>(results: &'a Results, contender: &'a str) -> impl Iterator<Item = &'a Row> {
    let of = move |suite: &'static str| results.rows.iter().filter(move |row| row.suite == suite);
    STEPS
        .into_iter()
        .flat_map(of)
        .filter(move |row| row.contender == contender && is_measured(row) && !MEAN.scatters(row))
}
