//! Generates a function for each chapter with its blocks in order, so that a block can use names
//! of earlier blocks.

use std::{env, fmt::Write, fs, path::Path};

/// A fenced block.
struct Block {
    language: String,
    /// The line number of its first line, counted from 1.
    line: usize,
    text: String,
}

fn main() {
    // At run time, because a target folder for several checkouts may keep the script of another.
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let summary = read(&root.join("docs/SUMMARY.md"));
    let listed = summary.lines().filter_map(|line| line.split_once("](")?.1.strip_suffix(".md)"));
    let mut chapters = vec!["README.md".to_owned()];
    // The references are generated from the functions and from `--help`. The tests that generate
    // them also run them.
    let written = |name: &&str| !["sql", "command-line"].contains(name);
    chapters.extend(listed.filter(written).map(|name| format!("docs/{name}.md")));

    let mut code = String::new();
    let mut calls = String::new();
    for (number, chapter) in chapters.iter().enumerate() {
        let blocks = blocks(chapter, &read(&root.join(chapter)));
        write!(code, "async fn chapter_{number}(guide: &Guide) -> Outcome {{ guide.begins({chapter:?});")
            .expect("text");
        for (at, block) in blocks.iter().enumerate() {
            let answer = blocks.get(at + 1).filter(|next| next.language == "text" && next.line == block_end(block) + 3);
            code.push_str(&step(chapter, block, answer));
        }
        code.push_str("Ok(()) }\n");
        writeln!(calls, "chapter_{number}(guide).await?;").expect("text");
    }
    write!(code, "pub async fn all(guide: &Guide) -> Outcome {{ {calls} Ok(()) }}").expect("text");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("chapters.rs"), code).expect("it can be written");
}

fn read(path: &Path) -> String {
    println!("cargo::rerun-if-changed={}", path.display());
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn block_end(block: &Block) -> usize {
    block.line + block.text.lines().count()
}

fn blocks(chapter: &str, text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                assert!(!language.is_empty(), "{chapter}:{}: a block needs a language", number + 1);
                open = Some(Block { language: language.to_owned(), line: number + 2, text: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => writeln!(block.text, "{line}").expect("text"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{chapter}: the last block does not end");
    blocks
}

/// Returns the code that runs a block.
fn step(chapter: &str, block: &Block, answer: Option<&Block>) -> String {
    let Block { language, line, text } = block;
    match language.as_str() {
        "rust" | "rust,no_run" if text.contains("fn main()") => format!(
            "{{ mod program {{ {text} pub fn run() -> Result<(), String> {{ main().map_err(|error| error.to_string()) }} }}
               guide.program({line}, program::run).await?; }}"
        ),
        "rust" => format!("guide.at({line});\n{text}\n"),
        "sql" => format!("guide.sql({line}, {text:?}, {:?}).await?;", answer.map(|answer| &answer.text)),
        "console" => format!("guide.console({line}, {text:?}).await?;"),
        "sh" => format!("guide.script({line}, {text:?}).await?;"),
        // Project settings, drawings and answers are not run.
        "toml" | "text" => String::new(),
        other => panic!("{chapter}:{line}: no block may be `{other}`: use rust, sql, console, sh, toml or text"),
    }
}
