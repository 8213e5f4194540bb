//! Reads the imports of each file in a crate.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use super::{files, read, root};

pub type Module = Vec<String>;

/// The path of a `use`, and whether the `use` re-exports it.
pub struct Import {
    pub path: Vec<String>,
    /// True if the import is a re-export.
    is_passed_on: bool,
}

/// Returns all modules that have a file in a folder of sources. The root is the empty path.
fn modules(folder: &str) -> BTreeMap<Module, PathBuf> {
    let module = |path: &PathBuf| {
        let inside = path.strip_prefix(root().join(folder)).expect("inside").with_extension("");
        let mut names: Module = inside.iter().map(|name| name.to_str().expect("a name").to_owned()).collect();
        if names.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
            names.pop();
        }
        names
    };
    files(folder, "rs").into_iter().map(|path| (module(&path), path)).collect()
}

/// Returns the code without comments, and without the test module at its end.
pub fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Returns the code without comments and literals, in the same lines.
pub fn without_texts(code: &str) -> String {
    let (mut bare, mut rest) = (String::new(), code);
    while let Some(first) = rest.chars().next() {
        let text = text(rest);
        let (part, after) = rest.split_at(text.unwrap_or(first.len_utf8()));
        bare.extend(part.chars().filter(|c| text.is_none() || *c == '\n'));
        rest = after;
    }
    bare
}

/// Returns the length of the comment or literal at the start of the code, if there is one.
fn text(code: &str) -> Option<usize> {
    let through = |from: usize, end: &str| code[from..].find(end).map_or(code.len(), |at| from + at + end.len());
    if code.starts_with("//") {
        return Some(code.find('\n').unwrap_or(code.len()));
    }
    if code.starts_with("/*") {
        return Some(through(2, "*/"));
    }
    if code.starts_with("'\\") {
        return Some(through(3, "'"));
    }
    if let Some(after) = code.strip_prefix('\'') {
        let length = after.chars().next()?.len_utf8();
        // Otherwise a lifetime follows.
        return after[length..].starts_with('\'').then_some(length + 2);
    }
    if let Some(raw) = code.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let end = format!("\"{}", &raw[..hashes]);
        return raw[hashes..].starts_with('"').then(|| through(2 + hashes, &end));
    }
    let inner = code.strip_prefix('"')?;
    let mut is_escaped = false;
    let end = inner.find(|c: char| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    Some(end.map_or(code.len(), |end| end + 2))
}

/// Returns a line without `pub` and its restriction.
pub fn without_visibility(line: &str) -> &str {
    let line = line.strip_prefix("pub").unwrap_or(line).trim_start();
    line.strip_prefix('(').and_then(|line| line.split_once(") ")).map_or(line, |(_, rest)| rest)
}

/// Returns every path in a tree such as `a::{b, c::{D, E as F}}`.
pub fn leaves(tree: &str) -> Vec<Vec<String>> {
    let names = |path: &str| -> Vec<String> {
        path.split("::").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
    };
    let Some((prefix, inner)) = tree.split_once('{') else { return vec![names(tree)] };
    let inner = inner.trim_end().strip_suffix('}').unwrap_or(inner);
    let mut depth = 0;
    let parts = inner.split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let parts = parts.filter(|part| !part.trim().is_empty());
    parts.flat_map(leaves).map(|leaf| [names(prefix), leaf].concat()).collect()
}

/// Returns the imports of a file. Also returns every path in its code that starts at the root, the
/// parent or the module itself.
pub fn imports(code: &str) -> Vec<Import> {
    let (mut imports, mut rest) = (Vec::new(), String::new());
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let word = line.trim_start();
        let is_passed_on = word.starts_with("pub");
        let after = word.split_once("use ").filter(|(before, _)| {
            before.is_empty() || is_passed_on && !before.contains("fn") && before.split_whitespace().count() == 1
        });
        let Some((_, first)) = after else {
            rest += line;
            rest.push('\n');
            continue;
        };
        let mut tree = first.to_owned();
        while !tree.contains(';') {
            tree += lines.next().unwrap_or(";");
        }
        let tree = tree.split(';').next().unwrap_or_default();
        imports.extend(leaves(tree).into_iter().map(|path| Import { path, is_passed_on }));
    }
    for (at, _) in rest.match_indices("::") {
        let start = rest[..at].rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |before| before + 1);
        if rest[..start].ends_with("::") {
            continue; // skips a name in the middle of a path, which the match of its first name covers
        }
        let end = rest[start..]
            .find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':')
            .map_or(rest.len(), |end| start + end);
        let path = rest[start..end].split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        imports.push(Import { path, is_passed_on: false });
    }
    imports
}

/// The modules of a crate, and the imports of each.
pub struct Tree {
    modules: BTreeMap<Module, PathBuf>,
    imports: BTreeMap<Module, Vec<Import>>,
}

impl Tree {
    pub fn read(folder: &str) -> Self {
        let modules = modules(folder);
        let imports = modules.iter().map(|(module, path)| (module.clone(), imports(&code(&read(path))))).collect();
        Self { modules, imports }
    }

    /// Returns the path from the root, or `None` for paths into other crates.
    fn absolute(&self, from: &Module, path: &[String]) -> Option<Module> {
        let mut base = from.clone();
        let mut names = path;
        match names.first()?.as_str() {
            "crate" => base.clear(),
            "self" | "super" => {}
            child if self.modules.contains_key(&[from.clone(), vec![child.to_owned()]].concat()) => {
                return Some([&base[..], names].concat());
            }
            _ => return None,
        }
        while let Some(first) = names.first().filter(|name| ["crate", "self", "super"].contains(&name.as_str())) {
            if first == "super" {
                base.pop();
            }
            names = &names[1..];
        }
        Some([&base[..], names].concat())
    }

    /// Returns the module that defines the path. Follows re-exports.
    fn home(&self, path: &[String], depth: u32) -> Module {
        let known = |length: &usize| self.modules.contains_key(&path[..*length]);
        let length = (0..=path.len()).rev().find(known).unwrap_or_default();
        let (module, rest) = (path[..length].to_vec(), &path[length..]);
        let Some(name) = rest.first().filter(|_| depth < 8) else { return module };
        let known_as = |import: &&Import| {
            let last = import.path.last().and_then(|last| last.split(" as ").last());
            import.is_passed_on && last == Some(name)
        };
        let from = self.imports.get(&module).into_iter().flatten().find(known_as).and_then(|import| {
            let mut path = self.absolute(&module, &import.path)?;
            if let Some(last) = path.last_mut() {
                *last = last.split(" as ").next().unwrap_or_default().trim().to_owned();
            }
            Some(path)
        });
        from.map_or(module, |from| self.home(&[&from[..], &rest[1..]].concat(), depth + 1))
    }

    /// Returns the files that each file imports. Omits tests and fuzzing code, which may import
    /// anything.
    pub fn needs(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let is_tested =
            |module: &Module| module.iter().all(|name| !["tests", "fuzz", "fuzzing"].contains(&name.as_str()));
        let mut needs = BTreeMap::new();
        for (module, imports) in self.imports.iter().filter(|(module, _)| is_tested(module) && !module.is_empty()) {
            let own = imports.iter().filter(|import| !import.is_passed_on);
            let homes = own.filter_map(|import| {
                let plain: Vec<String> =
                    import.path.iter().map(|name| name.split(" as ").next().unwrap_or_default().to_owned()).collect();
                Some(self.home(&self.absolute(module, &plain)?, 0))
            });
            needs.insert(module.clone(), homes.filter(|home| home != module && is_tested(home)).collect());
        }
        needs
    }
}
