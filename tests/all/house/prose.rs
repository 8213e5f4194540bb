//! Plain English in comments, documents and pages.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{read, root};

/// A word, and what to write instead.
const WORDS: [(&str, &str); 11] = [
    ("whoever", "name the actor: the caller, the worker, a session"),
    ("whomever", "name the actor"),
    ("somebody", "name the actor"),
    ("nobody", "name the actor: no caller, no worker"),
    ("anew", "again"),
    ("lest", "so that … does not"),
    ("reckon", "count, compute"),
    ("for ever", "without an end, indefinitely"),
    ("so many", "`n`, or the number's name"),
    ("so much", "the amount's name"),
    ("so long", "the time's name"),
];

/// A word that does not suit software as a subject, and what to write instead. Code may use it as a
/// name.
const SOFTWARE: [(&str, &str); 3] =
    [("tells", "reports, shows, passes"), ("hears", "receives, is notified"), ("believes", "assumes, has recorded")];

/// The folders with comments.
const FOLDERS: [&str; 6] = ["src", "sql", "tests", "crates", "lab", "docs"];

/// Returns the sources and pages below a folder, except build output.
fn pages(folder: &str) -> Vec<PathBuf> {
    const ENDINGS: [&str; 7] = ["rs", "sql", "py", "md", "html", "go", "mjs"];
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let is_crate = folder.join("Cargo.toml").exists();
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("readable").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_made = is_crate && name == "target" || ["node_modules", "results"].contains(&name);
            if path.is_dir() && !is_made {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known)) {
                found.push(path);
            }
        }
    }
    found.retain(|path| !path.ends_with("house/prose.rs"));
    found.sort();
    found
}

/// Returns true if a text contains a word as a whole word, ignoring case. "So many … that" and "so
/// long as" are not numbers, and a word in quotes is a name, such as the user `nobody`.
fn has(line: &str, word: &str) -> bool {
    let line = line.to_lowercase();
    let is_edge = |at: Option<char>| at.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        let is_number = !word.starts_with("so ") || !(after.contains(" that") || after.starts_with(" as"));
        let is_name = before.ends_with(['"', '`', '\'']) && after.starts_with(['"', '`', '\'']);
        !is_name && is_edge(before.chars().next_back()) && is_edge(after.chars().next()) && is_number
    })
}

/// Returns the comment of a line of code, or a line of a document. A docstring is not a comment.
fn comment<'a>(path: &Path, line: &'a str) -> Option<&'a str> {
    let mark = match path.extension()?.to_str()? {
        "md" | "html" => return Some(line),
        "sql" => "--",
        "py" => "#",
        _ => "//",
    };
    line.split_once(mark).map(|(_, comment)| comment)
}

/// Fails, with a list of the lines, if `found` returns any line for a folder.
fn none(found: impl Fn(&str) -> Vec<String>) {
    let found: Vec<String> = FOLDERS.iter().flat_map(|folder| found(folder)).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn vague_words_are_not_used() {
    none(|folder| {
        let mut found = Vec::new();
        for path in pages(folder) {
            for (number, line) in (1..).zip(read(&path).lines()) {
                let comment = comment(&path, line).unwrap_or_default();
                let vague = WORDS.iter().find(|(word, _)| has(line, word));
                if let Some((word, instead)) = vague.or_else(|| SOFTWARE.iter().find(|(word, _)| has(comment, word))) {
                    found.push(format!("{}:{number}: {word:?}; write: {instead}", path.display()));
                }
            }
        }
        found
    });
}

#[test]
fn comments_have_a_hundred_columns() {
    none(|folder| {
        let mut found = Vec::new();
        for path in pages(folder).iter().filter(|path| path.extension().is_some_and(|ending| ending == "rs")) {
            for (number, line) in (1..).zip(read(path).lines()) {
                if line.trim_start().starts_with("//") && line.chars().count() > 100 && !line.contains("://") {
                    found.push(format!("{}:{number}", path.display()));
                }
            }
        }
        found
    });
}

#[test]
fn documents_have_160_columns() {
    let documents = pages("docs").into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let roots = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name));
    for path in documents.chain(roots) {
        // Omits these two files, which tests generate.
        if path.ends_with("docs/sql.md") || path.ends_with("docs/command-line.md") {
            continue;
        }
        let text = read(&path);
        let mut is_code = false;
        for (number, line) in (1..).zip(text.lines()) {
            is_code ^= line.trim_start().starts_with("```");
            let is_whole =
                line.trim_start().starts_with(['|', '!']) || line.contains("](http") || line.contains("<!--");
            assert!(is_code || is_whole || line.chars().count() <= 160, "{}:{number}", path.display());
        }
    }
}

/// The marks at the beginning of a documentation comment: for an item, a module, a SQL file, and a
/// Python definition.
const DOCS: [&str; 4] = ["/// ", "//! ", "-- ", "\"\"\""];

#[test]
fn doc_comments_begin_with_a_verb_or_a_noun() {
    const FUNCTION: [&str; 24] = [
        "of", "whether", "what", "where", "as", "until", "those", "who", "if", "when", "for", "with", "by", "in", "on",
        "from", "to", "how", "which", "and", "but", "it", "they", "there",
    ];
    none(|folder| {
        let mut found = Vec::new();
        for path in pages(folder) {
            let text = read(&path);
            let lines: Vec<_> = text.lines().map(str::trim_start).collect();
            for (at, line) in lines.iter().enumerate() {
                let Some(mark) = DOCS.into_iter().find(|mark| line.starts_with(mark)) else { continue };
                let is_doc = match mark {
                    "-- " => at == 0 && path.extension().is_some_and(|ending| ending == "sql"),
                    "\"\"\"" => path.extension().is_some_and(|ending| ending == "py"),
                    _ => at == 0 || !lines[at - 1].starts_with(mark.trim_end()),
                };
                let word: String = line[mark.len()..].chars().take_while(|c| c.is_alphabetic()).collect();
                if is_doc && FUNCTION.contains(&word.to_lowercase().as_str()) {
                    found.push(format!("{}:{}: {line}", path.display(), at + 1));
                }
            }
        }
        found
    });
}

#[test]
fn words_are_found_as_words() {
    assert!(
        has("// Whoever asks", "whoever") && has("at most so many.", "so many") && has("again, for ever", "for ever")
    );
    assert!(
        !has("fastest, latest", "lest")
            && !has("so many that it fails", "so many")
            && !has("so long as it runs", "so long")
    );
}
