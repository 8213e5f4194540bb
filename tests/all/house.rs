//! Rules of the house that a reader relies on.

mod driver;
mod imports;
mod tree;

use std::{
    fs,
    path::{Path, PathBuf},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files under a folder with an ending, folders inside included.
pub fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == ending) {
                files.push(path);
            }
        }
    }
    files.sort();
    assert!(!files.is_empty(), "{folder} has no .{ending} files");
    files
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_statement_says_why_it_is_as_it_is_and_is_used() {
    let sources: String = files("src", "rs").iter().map(|path| read(path)).collect();
    for path in files("sql", "sql") {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let text = read(&path);
        assert!(text.starts_with("-- ") && text.lines().count() > 1, "{name} does not begin with a comment");
        assert!(sources.contains(&format!("sql/{name}\"")), "{name} is not used");
    }
    let console: String = files("console/src", "rs").iter().map(|path| read(path)).collect();
    for path in files("console/sql", "sql") {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        assert!(read(&path).starts_with("-- "), "{} does not begin with a comment", path.display());
        assert!(console.contains(&format!("\"{name}\"")), "{name} is not used");
    }
    // What stands in `schema/` is taken by build.rs, whatever it is called.
    for folder in ["schema/steps", "schema/functions", "schema/queue"] {
        for path in files(folder, "sql") {
            assert!(read(&path).starts_with("-- "), "{} does not begin with a comment", path.display());
            assert!(read(&path).is_ascii(), "{}: a database may have any encoding", path.display());
        }
    }
}

#[test]
fn files_are_small_rooms_with_telling_names() {
    const FORBIDDEN: [&str; 10] =
        ["util", "common", "helper", "core", "types", "manager", "service", "internal", "engine", "item"];
    for folder in
        ["src", "tests", "embedded/src", "cli/src", "console", "disk", "bench/src", "bench/drivers/src", "torture/src"]
    {
        for path in files(folder, "rs") {
            let lines = read(&path).lines().count();
            assert!(lines <= 350, "{} has {lines} lines", path.display());
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
            let name = name.trim_end_matches('s');
            assert!(!FORBIDDEN.iter().any(|word| word.trim_end_matches('s') == name), "{}", path.display());
        }
    }
}

/// Lines of tests, but of those that are parts in others, that leave before the end without a word.
fn silent_returns(code: &str) -> Vec<&str> {
    // These say why, and fail where that is required.
    const SPOKEN: [&str; 12] = [
        "skipped(",
        "Pgbouncer::",
        "SmallDisk::",
        "Browser::",
        "Stage::set(",
        "Stand::of(",
        "Place::of(kind",
        "Place::new().await else",
        "Broker::",
        "= broker(Kind::",
        "= older()",
        "= two()",
    ];
    let is_test = |block: &&str| ["#[test]", "#[tokio::test"].iter().any(|mark| block.contains(mark));
    let tests = code.split("\n}\n").filter(is_test).filter(|block| !block.contains("#[ignore"));
    // Deeper than a condition in the test itself are closures, whose returns end nothing else.
    let of_the_test = |line: &&str| line.len() - line.trim_start().len() <= 8;
    let words = |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "return");
    let leaves = |line: &&str| !line.trim_start().starts_with("//") && words(line) && !line.contains('"');
    let silent = |line: &&str| !SPOKEN.iter().any(|spoken| line.contains(spoken));
    tests.flat_map(str::lines).filter(of_the_test).filter(leaves).filter(silent).collect()
}

#[test]
fn no_test_ends_early_without_a_word() {
    for folder in ["tests", "cli/tests", "console/tests", "embedded/tests", "disk/tests", "bench/tests", "relay/tests"]
    {
        for path in files(folder, "rs") {
            assert_eq!(silent_returns(&read(&path)), Vec::<&str>::new(), "{}: see required.rs", path.display());
        }
    }
}

#[test]
fn silent_returns_are_found() {
    let tests = "#[test]\nfn a() {\n    if absent() {\n        return;\n    }\n}\n#[tokio::test]\nasync fn b() {\n    let Some(a) = a() else { return };\n}\n\
                 #[test]\nfn c() {\n    if absent() {\n        return skipped(why);\n    }\n}\n#[test]\n#[ignore]\nfn d() {\n    return;\n}\n\
                 fn e() {\n    return;\n}\n";
    assert_eq!(silent_returns(tests), ["        return;", "    let Some(a) = a() else { return };"]);
}

/// The floor under every scan rests on that: see `schema/functions/clock.sql`. A time that the caller names and that is yet to come is one above all floors.
#[test]
fn every_due_time_is_drawn_from_the_clock_that_floors_rest_on() {
    let mut drawn = 0;
    for path in files("schema/queue", "sql").into_iter().chain(files("schema/functions", "sql")) {
        for line in read(&path).lines() {
            let Some((_, value)) = line
                .split_once("due_at = ")
                .filter(|(before, _)| before.trim_end().ends_with("set") || before.trim().is_empty())
            else {
                continue;
            };
            let value = value.replace("when due > clock_timestamp() then due", "");
            assert!(!value.contains("clock_timestamp()") && !value.contains("now()"), "{}: {line}", path.display());
            drawn += usize::from(value.contains("trunkline.clock()"));
        }
    }
    assert!(drawn >= 5, "{drawn} were found");
}
