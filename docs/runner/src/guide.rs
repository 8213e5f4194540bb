//! Runs the blocks that are not Rust.

use std::{
    cell::{Cell, RefCell},
    error::Error,
    fmt::Write,
    process::{Command, Output},
};

use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::table;

pub type Outcome = Result<(), Box<dyn Error>>;

/// Commands that this program skips. `.ci/readme` runs the first two. No check runs the others as
/// they stand: they install the program, begin a new project, or run benchmarks.
const THE_READERS: [&str; 10] = [
    "cargo run --release -- demo",
    "cargo test --workspace",
    "cargo install --locked --git https://github.com/trunkline/trunkline trunkline-cli",
    "cargo new hello && cd hello",
    "cargo add --git https://github.com/trunkline/trunkline trunkline",
    "cargo add tokio --features macros,rt-multi-thread",
    "cargo add serde --features derive",
    "cargo run",
    "cargo run --release --manifest-path lab/Cargo.toml -p trunkline-bench -- run --quick",
    "cargo run --release --manifest-path lab/Cargo.toml -p trunkline-bench -- report",
];

/// The reader of a chapter, at a line, with a session of psql.
pub struct Guide {
    sql: tokio_postgres::Client,
    chapter: RefCell<&'static str>,
    ran: Cell<usize>,
}

impl Guide {
    pub async fn new(url: &str) -> Result<Self, Box<dyn Error>> {
        let (sql, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        Ok(Self { sql, chapter: RefCell::new(""), ran: Cell::new(0) })
    }

    pub fn begins(&self, chapter: &'static str) {
        self.chapter.replace(chapter);
    }

    /// Prints the chapter and the line, so that a panic or an error has a place.
    pub fn at(&self, line: usize) {
        println!("{}:{line}", self.chapter.borrow());
        self.ran.set(self.ran.get() + 1);
    }

    pub fn ends(&self) {
        println!("{} blocks ran", self.ran.get());
    }

    /// Runs a Rust block on a thread of its own, because the block brings its own runtime.
    pub async fn program(&self, line: usize, main: fn() -> Result<(), String>) -> Outcome {
        self.at(line);
        Ok(tokio::task::spawn_blocking(main).await??)
    }

    /// Runs the statements of a block. `answer` is what psql shows for the last one.
    pub async fn sql(&self, line: usize, text: &str, answer: Option<&str>) -> Outcome {
        self.at(line);
        let code = text.lines().map(|line| line.split("--").next().unwrap_or(line).trim_end());
        let code = code.collect::<Vec<_>>().join("\n");
        let mut shown = String::new();
        for statement in code.split(";\n").filter(|statement| !statement.trim().is_empty()) {
            let said = self.sql.simple_query(statement).await.map_err(|error| format!("{statement}: {error:?}"))?;
            let rows = said.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row),
                _ => None,
            });
            shown = table::of(rows);
        }
        match answer {
            Some(answer) => same(answer, &shown),
            None => Ok(()),
        }
    }

    /// Runs the commands behind `$ `, and compares what each prints with the lines below it.
    pub async fn console(&self, line: usize, text: &str) -> Outcome {
        self.at(line);
        for exchange in format!("\n{text}").split("\n$ ").skip(1) {
            let mut lines = exchange.lines();
            let mut command = String::new();
            for line in lines.by_ref() {
                writeln!(command, "{line}")?;
                if !line.ends_with('\\') {
                    break;
                }
            }
            let output = shell(command.clone()).await?;
            let printed = String::from_utf8(output.stdout)?;
            let complaint = String::from_utf8_lossy(&output.stderr);
            if !output.status.success() {
                return Err(format!("{command}: {}: {complaint}", output.status).into());
            }
            same(&lines.collect::<Vec<_>>().join("\n"), &printed).map_err(|error| format!("{command}{error}"))?;
        }
        Ok(())
    }

    /// Runs a block of shell lines.
    pub async fn script(&self, line: usize, text: &str) -> Outcome {
        self.at(line);
        let of_the_reader = |line: &&str| THE_READERS.contains(&line.split("  #").next().unwrap_or(line).trim());
        let lines: Vec<&str> = text.lines().filter(|line| !of_the_reader(line)).collect();
        if lines.iter().any(|line| line.starts_with("cargo")) {
            return Err(format!("list this in THE_READERS, or make it run: {lines:?}").into());
        }
        let output = shell(lines.join("\n")).await?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into()),
        }
    }
}

async fn shell(text: String) -> Result<Output, Box<dyn Error>> {
    let run = move || Command::new("bash").args(["-euo", "pipefail", "-c", &text]).output();
    Ok(tokio::task::spawn_blocking(run).await??)
}

/// Returns whether a text is what the guide shows; `…` stands for anything within a line.
fn same(shown: &str, printed: &str) -> Outcome {
    let lines = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    let (wanted, got) = (lines(shown.trim_end()), lines(printed.trim_end()));
    let fits = |(wanted, got): (&String, &String)| {
        let mut rest = got.as_str();
        let mut parts = wanted.split('…').peekable();
        let first = parts.next().unwrap_or("");
        let Some(behind) = rest.strip_prefix(first) else { return false };
        rest = behind;
        let mut open = false;
        while let Some(part) = parts.next() {
            open = true;
            match parts.peek() {
                None if rest.ends_with(part) => return true,
                None => return false,
                Some(_) => match rest.split_once(part) {
                    Some((_, behind)) => rest = behind,
                    None => return false,
                },
            }
        }
        open || rest.is_empty()
    };
    match wanted.len() == got.len() && wanted.iter().zip(&got).all(fits) {
        true => Ok(()),
        false => Err(format!("the guide shows\n{}\nand it is\n{}", wanted.join("\n"), got.join("\n")).into()),
    }
}
