//! Builds and starts the program that compares ways of driving Postgres. All ways run in one
//! process, and the program prints its own tables.

use std::{ffi::OsString, process::Command};

use trunkline_programs::named_by_environment;

use crate::{
    Choice, Failure,
    choose::matches,
    contenders::{Contender, Language},
    prepare::prepare,
    tree::{commit, unchanged},
};

/// The name of this program in the list of rows.
pub const NAME: &str = "drivers";

/// Returns true if the patterns select this program.
pub fn is_chosen(choice: &Choice) -> bool {
    choice.patterns.is_empty() || choice.patterns.iter().any(|pattern| matches(pattern, NAME))
}

/// Builds the program and runs it with these arguments.
pub fn run(words: &[OsString]) -> Result<(), Failure> {
    named_by_environment(|name| std::env::var(name).ok())?; // checks the variables before a build that takes minutes
    unchanged()?;
    let contender = Contender { name: NAME, language: Language::Rust(NAME), callers: 1, is_quick: true };
    let program = prepare(&contender, false, "")?;
    let status = Command::new(program.path).args(words).env("BENCH_COMMIT", commit()).status()?;
    if status.success() { Ok(()) } else { Err(status.to_string().into()) }
}
