//! The program `trunkline`: its arguments, and the dispatch to each verb.

// `println!` panics if the reader is gone, for example after `head` ends.
#![deny(clippy::print_stdout)]

mod own_words;
mod closed;
mod warnings;
mod clean;
mod float;
mod text;
mod error;
mod print;
mod progress;
mod time;
mod help;
mod number;
mod json;
mod stop;
mod deed;
mod outlet;
mod outage;
mod lines;
mod input;
mod any;
mod address;
mod database;
mod demo;
mod migrate;
mod queue;
mod enqueue;
mod dequeue;
mod work;
mod peek;
mod stats;
mod doctor;
mod console;
mod relay;
mod find;
mod cancel;
mod reschedule;
mod schedule;
mod dead;
mod archive;
mod purge;
mod compact;
mod rights;
mod shard;
mod postgres;
mod delay_proxy;
#[cfg(test)]
mod hostile;

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use clap::{CommandFactory, FromArgMatches};

use crate::{
    database::Database,
    error::{Error, Result},
};

/// One thread allocates messages and another thread frees them. With glibc's allocator, this takes
/// a third of a relay's time. Builds without relays keep glibc's allocator, because it uses less
/// memory: 37 MB to enqueue a million lines, compared with 105 MB.
#[cfg(feature = "trunkline-relay")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A durable message queue in PostgreSQL: a row is a batch of messages.
#[derive(Debug, clap::Parser)]
#[command(
    name = "trunkline",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = "\
Examples:
  trunkline demo                                     see it run; needs no database
  trunkline queue create emails --type jsonb
  trunkline enqueue emails '{\"to\": \"a@example.org\"}'
  trunkline dequeue emails --follow
  trunkline work emails --exec ./send-mail           runs it for each message
  trunkline stats

A TIME is a number of seconds, or has a unit: 250ms, 90s, 5m, 1h30m, 7d.

A payload is bytes for a queue of bytea, and Postgres' text form for text, json, jsonb, whole and
floating point numbers, bool, uuid and enums. Queues of other types are for programs and for SQL
(select * from trunkline.take('emails', 10)).

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted; the doctor has others, which its help
lists. Errors are written to standard error as `error: …`, with `hint: …` if there is a hint. A
signal during a change cancels it, and the program reports whether it was made."
)]
struct Program {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Send a million messages through a private, temporary PostgreSQL, and measure how long it
    /// takes
    Demo(demo::Args),
    /// Create the schema `trunkline`, or migrate it to this program's version
    #[command(after_help = "\
Examples:
  trunkline migrate
  trunkline migrate --schema trial                 queues of a schema of their own")]
    Migrate,
    /// Remove the schema with all queues and everything in them
    Teardown(purge::Teardown),
    /// Create, alter, list, describe and drop queues
    #[command(
        subcommand,
        after_help = "\
Examples:
  trunkline queue create emails --type jsonb
  trunkline queue alter emails --max-attempts 5
  trunkline queue list"
    )]
    Queue(queue::Verb),
    /// Enqueue messages
    Enqueue(enqueue::Args),
    /// Dequeue messages, and print one per line
    Dequeue(dequeue::Args),
    /// Run a command for each message
    Work(work::Args),
    /// Show the next messages without dequeuing them
    Peek(peek::Args),
    /// Show how many messages each queue holds
    Stats(stats::Args),
    /// Report what is wrong with the database, since when, and the statement that fixes it
    Doctor(doctor::Args),
    /// Serve web pages that show the queues and act on them; only on this machine by default
    Console(console::Args),
    /// Carry messages from a queue to a broker, or from a broker into a queue
    Relay(relay::Args),
    /// Show one message, whatever its state
    Find(find::Args),
    /// Delete messages by their ids, including leased ones
    Cancel(cancel::Args),
    /// Change when waiting messages are due
    Reschedule(reschedule::Args),
    /// Enqueue messages repeatedly, on a schedule
    #[command(
        subcommand,
        after_help = "\
Examples:
  trunkline schedule set nightly digests '0 3 * * *' 'all customers' --zone Europe/Berlin
  trunkline schedule list"
    )]
    Schedule(schedule::Verb),
    /// List, replay and discard dead letters
    #[command(
        subcommand,
        after_help = "\
Examples:
  trunkline dead list emails
  trunkline dead replay emails --all"
    )]
    Dead(dead::Verb),
    /// Show a page of archived messages
    Archive(archive::Args),
    /// Delete all messages of a queue, except dead letters and the archive; prints how many
    Purge(purge::Purge),
    /// Delete archived messages that are older than a given age; prints how many
    Prune(purge::Prune),
    /// Give disk space of deleted rows back, even while vacuum cannot; prints how many bytes
    Compact(compact::Args),
    /// Let a role enqueue, dequeue, or operate queues
    Grant(rights::Grant),
    /// Revoke what a role was granted
    Revoke(rights::Revoke),
    /// List the servers that hold queues of the same names, or take one out of service
    #[command(
        subcommand,
        after_help = "\
Examples:
  trunkline shard list --database-url postgres://db1/app --database-url postgres://db2/app
  trunkline shard drain 1f3a9c02 --database-url postgres://db1/app --database-url postgres://db2/app"
    )]
    Shard(shard::Verb),
    /// Manage the private PostgreSQL, which is used if no database is named
    #[command(
        subcommand,
        after_help = "\
Example:
  trunkline postgres status"
    )]
    Postgres(postgres::Verb),
    /// Make a server seem far away: a TCP proxy that delays every byte in each direction
    DelayProxy(delay_proxy::Args),
}

