//! Checks that a name stands for one thing: counts the type names that a crate defines more than
//! once. The counts in `HOMONYMS` may only decrease.

use std::collections::BTreeMap;

use super::{
    files, read, root,
    tree::{code, without_visibility},
};

/// The number of types in a crate whose names are not unique, by folder.
const HOMONYMS: [(&str, usize); 8] = [
    ("src", 0),
    ("crates/cli/src", 0),
    ("crates/console/src", 0),
    ("crates/relay/src", 0),
    ("crates/embedded/src", 0),
    ("crates/python/src", 0),
    ("lab/bench/src", 0),
    ("lab/torture/src", 0),
];

/// Returns the names that several types in a folder of sources share, with the files of these
/// types. Two cases are intended. The public types of shards have the names of their counterparts
/// for one server, and the types of `compat` have the names in `tokio_postgres`.
fn homonyms(folder: &str) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files(folder, "rs").iter().filter(|path| !path.components().any(|part| part.as_os_str() == "tests")) {
        let file = path.strip_prefix(root()).expect("inside").display().to_string();
        for line in code(&read(path)).lines() {
            let line = without_visibility(line);
            let Some(rest) = ["struct ", "enum ", "trait "].iter().find_map(|kind| line.strip_prefix(kind)) else {
                continue;
            };
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            // Omits `Args` and `Verb`, because each command of the program has its own.
            if folder == "crates/cli/src" && ["Args", "Verb"].contains(&name.as_str()) {
                continue;
            }
            if file.starts_with("src/postgres/compat/") && is_of_tokio_postgres(&name) {
                continue;
            }
            if !(file.starts_with("src/shards/") && rest.len() > name.len() && is_of_one_server(&name)) {
                all.entry(name).or_default().push(file.clone());
            }
        }
    }
    all.retain(|_, files| files.len() > 1);
    all
}

fn is_of_one_server(name: &str) -> bool {
    ["Queue", "Consumer", "Worker", "Messages", "Stats", "State"].contains(&name)
}

fn is_of_tokio_postgres(name: &str) -> bool {
    [
        "Column",
        "Connection",
        "Error",
        "GenericClient",
        "Notification",
        "Portal",
        "Row",
        "RowStream",
        "Statement",
        "Transaction",
    ]
    .contains(&name)
}

#[test]
fn one_name_means_one_thing() {
    let mut other = Vec::new();
    for (folder, known) in HOMONYMS {
        let found = homonyms(folder);
        if found.len() != known {
            other.push(format!("{folder} has {}, of {known} that are known: {found:#?}", found.len()));
        }
    }
    assert!(other.is_empty(), "rename a type, or lower a number in tests/all/house/homonyms.rs: {other:#?}");
}
