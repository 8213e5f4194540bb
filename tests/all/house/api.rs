//! The public API of the library as a text: `house/api.txt`. The text shows every change of the
//! API. `TRUNKLINE_BLESS=1` writes the file. The text is generated from the formatted sources,
//! without a compiler.

use std::{collections::BTreeMap, env, fmt::Write, fs, path::Path};

use super::{
    files, read, root,
    tree::{code, leaves},
};

const PAGE: &str = "tests/all/house/api.txt";
/// The files whose `pub use` makes names public, and the path under which users find the names.
const DOORS: [(&str, &str); 3] = [
    ("src/lib.rs", "trunkline"),
    ("src/postgres/mod.rs", "trunkline::postgres"),
    ("src/shards/mod.rs", "trunkline::shards"),
];
/// The maximum number of public names. It may only decrease.
const NAMES: usize = 75;
/// The maximum number of public methods. It may only decrease.
const METHODS: usize = 287;

/// A public name: the path for users, and the folder or file in which it is defined.
struct Public {
    path: String,
    name: String,
    home: String,
}

/// Returns all names that the files in `DOORS` re-export.
fn public() -> Vec<Public> {
    let mut all = Vec::new();
    for (door, path) in DOORS {
        let text = code(&read(&root().join(door)));
        let folder = door.strip_prefix("src/").and_then(|door| door.rsplit_once('/')).map_or("", |(folder, _)| folder);
        for tree in text.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next()) {
            for leaf in leaves(tree).into_iter().filter(|leaf| leaf[0] == "self") {
                let name = leaf[leaf.len() - 1].clone();
                let home = ["src", folder].into_iter().chain(leaf[1..leaf.len() - 1].iter().map(String::as_str));
                let home = home.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
                all.push(Public { path: format!("{path}::{name}"), name, home });
            }
        }
    }
    all
}

/// Returns the first lines of an item, up to its body, joined into one line.
fn signature(lines: &[&str]) -> String {
    let mut whole = String::new();
    for line in lines {
        whole = format!("{whole} {}", line.trim());
        if line.ends_with(['{', ';']) || line.ends_with("{}") {
            break;
        }
    }
    let whole =
        whole.trim().trim_end_matches([' ', '{', '}', ';']).replace("( ", "(").replace(", )", ")").replace(",)", ")");
    whole.strip_suffix(" where").unwrap_or(&whole).to_owned()
}

/// Returns the name of an `impl` block's type, or nothing for the `impl` of a trait.
fn type_of(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let (mut depth, mut from) = (0, 0);
    if rest.starts_with('<') {
        for (at, c) in rest.char_indices() {
            depth += i32::from(c == '<') - i32::from(c == '>' && !rest[..at].ends_with('-'));
            if depth == 0 {
                from = at + 1;
                break;
            }
        }
    }
    let rest = rest[from..].trim_start();
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (!line.contains(" for ")).then_some(name)
}

/// A definition in a file: its first line, and the lines of its public parts.
struct Item {
    line: String,
    parts: Vec<String>,
}

fn defined(text: &str, name: &str) -> Option<Item> {
    let lines: Vec<&str> = text.lines().collect();
    let kinds = ["struct", "enum", "trait", "type", "const", "fn", "async fn"];
    let starts = |line: &str, kind: &str| {
        let rest =
            line.strip_prefix("pub ").and_then(|rest| rest.strip_prefix(kind)).and_then(|rest| rest.strip_prefix(' '));
        rest.and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let (at, kind) =
        lines.iter().enumerate().find_map(|(at, line)| Some((at, *kinds.iter().find(|kind| starts(line, kind))?)))?;
    let mut parts = Vec::new();
    if lines[at].ends_with('{') && kind != "fn" && kind != "async fn" {
        for (from, line) in lines.iter().enumerate().skip(at + 1).take_while(|(_, line)| **line != "}") {
            let Some(part) = line.strip_prefix("    ").filter(|part| !part.starts_with([' ', '/', '#', '}', ')']))
            else {
                continue;
            };
            let is_part = match kind {
                "struct" => part.starts_with("pub ") && !part.starts_with("pub("),
                "enum" => part.starts_with(char::is_uppercase),
                _ => part.starts_with("fn ") || part.starts_with("async fn ") || part.starts_with("type "),
            };
            if is_part && !is_hidden(&lines[..from]) {
                let text = if kind == "trait" {
                    signature(&lines[from..])
                } else {
                    part.trim_end_matches([',', ' ', '{']).to_owned()
                };
                parts.push(text);
            }
        }
    }
    let line = match kind {
        "type" | "const" => lines[at].trim_end_matches(';').to_owned(),
        _ => signature(&lines[at..])
            .split_once('(')
            .filter(|_| kind == "struct")
            .map_or_else(|| signature(&lines[at..]), |(head, _)| head.to_owned()),
    };
    Some(Item { line, parts })
}

/// Returns true if an attribute hides the definition after these lines.
fn is_hidden(before: &[&str]) -> bool {
    let mut attributes = before.iter().rev().take_while(|line| line.trim_start().starts_with('#'));
    attributes.any(|line| line.contains("#[doc(hidden)]"))
}

/// Returns the public methods in the `impl` blocks of a file, with the names of their types.
fn methods(text: &str) -> Vec<(String, String)> {
    let (lines, mut found, mut of) = (text.lines().collect::<Vec<_>>(), Vec::new(), None);
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("impl") {
            let whole = signature(&lines[at..]);
            of = type_of(&whole);
            of = of.map(|name| {
                lines[at..]
                    .iter()
                    .take(4)
                    .find_map(|line| line.find(name).map(|from| &line[from..from + name.len()]))
                    .unwrap_or("")
            });
        } else if *line == "}" {
            of = None;
        }
        let starts = ["    pub fn ", "    pub async fn ", "    pub const fn "];
        let is_public = starts.iter().any(|start| line.starts_with(start)) && !is_hidden(&lines[..at]);
        if let Some(of) = of.filter(|_| is_public) {
            found.push((of.to_owned(), signature(&lines[at..])));
        }
    }
    found
}

