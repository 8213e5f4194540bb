//! The program `trunkline`: its arguments, then one line a verb.

// `println!` panics if the reader goes away, as `head` does.
#![deny(clippy::print_stdout)]

mod own_words;
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
mod outlet;
mod outage;
mod lines;
mod input;
mod any;
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

/// A message is allocated in one thread and freed in another, which costs a third of a relay's time
/// with glibc's allocator. Builds without relays keep that allocator, because it uses less memory:
/// 37 MB for enqueueing a million lines, where this one uses 105 MB.
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

Exit codes: 0 done, 1 failed, 2 wrong usage. Errors are on standard error: `error: …`, and `hint: …`
where there is one."
)]
struct Program {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    database: Database,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Send a million messages through a private, temporary PostgreSQL, and measure
    Demo(demo::Args),
    /// Create the schema `trunkline`, or bring it to this program's version
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
    /// Dequeue messages, a line each
    Dequeue(dequeue::Args),
    /// Run a command for each message
    Work(work::Args),
    /// Show the next messages without touching them
    Peek(peek::Args),
    /// Show what queues hold, in numbers
    Stats(stats::Args),
    /// Say what is wrong with the database, since when, and the statement that mends it
    Doctor(doctor::Args),
    /// Serve pages that show the queues and act on them, on this machine unless told otherwise
    Console(console::Args),
    /// Carry messages to a broker, or from one into a queue
    Relay(relay::Args),
    /// Show one message, wherever it is
    Find(find::Args),
    /// Delete messages by their ids, leased ones too
    Cancel(cancel::Args),
    /// Make messages that wait due at another time
    Reschedule(reschedule::Args),
    /// Enqueue messages again and again, by the clock
    #[command(
        subcommand,
        after_help = "\
Examples:
  trunkline schedule set nightly reports '0 3 * * *' 'all customers' --zone Europe/Berlin
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
    /// Show a page of what was archived
    Archive(archive::Args),
    /// Delete all messages of a queue, but for dead letters and the archive; prints how many
    Purge(purge::Purge),
    /// Delete what was archived some time ago; prints how many messages
    Prune(purge::Prune),
    /// Let a role enqueue, dequeue, or look after queues
    Grant(rights::Grant),
    /// Take from a role what it was granted
    Revoke(rights::Revoke),
    /// The servers that hold queues of the same names: list them, take one out
    #[command(
        subcommand,
        after_help = "\
Examples:
  trunkline shard list --database-url postgres://db1/app --database-url postgres://db2/app
  trunkline shard drain 1f3a9c02 --database-url postgres://db1/app --database-url postgres://db2/app"
    )]
    Shard(shard::Verb),
    /// The private PostgreSQL that is used where no database is named
    #[command(
        subcommand,
        after_help = "\
Example:
  trunkline postgres status"
    )]
    Postgres(postgres::Verb),
    /// Make a server seem far away: a TCP proxy that delivers every byte a given time later, each
    /// way
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
        Verb::Grant(args) => rights::grant(args, &database).await,
        Verb::Revoke(args) => rights::revoke(args, &database).await,
        Verb::Shard(verb) => shard::run(verb, &database).await,
        Verb::Postgres(verb) => postgres::run(verb).await,
        Verb::DelayProxy(args) => delay_proxy::run(args).await,
    }
}

fn main() -> ExitCode {
    let program = Program::from_arg_matches(&help::laid_out(Program::command()).get_matches());
    match on_runtime(program.unwrap_or_else(|wrong| wrong.exit())) {
        Ok(()) | Err(Error::OutputClosed) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}"); // a closed standard error is no panic either
            ExitCode::from(error.code())
        }
    }
}

/// Runs the program in a spawned task. A task on the thread that waits for the runtime costs twice
/// as much.
fn on_runtime(program: Program) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|cause| Error::new(format!("cannot start threads: {cause}")))?;
    let ended = runtime.block_on(async { tokio::spawn(run(program)).await });
    runtime.shutdown_background();
    ended.unwrap_or_else(|cause| Err(Error::new(format!("this is a bug: {cause}"))))
}

/// Runs work that blocks, on a thread for such work.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|cause| Err(Error::new(format!("this is a bug: {cause}"))))
}

/// Asks on a terminal before something that cannot be undone. Elsewhere `--yes` is required.
async fn confirm(what: String, yes: bool) -> Result<()> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Error::usage(format!(
            "refusing to {what} without a confirmation, for which there is no terminal here"
        ))
        .hint("with --yes it is done without asking"));
    }
    blocking(move || {
        let _ = write!(io::stderr(), "{what}? [y/N] "); // an unread question gets no answer
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).map_err(|cause| Error::new(format!("cannot read the answer: {cause}")))?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Error::new("nothing was done")),
        }
    })
    .await
}