async fn run(Program { verb, database }: Program) -> Result<()> {
    match verb {
        Verb::Demo(args) => demo::run(args).await,
        Verb::Migrate => migrate::run(&database).await,
        Verb::Teardown(args) => purge::teardown(args, &database).await,
        Verb::Queue(verb) => queue::run(verb, &database).await,
        Verb::Enqueue(args) => enqueue::run(args, &database).await,
        Verb::Dequeue(args) => dequeue::run(args, &database).await,
        Verb::Work(args) => work::run(args, &database).await,
        Verb::Peek(args) => peek::run(args, &database).await,
        Verb::Stats(args) => stats::run(args, &database).await,
        Verb::Doctor(args) => doctor::run(args, &database).await,
        Verb::Console(args) => console::run(args, &database).await,
        Verb::Relay(args) => relay::run(args, &database).await,
        Verb::Find(args) => find::run(args, &database).await,
        Verb::Cancel(args) => cancel::run(args, &database).await,
        Verb::Reschedule(args) => reschedule::run(args, &database).await,
        Verb::Schedule(verb) => schedule::run(verb, &database).await,
        Verb::Dead(verb) => dead::run(verb, &database).await,
        Verb::Archive(args) => archive::run(args, &database).await,
        Verb::Purge(args) => purge::purge(args, &database).await,
        Verb::Prune(args) => purge::prune(args, &database).await,
        Verb::Compact(args) => compact::run(args, &database).await,
        Verb::Grant(args) => rights::grant(args, &database).await,
        Verb::Revoke(args) => rights::revoke(args, &database).await,
        Verb::Shard(verb) => shard::run(verb, &database).await,
        Verb::Postgres(verb) => postgres::run(verb).await,
        Verb::DelayProxy(args) => delay_proxy::run(args).await,
    }
}

fn command() -> clap::Command {
    help::with_negative_values(help::laid_out(Program::command()))
}

fn main() -> ExitCode {
    warnings::show();
    let given = command().try_get_matches().unwrap_or_else(|wrong| help::without_variables(command(), wrong).exit());
    let program = Program::from_arg_matches(&given).unwrap_or_else(|wrong| wrong.exit());
    match database::check_options(&given).and_then(|()| on_runtime(program)) {
        Ok(()) | Err(Error::OutputClosed) if deed::is_interrupted() => {
            print::note("interrupted too late: the command is done");
            ExitCode::from(130)
        }
        Ok(()) | Err(Error::OutputClosed) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}"); // a closed standard error must not cause a panic
            ExitCode::from(error.code())
        }
    }
}

/// Runs the program in a spawned task. Running it on the thread that blocks on the runtime would
/// take twice as long.
fn on_runtime(program: Program) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|cause| Error::new(format!("cannot start threads: {cause}")))?;
    let ended = runtime.block_on(async { tokio::spawn(run(program)).await });
    runtime.shutdown_background();
    ended.unwrap_or_else(|cause| Err(Error::new(format!("this is a bug: {cause}"))))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|cause| Err(Error::new(format!("this is a bug: {cause}"))))
}

/// Asks for confirmation on a terminal before an action that cannot be undone. Without a terminal,
/// `--yes` is required.
async fn confirm(what: String, yes: bool) -> Result<()> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Error::usage(format!("refusing to {what} without confirmation: there is no terminal to ask on"))
            .hint("--yes skips the question"));
    }
    blocking(move || {
        let _ = write!(io::stderr(), "{what}? [y/N] "); // if the question cannot be shown, no answer follows
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).map_err(|cause| Error::new(format!("cannot read the answer: {cause}")))?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Error::new("nothing was done")),
        }
    })
    .await
}