/// Returns the page, the number of its names, and the number of its methods.
fn page() -> (String, usize, usize) {
    let (all, mut sections) = (public(), BTreeMap::<String, Item>::new());
    let texts: Vec<(String, String)> = files("src", "rs")
        .iter()
        // Omits the types of `compat`, because they have the names and the methods of
        // `tokio_postgres`.
        .map(|path| (path, path.strip_prefix(root()).expect("inside")))
        .filter(|(_, file)| {
            !file.components().any(|part| ["tests", "compat"].iter().any(|name| part.as_os_str() == *name))
        })
        .map(|(path, file)| (file.display().to_string(), code(&read(path))))
        .collect();
    let is_at = |file: &str, home: &str| {
        let stem = file.trim_end_matches(".rs").trim_end_matches("/mod");
        stem == home || Path::new(file).starts_with(home)
    };
    for public in &all {
        let mut here = texts.iter().filter(|(file, _)| is_at(file, &public.home));
        if let Some(item) = here.find_map(|(_, text)| defined(text, &public.name)) {
            sections.insert(public.path.clone(), item);
        } else if let Some((_, text)) =
            texts.iter().find(|(file, _)| is_at(file, &format!("{}/{}", public.home, public.name)))
        {
            // Lists the functions and constants of a module.
            let lines: Vec<&str> = text.lines().collect();
            let is_item =
                |line: &str| ["pub fn ", "pub async fn ", "pub const "].iter().any(|start| line.starts_with(start));
            let parts = lines.iter().enumerate().filter(|(_, line)| is_item(line));
            let parts = parts.map(|(at, _)| signature(&lines[at..]).trim_start_matches("pub ").to_owned()).collect();
            sections.insert(public.path.clone(), Item { line: format!("pub mod {}", public.name), parts });
        } else {
            panic!("{} is defined in no file below {}", public.path, public.home);
        }
    }
    let mut count = 0;
    for (file, text) in &texts {
        let is_of_shards = file.starts_with("src/shards/");
        for (of, signature) in methods(text) {
            let known =
                |public: &&Public| public.name == of && public.path.starts_with("trunkline::shards::") == is_of_shards;
            // Finds the type by its name, because no private type has the name of a public type:
            // see `homonyms`.
            let Some(public) = all.iter().find(known).or_else(|| all.iter().find(|public| public.name == of)) else {
                continue;
            };
            count += 1;
            sections.get_mut(&public.path).expect("a section").parts.push(signature);
        }
    }
    let mut page =
        String::from("The public API of the library: names, fields, variants and methods. A test compares it.\n");
    for (path, Item { line, parts }) in &sections {
        let _ = write!(page, "\n{path}: {}\n", line.trim_start_matches("pub ")); // writing to a string cannot fail
        for part in parts {
            let _ = writeln!(page, "    {}", part.trim_start_matches("pub "));
        }
    }
    (page, sections.len(), count)
}

#[test]
fn public_api_is_what_its_page_says() {
    let (page, names, methods) = page();
    if env::var_os("TRUNKLINE_BLESS").is_some() {
        fs::write(root().join(PAGE), &page).expect("written");
    }
    let known = read(&root().join(PAGE));
    let changed: Vec<_> = known.lines().filter(|line| !page.contains(line)).map(|line| format!("- {line}")).collect();
    let new: Vec<_> = page.lines().filter(|line| !known.contains(line)).map(|line| format!("+ {line}")).collect();
    assert!(
        known == page,
        "the public API changed; if it should, TRUNKLINE_BLESS=1 writes {PAGE}: {changed:#?} {new:#?}"
    );
    assert!(names <= NAMES && methods <= METHODS, "{names} names and {methods} methods are public");
}
