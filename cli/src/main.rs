//! The program `trunkline`.

mod error;
mod print;
mod progress;
mod demo;

use std::process::ExitCode;

use clap::Parser;

use crate::error::{Error, Result};

#[derive(Debug, clap::Parser)]
#[command(name = "trunkline", version)]
struct Program {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Send a million messages through a private, temporary PostgreSQL, and measure
    Demo(demo::Args),
}

async fn run(program: Program) -> Result<()> {
    match program.verb {
        Verb::Demo(args) => demo::run(args).await,
    }
}

fn main() -> ExitCode {
    let program = Program::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(cause) => {
            eprintln!("error: cannot start the runtime: {cause}");
            return ExitCode::FAILURE;
        }
    };
    // Spawned: what runs on this thread itself is slower by half.
    let ended = runtime.block_on(async { tokio::spawn(run(program)).await });
    match ended.unwrap_or_else(|cause| Err(Error::new(format!("a bug: {cause}")))) {
        Ok(()) | Err(Error::OutputClosed) => ExitCode::SUCCESS,
        Err(error @ Error::Usage(_)) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Work that waits without yielding, on a thread for that.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|cause| Err(Error::new(format!("a bug: {cause}"))))
}
