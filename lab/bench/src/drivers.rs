//! Ways of driving Postgres: one process with all of them, which has its own tables; here it is
//! only built and started.

use std::{ffi::OsString, process::Command};

use crate::{
    Choice, Failure,
    choose::matches,
    contenders::{Contender, Language},
    prepare::prepare,
    tree::commit,
};

/// Its name in the list.
pub const NAME: &str = "drivers";

/// Whether it is among the rows that are meant.
pub fn is_chosen(choice: &Choice) -> bool {
    choice.patterns.is_empty() || choice.patterns.iter().any(|pattern| matches(pattern, NAME))
}

/// Builds it and runs it with these words.
pub fn run(words: &[OsString]) -> Result<(), Failure> {
    let contender = Contender { name: NAME, language: Language::Rust(NAME), callers: 1, is_quick: true };
    let program = prepare(&contender, false, "")?;
    let status = Command::new(program.path).args(words).env("BENCH_COMMIT", commit()).status()?;
    if status.success() { Ok(()) } else { Err(status.to_string().into()) }
}
