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
    let wrong: [&[&str]; 4] = [
        &["no/name"],
        &["q", "--max-attempts", "3"], // it exists with others
        &["r", "--type", "no_such_type"],
        &["r", "--max-batch", "1025"],
    ];
    for args in wrong {
        let (code, error) = trunkline.fails(&[&["queue", "create"], args].concat());
        assert!(code == 1 && error.contains("error: "), "{args:?}: {error}");
    }
    for (args, told) in [
        (["--lease", "-1"], "'-1'"),
        (["--lease", "0"], "invalid value '0' for '--lease <TIME>': it must be more than zero"),
        (["--lease", "0ms"], "invalid value '0ms' for '--lease <TIME>': it must be more than zero"),
        (["--lease", "400d"], "between 0 and 365 days"),
        (["--lease", "soon"], "250ms, 90s, 5m, 1h30m, 7d"),
        (["--max-attempts", "0"], "1..=2147483647"),
        (["--max-attempts", "3000000000"], "1..=2147483647"),
    ] {
        let (code, error) = trunkline.fails(&[&["queue", "create", "r"][..], &args].concat());
        assert!(code == 2 && error.contains(told), "{args:?}: {error}");
    }
    assert_eq!(trunkline.json(&["queue", "list", "--json"]).len(), 1, "none of them was created");
    trunkline.ok(&["queue", "create", "long", "--lease", "1h30m", "--max-attempts", "2147483647"]);
    let described = trunkline.json(&["queue", "describe", "long", "--json"]).remove(0);
    assert_eq!((&described["lease_s"], &described["max_attempts"]), (&5400.0.into(), &2_147_483_647_i64.into()));
}
