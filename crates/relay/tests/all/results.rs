//! The rates in the guide are the measured rates.

use std::{fs, path::PathBuf};

use crate::rates::{Measured, Results};

const PAGE: &str = "docs/when-one-postgres-is-not-enough.md";

#[test]
fn the_guide_s_table_is_made_of_the_results() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let results = fs::read_to_string(root.join("crates/relay/results.json")).expect("the results");
    let results: Results = serde_json::from_str(&results).expect("as `rates` writes them");
    let page = fs::read_to_string(root.join(PAGE)).expect("the page");
    let from = page.find("| broker |").expect("a table");
    let until = page[from..].find("\n\n").map_or(page.len(), |length| from + length + 1);
    let made = format!("{}{}{}", &page[..from], table(&results), &page[until..]);
    if std::env::var_os("TRUNKLINE_BLESS").is_some() {
        fs::write(root.join(PAGE), &made).expect("written");
    } else {
        assert!(made == page, "the results are others now (bless {PAGE} with TRUNKLINE_BLESS=1): {}", table(&results));
    }
    for said in [&results.command, &results.commit] {
        assert!(page.contains(said.as_str()), "{PAGE} does not name {said}");
    }
    for measured in &results.brokers {
        let turns = [&measured.relay, &measured.plain, &measured.p50, &measured.p99].map(Vec::len);
        assert!(turns.iter().all(|turns| *turns == 3), "{}: {turns:?}", measured.broker);
    }
}

fn table(results: &Results) -> String {
    let head = "| broker | relay | plain loop | the broker's own tool | commit to broker at 100 a second, p50 | p99 |\n|---|---|---|---|---|---|\n";
    results.brokers.iter().fold(head.to_owned(), |table, one| table + &row(one) + "\n")
}

fn row(of: &Measured) -> String {
    let tool = of.own_tool.as_ref().map_or_else(|_| "not measured".to_owned(), |rates| a_second(rates));
    let (relay, plain) = (a_second(&of.relay), a_second(&of.plain));
    format!("| {} | {relay} | {plain} | {tool} | {:.1} ms | {:.1} ms |", of.broker, median(&of.p50), median(&of.p99))
}

/// Formats the median and the range.
fn a_second(rates: &[f64]) -> String {
    let k = |rate: f64| format!("{:.0}", rate / 1000.0);
    let (least, most) =
        rates.iter().fold((f64::MAX, 0.0_f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
    format!("{} k/s ({} to {})", k(median(rates)), k(least), k(most))
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
