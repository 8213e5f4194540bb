use super::{line::line, text::text};
use crate::check::{check, tests::clean};

#[test]
fn report_names_violation_and_replay_command() {
    let mut made = clean();
    made.fault("half-open", 1_000, 3_000);
    made.evidence.about.faults = vec!["half-open".to_owned()];
    made.evidence.tables.dead.clear();
    made.evidence.ops.sort_by_key(|op| op.began);
    let findings = check(&made.evidence);
    let text = text(&made.evidence, &findings).expect("a text");
    let replay = "run --minutes 1 --seed 1 --fault half-open";
    for word in ["VIOLATED: a dead letter was lost, 1 times", "message 4096", "half-open", replay] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let line: serde_json::Value =
        serde_json::from_str(&line(&made.evidence, &findings).expect("a line")).expect("JSON");
    assert_eq!(line["kept"], false);
    assert_eq!(line["violations"][0]["count"], 1);
    assert_eq!(line["operations"]["Bury"]["ok"], 2);
    assert!(line["replay"].as_str().is_some_and(|text| text.contains(replay)));
}

#[test]
fn a_report_of_a_clean_run_says_so() {
    let made = clean();
    assert!(text(&made.evidence, &[]).expect("a text").contains("Every promise was kept."));
}
