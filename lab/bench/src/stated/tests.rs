use super::*;
use crate::{report::fake, results::Results};

/// The documents that state figures of the benchmarks.
const DOCUMENTS: [&str; 8] = [
    "README.md",
    "docs/design/dequeue.md",
    "docs/design/driver.md",
    "docs/design/storage.md",
    "docs/design/worker.md",
    "docs/observability.md",
    "docs/speed.md",
    "lab/bench/README.md",
];

fn sources() -> Sources {
    let row = |contender: &str, rate: f64| fake::measured(fake::row("throughput", "drain", contender), rate, 100.0);
    let mut wild = row("wild", 100.0);
    wild.rounds[0].received *= 10;
    let rows = vec![row("trunkline", 555_400.0), row("river", 12_840.0), wild];
    let drivers = "### get ×100\n\n| way | 0 ms |  | CPU |  | 5ms each way |  |\n| --- | --: | --: | --: | --: | --: | --: |\n\
        | **trunkline** | 0.65 (0.51, 0.98) | 1.00× | 1.25 | 1.00× | 11.2 (10.8, 11.7) | 1.00× |\n\
        | slow | 27.0 (20.9, 78.2) | 41.5× | 15.5 | 12.4× | says nothing (15.3, 53.6) | - |\n\n\
        | verb | 0 ms | 5ms each way | round trips |\n| --- | --: | --: | --: |\n| ack 100 | 0.33 (0.28, 0.97) | 11.0 (10.8, 21.8) | 1.05 |\n";
    Sources::of(Results { runs: Vec::new(), rows }, drivers)
}

fn problems(text: &str) -> Vec<String> {
    check(text, &sources()).1
}

#[test]
fn the_documents_state_what_their_rows_say() {
    let sources = Sources::read(&tree::published()).expect("results are published");
    let mut wrong = Vec::new();
    for document in DOCUMENTS {
        let text = std::fs::read_to_string(tree::root().join(document)).expect(document);
        wrong.extend(check(&text, &sources).1.into_iter().map(|problem| format!("{document}: {problem}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_figure_is_its_row_within_rounding() {
    for right in ["555 k", "0.56 M", "**555 k** messages/s", "p50 12 µs, 555 k", "555,400"] {
        let text = format!("It drains {right}<!-- row: throughput/drain/trunkline messages_per_s -->.");
        assert_eq!(check(&text, &sources()), (1, Vec::new()), "{right}");
    }
    for wrong in ["556 k", "555", "555 ms", "0.55 M", "550 k"] {
        let text = format!("It drains {wrong} <!-- row: throughput/drain/trunkline messages_per_s -->");
        assert_eq!(problems(&text).len(), 1, "{wrong}");
    }
    assert!(problems("100 µs<!-- row: throughput/drain/trunkline p50 -->").is_empty());
}

#[test]
fn two_figures_of_a_line_have_a_row_each() {
    let text = "555 k<!-- row: throughput/drain/trunkline messages_per_s --> against 12.8 k<!-- row: throughput/drain/river messages_per_s -->, \
                which is ×43<!-- row: throughput/drain/trunkline messages_per_s over throughput/drain/river -->";
    assert_eq!(check(text, &sources()), (3, Vec::new()));
}

#[test]
fn a_table_is_looked_up_by_its_first_cells() {
    let table = |figure: &str| {
        format!(
            "| who | drains |\n| --- | ---: |\n| **`trunkline`** | 555 k |\n| `river` | {figure} |\n\n<!-- row: throughput/drain/* messages_per_s, column 2 -->"
        )
    };
    assert_eq!(check(&table("12.8 k"), &sources()), (2, Vec::new()));
    let why = problems(&table("12.9 k"));
    assert!(why[0].contains("river: it says 12.9 k, and the row 12.8 k"), "{why:?}");
}

#[test]
fn a_mark_that_is_shown_as_code_is_no_mark() {
    assert_eq!(check("Write `5<!-- row: throughput/drain/unknown speed -->` behind it.", &sources()), (0, Vec::new()));
}

#[test]
fn ways_of_driving_postgres_are_rows_too() {
    for right in [
        "0.65 ms<!-- row: drivers/get ×100/trunkline ms -->",
        "11.2 ms<!-- row: drivers@5/get ×100/trunkline ms -->",
        "11.0 ms<!-- row: drivers@5/ack 100/trunkline queue ms -->",
        // 27.0 and 0.65 are rounded: the exact quotient is between 41.1 and 41.9.
        "×41.8<!-- row: drivers/get ×100/slow ms over drivers/get ×100/trunkline -->",
    ] {
        assert_eq!(check(right, &sources()), (1, Vec::new()), "{right}");
    }
    for wrong in [
        "0.66 ms<!-- row: drivers/get ×100/trunkline ms -->",
        "×42.1<!-- row: drivers/get ×100/slow ms over drivers/get ×100/trunkline -->",
        "27 ms<!-- row: drivers@5/get ×100/slow ms -->",
    ] {
        assert_eq!(problems(wrong).len(), 1, "{wrong}");
    }
}

#[test]
fn failed_lookup_is_a_problem() {
    for (text, why) in [
        ("5<!-- row: throughput/drain/unknown messages_per_s -->", "no row \"throughput/drain/unknown\""),
        ("5<!-- row: throughput/drain/trunkline speed -->", "no measure \"speed\""),
        ("many<!-- row: throughput/drain/trunkline messages_per_s -->", "no figure before"),
        ("5<!-- row: throughput/drain/trunkline messages_per_s", "without its end"),
        ("5<!-- row: throughput/drain/wild messages_per_s -->", "scatters more than threefold"),
        ("5\n<!-- row: throughput/drain/* messages_per_s, column 2 -->", "no table above"),
    ] {
        let problems = problems(text);
        assert!(problems.len() == 1 && problems[0].contains(why), "{text}: {problems:?}");
    }
}
