use crate::rivals::{
    list,
    rules::RivalRule,
    table::{line, markdown},
    verdict::{Seen, Verdict},
};

fn verdict(name: &str, against: &[RivalRule]) -> Verdict {
    let rival = list::find(name).expect("a rival");
    let mut verdict = Verdict { skipped: None, seed: 7, seconds: 60, ..Verdict::skipped(rival, String::new()) };
    for rule in RivalRule::ALL {
        let mut seen = Seen::default();
        (0..usize::from(against.contains(&rule))).for_each(|nr| seen.add(format!("message {nr}")));
        verdict.seen.insert(rule, seen);
    }
    verdict.counts.insert("ended", 1);
    verdict
}

fn row(text: &str, rule: RivalRule) -> &str {
    let begins = format!("| {} | ", rule.says());
    text.lines().find_map(|line| line.strip_prefix(&*begins)).unwrap_or_default()
}

#[test]
fn table_shows_kept_and_broken_promises_and_missing_ones() {
    let mut library = verdict("river", &[RivalRule::Fence, RivalRule::Stored]);
    library.counts.clear();
    let text = markdown(&[verdict("trunkline", &[RivalRule::Fence]), verdict("pgmq", &[RivalRule::Fence]), library]);
    assert_eq!(row(&text, RivalRule::Stored), "held | held | did not hold: 1 |");
    assert_eq!(row(&text, RivalRule::Fence), "did not hold: 1 | not promised (1), seen 1 | not promised (2), seen 1 |");
    assert_eq!(row(&text, RivalRule::Refused), "held | not promised (1) | – |");
    assert!(text.contains("1. pgmq: delivery is once within a visibility timeout"), "{text}");
    assert!(text.contains("- message 0"), "{text}");
    assert!(text.contains("rivals --rival river --minutes 1 --seed 7"), "{text}");
}

#[test]
fn unavailable_rival_is_reported_as_skipped() {
    let rival = list::find("river").expect("a rival");
    let text =
        markdown(&[verdict("trunkline", &[]), Verdict::skipped(rival, "Go (go.dev) is not installed".to_owned())]);
    assert!(text.contains("SKIPPED: river: Go (go.dev) is not installed"), "{text}");
    assert!(text.starts_with("# ") && !text.contains("| river"), "{text}");
}

#[test]
fn a_line_of_json_says_the_same() {
    let line = line(&verdict("pgmq", &[RivalRule::Fence, RivalRule::Again])).expect("a line");
    let said: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let rules = &said["rules"];
    assert_eq!((&rules["stored"]["held"], &rules["again"]["held"]), (&true.into(), &false.into()));
    assert_eq!(rules["fence"]["held"], serde_json::Value::Null, "it is not promised");
    assert_eq!(rules["fence"]["seen"], 1);
}

#[test]
fn only_what_is_promised_breaks_a_verdict() {
    assert!(verdict("pgmq", &[RivalRule::Fence]).is_kept());
    assert!(!verdict("pgmq", &[RivalRule::Again]).is_kept());
    assert!(!verdict("trunkline", &[RivalRule::Fence]).is_kept());
}
