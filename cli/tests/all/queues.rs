use crate::fixture::Trunkline;

#[test]
fn a_queue_is_created_listed_described_and_dropped() {
    let trunkline = Trunkline::new();
    assert!(trunkline.json(&["queue", "list", "--json"]).is_empty());
    let settings = ["--type", "jsonb", "--max-attempts", "3", "--lease", "1.5", "--max-batch", "7"];
    let create = [&["queue", "create", "emails"][..], &settings].concat();
    trunkline.ok(&create);
    trunkline.ok(&create); // again, which changes nothing
    trunkline.ok(&["queue", "create", "bytes"]);

    let listed = trunkline.json(&["queue", "list", "--json"]);
    assert_eq!(listed.iter().map(|queue| &queue["name"]).collect::<Vec<_>>(), ["bytes", "emails"]);
    let described = trunkline.json(&["queue", "describe", "emails", "--json"]).remove(0);
    assert_eq!(described, listed[1]);
    assert_eq!((&described["type"], &described["max_attempts"]), (&"jsonb".into(), &3.into()));
    assert_eq!((&described["lease_s"], &described["max_batch"]), (&1.5.into(), &7.into()));
    assert_eq!((&listed[0]["type"], &listed[0]["max_attempts"]), (&"bytea".into(), &10.into()));
    let table = trunkline.lines(&["queue", "list"]);
    assert!(table.len() == 3 && table[0].starts_with("name") && table[2].starts_with("emails"), "{table:?}");

    let (code, error) = trunkline.fails(&["queue", "drop", "emails"]);
    assert_eq!(code, 2);
    assert!(error.contains("--yes"), "{error}");
    trunkline.ok(&["queue", "drop", "emails", "--yes"]);
    assert_eq!(trunkline.lines(&["queue", "list", "--json"]).len(), 1);
}

#[test]
fn settings_out_of_bounds_are_errors() {
    let trunkline = Trunkline::new();
    trunkline.ok(&["queue", "create", "q"]);
    let wrong: [&[&str]; 5] = [
        &["no/name"],
        &["q", "--max-attempts", "3"], // it exists with others
        &["r", "--type", "no_such_type"],
        &["r", "--max-batch", "1025"],
        &["r", "--lease", "0"],
    ];
    for args in wrong {
        let (code, error) = trunkline.fails(&[&["queue", "create"], args].concat());
        assert!(code == 1 && error.contains("error: "), "{args:?}: {error}");
    }
    assert_eq!(trunkline.fails(&["queue", "create", "r", "--lease", "-1"]).0, 2);
}
