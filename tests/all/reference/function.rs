//! A file of `sql/functions`, as the reference presents it.

use std::{collections::BTreeSet, fs};

use crate::house::files;

pub struct Function {
    pub name: String,
    /// The description of the function, one paragraph or list item per line.
    pub comment: String,
    /// Statements for psql. Empty if the function is not for users.
    pub example: String,
    pub signature: String,
}

impl Function {
    fn of(text: &str) -> Self {
        let (comment, rest): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("--"));
        let comment: Vec<&str> = comment.iter().map(|line| line.trim_start_matches('-')).collect();
        let mut parts = comment.split(|line| line.trim() == "Example:");
        let comment: Vec<&str> = parts.next().unwrap_or_default().iter().map(|line| line.trim()).collect();
        let example: Vec<&str> = parts.next().unwrap_or_default().iter().map(|line| indented(line)).collect();
        let rest = rest.join("\n");
        let create = rest.trim_start().strip_prefix("create or replace function ").expect("a function is created");
        let signature = create.split("\n    language ").next().expect("a language follows");
        let name = signature.strip_prefix("trunkline.").and_then(|rest| rest.split('(').next()).expect("a name");
        Self {
            name: name.to_owned(),
            comment: paragraphs(&comment, signature),
            example: example.join("\n"),
            signature: signature.replace("\n    returns", " returns"),
        }
    }
}

/// Returns a line of an example, which is indented by five blanks in the comment.
fn indented(line: &str) -> &str {
    line.strip_prefix("     ").unwrap_or_else(|| panic!("an example is indented by four more blanks: {line:?}"))
}

/// Joins the lines of each paragraph. An empty line separates two paragraphs.
fn paragraphs(lines: &[&str], signature: &str) -> String {
    let names: BTreeSet<&str> = signature.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let paragraphs: Vec<String> =
        lines.split(|line| line.is_empty()).map(|lines| itemized(&lines.join(" "), &names)).collect();
    paragraphs.join("\n\n").trim_end().to_owned()
}

/// Makes a list item of each sentence that begins with names of the signature and a colon. The item
/// contains the sentences up to the next one.
fn itemized(paragraph: &str, names: &BTreeSet<&str>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for sentence in paragraph.split_inclusive(". ") {
        let item = sentence.split_once(": ").filter(|(head, _)| head.split(", ").all(|name| names.contains(name)));
        if let Some((head, text)) = item {
            parts.push(format!("- `{}`: {text}", head.replace(", ", "`, `")));
        } else if let Some(part) = parts.last_mut() {
            part.push_str(sentence);
        } else {
            parts.push(sentence.to_owned());
        }
    }
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).collect();
    match parts.split_first() {
        Some((first, items)) if !first.starts_with("- ") && !items.is_empty() => {
            format!("{first}\n\n{}", items.join("\n"))
        }
        _ => parts.join("\n"),
    }
}

/// Returns the names of a folder's SQL files, in order, with their contents.
pub fn texts(folder: &str) -> Vec<(String, String)> {
    let files = files(folder, "sql");
    let name = |file: &std::path::Path| file.file_stem().expect("a name").to_string_lossy().into_owned();
    files.iter().map(|file| (name(file), fs::read_to_string(file).expect("readable"))).collect()
}

/// Returns all functions, with overloads next to each other: `enqueue.sql` is sorted before
/// `enqueue_text.sql`.
pub fn functions() -> Vec<Function> {
    texts("sql/functions").iter().map(|(_, text)| Function::of(text)).collect()
}
