//! Tests the rules for imports between files. `src/` has six layers, the modules of the queue are
//! also ordered, and no two files of a crate import each other.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    read, root,
    tree::{Module, Tree, code, imports},
};

/// The layers from the bottom up. A file may import from its own layer and from lower layers.
const STOREYS: [&str; 6] = ["error", "postgres", "queue", "schedule", "worker", "shards"];

/// The folders of sources, each with its remaining import cycles. Remove a cycle from this list
/// once it is gone, and never add one.
const SOURCES: [(&str, &[&str]); 16] = [
    ("src", &[]),
    ("crates/cli/src", &[]),
    ("crates/console/src", &[]),
    ("crates/relay/src", &[]),
    ("crates/embedded/src", &[]),
    ("crates/python/src", &[]),
    ("lab/bench/src", &[]),
    ("lab/bench/contender/src", &[]),
    ("lab/bench/layers/src", &[]),
    ("lab/bench/drivers/src", &[]),
    ("lab/torture/src", &[]),
    ("lab/torture/cluster/src", &[]),
    ("lab/tools/disk/src", &[]),
    ("lab/tools/disk/preload/src", &[]),
    ("lab/tools/programs/src", &[]),
    ("docs/runner/src", &[]),
];

fn shown(module: &Module) -> String {
    if module.is_empty() { "lib".to_owned() } else { module.join("/") }
}

/// Returns the modules that a module declares, from the bottom up. The root declares the layers.
fn listed(module: &[String]) -> Vec<String> {
    let folder = root().join("src").join(module.join("/"));
    let paths = [folder.join("mod.rs"), folder.with_extension("rs")];
    let text = paths.iter().find(|path| path.exists()).map(|path| read(path)).unwrap_or_default();
    let name = |line: &str| Some(line.split_once("mod ")?.1.strip_suffix(';')?.to_owned());
    text.lines().filter(|line| !line.starts_with("//")).filter_map(name).collect()
}

/// Returns the module at which two paths diverge, and the position of each path in its list.
fn parted(from: &Module, to: &Module) -> Option<(Module, usize, usize)> {
    let common = from.iter().zip(to).take_while(|(from, to)| from == to).count();
    let list = listed(&from[..common]);
    let place = |module: &Module| list.iter().position(|name| Some(name) == module.get(common));
    Some((from[..common].to_vec(), place(from)?, place(to)?))
}

#[test]
fn no_storey_names_one_above_it() {
    let storey = |module: &Module| module.first().and_then(|first| STOREYS.iter().position(|name| name == first));
    let mut seen = 0;
    for (from, needs) in Tree::read("src").needs() {
        let own = storey(&from).unwrap_or_else(|| panic!("{} is on no storey", shown(&from)));
        for to in needs {
            let (from_name, to_name) = (shown(&from), shown(&to));
            let other = storey(&to).unwrap_or_else(|| panic!("{from_name} names something through {to_name}"));
            assert!(other <= own, "{from_name} names {to_name}, which is above it");
            seen += 1;
        }
    }
    assert!(seen > 300, "only {seen} imports were found");
}

/// Checks the modules of every layer, and the modules of the queue at every depth.
#[test]
fn modules_import_only_what_their_list_names_above_them() {
    let mut seen = BTreeMap::new();
    for (from, needs) in Tree::read("src").needs() {
        for to in needs {
            let Some((list, own, other)) = parted(&from, &to) else { continue };
            if list.len() == 1 || list.first().is_some_and(|storey| storey == "queue") {
                let (from, to) = (shown(&from), shown(&to));
                assert!(other <= own, "{from} names {to}, which comes later in the list of {}", shown(&list));
                *seen.entry(shown(&list)).or_insert(0) += 1;
            }
        }
    }
    let of_queue = seen.keys().filter(|list| list.starts_with("queue")).count();
    assert!(seen["queue"] > 100 && of_queue > 5, "only these were found: {seen:?}");
}

/// Returns the import cycles, each with its files in order. A parent may import its children, even
/// if its children import the parent.
fn circles(folder: &str) -> Vec<String> {
    let needs = Tree::read(folder).needs();
    let is_parent = |from: &Module, to: &Module| folder != "src" && to.starts_with(from);
    let reached = |from: &Module| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(module) = open.pop() {
            let next = needs.get(module).into_iter().flatten();
            open.extend(next.filter(|to| !is_parent(module, to) && reached.insert((*to).clone())));
        }
        reached
    };
    let reached: BTreeMap<&Module, BTreeSet<Module>> = needs.keys().map(|module| (module, reached(module))).collect();
    let circle = |(module, all): (&&Module, &BTreeSet<Module>)| {
        let members = all.iter().filter(|other| reached.get(other).is_some_and(|back| back.contains(*module)));
        let names: Vec<String> = members.map(shown).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    reached.iter().filter_map(circle).collect::<BTreeSet<String>>().into_iter().collect()
}

#[test]
fn no_two_files_need_each_other() {
    let left: Vec<_> = SOURCES.iter().map(|(folder, known)| (*folder, circles(folder), *known)).collect();
    let other: Vec<_> = left.iter().filter(|(_, found, known)| found != known).collect();
    assert!(other.is_empty(), "folder, what needs each other there, what is known to: {other:#?}");
}

#[test]
fn imports_are_found_however_they_are_written() {
    let text = "use crate::{\n    db::{Db, Purpose as stats},\n    error::Result,\n};\npub(crate) use self::wait::Pace;\nfn f() { crate::floor::Time::now() } // crate::no\n";
    let found: Vec<String> = imports(&code(text)).iter().map(|import| import.path.join("::")).collect();
    assert_eq!(
        found,
        [
            "crate::db::Db",
            "crate::db::Purpose as stats",
            "crate::error::Result",
            "self::wait::Pace",
            "crate::floor::Time::now"
        ]
    );
}
