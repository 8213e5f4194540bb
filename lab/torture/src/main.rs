//! Runs Trunkline under faults of every kind, and checks from the histories of its users that it
//! kept its promises.

// `say` ignores an error when its reader is gone, as with `head`; `println!` would panic.
#![deny(clippy::print_stdout)]

mod random;
mod tag;
mod plan;
mod history;
mod roles;
mod folder;
mod ground;
mod crew;
mod faults;
mod tables;
mod samples;
mod check;
mod report;
mod mutants;
mod rivals;
mod run;
mod ticks;
mod rates;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "Runs Trunkline under faults of every kind, and checks that its promises held")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs processes against a server of its own, with faults drawn from a seed, and checks their
    /// histories.
    Run(run::Run),
    /// Checks the histories of an earlier run again.
    Check {
        /// The run's folder.
        folder: PathBuf,
    },
    /// Runs the seeded defects, each of which has to be found.
    Mutants(mutants::Mutants),
    /// Runs other queues in PostgreSQL under the same faults, and reports which promises held.
    Rivals(rivals::Rivals),
    /// Kills processes that make the ticks of many schedules. Checks that each tick is made once,
    /// and reports how late.
    Ticks(ticks::Ticks),
    /// Kills workers of many keys, each with a rate. Checks that no key is too fast, and reports
    /// how much of the rate is used.
    Rates(rates::Rates),
    /// Runs Trunkline as one of the rivals; started by `rivals`.
    #[command(hide = true)]
    Adapter,
    /// One of the processes; started by `run`.
    #[command(hide = true)]
    Role(roles::Part),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Run(run) => run::run(&run),
        Command::Check { folder } => run::check(&folder),
        Command::Mutants(mutants) => mutants::run(&mutants),
        Command::Rivals(rivals) => rivals::run(&rivals),
        Command::Ticks(ticks) => ticks::run(&ticks),
        Command::Rates(rates) => rates::run(&rates),
        Command::Adapter => rivals::play().map(|()| true),
        Command::Role(part) => roles::play(&part).map(|()| true),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
