use serde_json::Value;

use crate::fixture::Trunkline;

#[test]
fn the_demo_prints_one_line_of_json_and_loses_nothing() {
    let nowhere = Trunkline { url: "host=/nowhere".to_owned() }; // the demo needs no database
    let printed = nowhere.json(&["demo", "--json", "--messages", "5000", "--callers", "50", "--payload", "20"]);
    let [found] = printed.as_slice() else { panic!("one line: {printed:?}") };
    let number = |key: &str| found[key].as_u64().unwrap_or_else(|| panic!("{key} is a number: {found}"));
    assert_eq!((number("messages"), number("lost"), number("duplicated")), (5000, 0, 0));
    assert_eq!(number("unknown"), 0);
    for key in ["enqueue_per_s", "end_to_end_per_s", "disk_fsyncs_per_s"] {
        assert!(number(key) > 0, "{key}: {found}");
    }
    for side in ["enqueue", "end_to_end"] {
        let [p50, p99] = ["p50", "p99"].map(|percent| number(&format!("{side}_{percent}_us")));
        assert!(0 < p50 && p50 <= p99, "{found}");
    }
    let setting = |key: &str| found[key].as_str().map(str::to_owned);
    assert!(setting("postgres").is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit())));
    assert_eq!(setting("fsync").as_deref(), Some("on"), "default durability");
    assert_eq!(setting("synchronous_commit").as_deref(), Some("on"));
}

#[test]
fn the_report_for_people_is_short() {
    let nowhere = Trunkline { url: "host=/nowhere".to_owned() };
    let report = nowhere.lines(&["demo", "--messages", "100", "--callers", "200"]);
    assert!(report.len() < 10 && report[0].starts_with("100 messages of 100 bytes"), "{report:?}");
    assert!(report.iter().any(|line| line.contains("lost 0, duplicated 0")), "{report:?}");
    assert!(serde_json::from_str::<Value>(&report[0]).is_err());
}

#[test]
fn numbers_that_make_no_sense_are_usage_errors() {
    let nowhere = Trunkline { url: "host=/nowhere".to_owned() };
    for wrong in
        [["--messages", "0"], ["--callers", "0"], ["--payload", "15"], ["--payload", "99999999"], ["--messages", "x"]]
    {
        let (code, error) = nowhere.fails(&[&["demo"][..], &wrong].concat());
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(wrong[0]), "{error}");
    }
}
