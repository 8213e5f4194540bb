//! The processes that use the queues. Each process runs this program again, with a separate
//! history.

pub mod user;
mod draft;
mod racer;
mod producer;
mod taker;
mod leaser;
mod limited;
mod streamer;
mod ledger;
mod worker;
mod sql;
mod operator;
mod watcher;
mod ticker;
mod rated;
mod drain;

use std::{io::Read, path::PathBuf, time::Duration};

use clap::ValueEnum;
use tokio::sync::watch;

use self::user::User;
use crate::history::Log;

/// The part that a process plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Enqueues, in every way that there is; cancels and reschedules.
    Producer,
    /// Takes: at most once.
    Taker,
    /// Leases, and ends leases in every way: at least once.
    Leaser,
    /// Takes and acknowledges in transactions with effects: exactly once.
    Ledger,
    /// Runs workers.
    Worker,
    /// Calls the SQL functions, through another driver.
    Sql,
    /// Consumes alone, and so sees the order and late messages.
    Watcher,
    /// Makes the ticks of schedules.
    Ticker,
    /// Works on messages whose keys have a rate.
    Rated,
    /// Empties the queues at the end.
    Drain,
}

impl Role {
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// The arguments of a process.
#[derive(Debug, Clone, clap::Args)]
pub struct Part {
    pub role: Role,
    /// The process's number in the run.
    #[arg(long)]
    pub nr: u64,
    #[arg(long)]
    pub seed: u64,
    /// The server's connection string, which clients of `tokio-postgres` use as well.
    #[arg(long)]
    pub url: String,
    /// The file of the history.
    #[arg(long)]
    pub history: PathBuf,
}

/// Plays the part until the process's input ends.
pub fn play(part: &Part) -> Result<(), String> {
    let log =
        Log::create(&part.history).map_err(|error| format!("cannot write {}: {error}", part.history.display()))?;
    let (stop, stopped) = watch::channel(false);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = stop.send(true);
    });
    let threads = if part.role == Role::Producer { 2 } else { 1 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(async {
        let (role, user) = (part.role, User::new(part, log, stopped));
        let played = tokio::spawn(async move {
            match role {
                Role::Producer => producer::run(user).await,
                Role::Taker => taker::run(user).await,
                Role::Leaser => leaser::run(user).await,
                Role::Ledger => ledger::run(user).await,
                Role::Worker => worker::run(user).await,
                Role::Sql => sql::run(user).await,
                Role::Watcher => watcher::run(user).await,
                Role::Ticker => ticker::run(user).await,
                Role::Rated => rated::run(user).await,
                Role::Drain => drain::run(user).await,
            }
        })
        .await;
        // Messages of dropped calls are still being put back at this point.
        tokio::time::sleep(Duration::from_millis(500)).await;
        played.map_err(|error| format!("the process panicked: {error}"))?
    })
}
