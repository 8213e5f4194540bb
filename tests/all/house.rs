//! Tests rules of the source tree that readers rely on.

mod api;
mod driver;
mod homonyms;
mod imports;
mod prose;
mod tree;

use std::{
    fs,
    path::{Path, PathBuf},
};

use self::tree::without_texts;

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns all files with this ending below a folder.
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
fn every_statement_gives_its_reason_and_is_used() {
    let sources: String = files("src", "rs").iter().map(|path| read(path)).collect();
    for path in files("sql/statements", "sql") {
        let name = path.strip_prefix(root().join("sql/statements")).expect("in the folder").display();
        let text = read(&path);
        assert!(text.starts_with("-- ") && text.lines().count() > 1, "{name} does not begin with a comment");
        assert!(sources.contains(&format!("sql/statements/{name}\"")), "{name} is not used");
    }
    let console: String = files("crates/console/src", "rs").iter().map(|path| read(path)).collect();
    for path in files("crates/console/sql", "sql") {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        assert!(read(&path).starts_with("-- "), "{} does not begin with a comment", path.display());
        assert!(console.contains(&format!("\"{name}\"")), "{name} is not used");
    }
    // Checks only that each file has a comment, because `build.rs` includes every SQL file of
    // these folders.
    // The comment of a function comes first in its body; if the body is an expression, the file
    // sets the function's description instead.
    for folder in ["sql/steps", "sql/functions", "sql/queue"] {
        for path in files(folder, "sql") {
            let text = read(&path);
            let is_described = text.starts_with("-- ")
                || [" as $$\n-- ", " as $f$\n-- ", "\ncomment on function "].iter().any(|start| text.contains(start));
            assert!(is_described, "{} does not begin with a comment", path.display());
            assert!(read(&path).is_ascii(), "{}: a database may have any encoding", path.display());
        }
    }
}

#[test]
fn files_are_small_rooms_with_telling_names() {
    const FORBIDDEN: [&str; 10] =
        ["util", "common", "helper", "core", "types", "manager", "service", "internal", "engine", "item"];
    for folder in [
        "src",
        "tests",
        "crates/embedded/src",
        "crates/cli/src",
        "crates/console",
        "crates/relay",
        "lab/tools/disk",
        "lab/tools/libpq",
        "lab/bench/src",
        "lab/bench/drivers/src",
        "lab/torture/src",
    ] {
        for path in files(folder, "rs") {
            let lines = read(&path).lines().count();
            assert!(lines <= 365, "{} has {lines} lines", path.display());
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
            let name = name.trim_end_matches('s');
            assert!(!FORBIDDEN.iter().any(|word| word.trim_end_matches('s') == name), "{}", path.display());
        }
    }
}

/// Returns the lines that end a test early, without comments and literals. Omits tests that are
/// only parts of other tests.
fn early_returns(code: &str) -> Vec<String> {
    const PART: &str = "#[ignore = \"a part in other tests\"]";
    let code = without_texts(&code.replace(PART, "#[part]"));
    let is_test = |block: &&str| ["#[test]", "#[tokio::test"].iter().any(|mark| block.contains(mark));
    let tests = code.split("\n}\n").filter(is_test).filter(|block| !block.contains("#[part]"));
    // More deeply indented lines are in closures, whose returns do not end the test.
    let of_the_test = |line: &&str| line.len() - line.trim_start().len() <= 8;
    let words = |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "return");
    let leaves = |line: &&str| words(line);
    tests.flat_map(str::lines).filter(of_the_test).filter(leaves).map(str::to_owned).collect()
}

/// A test is marked as ignored if the machine may lack its requirements. If it runs without them,
/// it panics.
#[test]
fn no_test_returns_early() {
    for folder in [
        "tests",
        "crates/cli/tests",
        "crates/console/tests",
        "crates/embedded/tests",
        "lab/tools/disk/tests",
        "lab/bench/tests",
        "crates/relay/tests",
        "lab/torture/tests",
        "lab/torture/cluster/tests",
        "docs/runner/tests",
        "examples/opentelemetry/tests",
        "examples/transactions/tests",
    ] {
        for path in files(folder, "rs") {
            assert_eq!(early_returns(&read(&path)), Vec::<String>::new(), "{}", path.display());
        }
    }
}

#[test]
fn early_returns_are_found() {
    let tests = "#[test]\nfn a() {\n    if absent() {\n        return;\n    }\n}\n\
                 #[tokio::test]\n#[ignore = \"needs b\"]\nasync fn b() {\n    let Some(b) = b() else { return };\n}\n\
                 #[test]\n#[ignore = \"a part in other tests\"]\nfn c() {\n    return;\n}\nfn d() {\n    return;\n}\n";
    assert_eq!(early_returns(tests), ["        return;", "    let Some(b) = b() else { return };"]);
    let test = |line: &str| early_returns(&format!("#[test]\nfn a() {{\n    {line}\n}}\n"));
    assert_eq!(test("let Ok(a) = var(\"A\") else { return };"), ["    let Ok(a) = var() else { return };"]);
    assert_eq!(test("if a == '\"' { return; } // it's \"a\""), ["    if a ==  { return; } "]);
    for line in [
        "let a = \"return\";",
        "let a = \"\\\"return\n    return\";",
        "let a = b'\"'; let b: &'static str = \"return\";",
        "let a = r#\"a \"return\" a\"#;",
        "a(); // return",
        "/* return */ a('\\'', \"return\");",
    ] {
        assert_eq!(test(line), Vec::<String>::new(), "{line}");
    }
}

/// The floor of every scan depends on this rule: see `sql/functions/clock.sql`. A future time that
/// a caller names is always above all floors.
#[test]
fn every_due_time_comes_from_the_clock_of_the_floors() {
    let mut drawn = 0;
    for path in files("sql/queue", "sql").into_iter().chain(files("sql/functions", "sql")) {
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
