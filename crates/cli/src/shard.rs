//! `trunkline shard list|drain|resume`

use std::time::Duration;

use serde_json::json;
use trunkline::shards;

use crate::{
    database::Database,
    deed::{self, Undone},
    error::{Error, Result},
    print::{self, Table, thousands},
    stop::Stop,
};

/// The verbs of `trunkline shard`.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// List the servers, with their shards' names and the messages left on each
    #[command(after_help = "\
Example:
  trunkline shard list --database-url postgres://db1/app --database-url postgres://db2/app")]
    List {
        /// A line of JSON for each
        #[arg(long)]
        json: bool,
    },
    /// Take a server out of service: nothing more is enqueued on it, and its messages are consumed
    /// or moved
    #[command(after_help = "\
Name all servers with --database-url, and the shard to drain as `shard list` prints it. Producers
notice within five seconds that it is draining, and enqueue on the other servers; consumers and
workers continue with its messages. The drain waits for delayed messages and leases. Once empty, a
queue is closed on this server: it refuses late messages, and their callers turn to another server.
At the end no message waits there, and none will.

With --move, waiting messages move to the other servers, each exactly once. A moved message has a
new id and no unique key, and is otherwise unchanged. Leased messages are waited for. A message is in
transit between two transactions; after an interruption the next drain, with --move or without,
completes its move.

Dead letters and the archive stay on the server; the last line reports how many. Afterwards restart
the programs with the shorter list, and switch the server off. An interrupted drain continues when it
is started again, and `trunkline shard resume` undoes it.

Examples:
  trunkline shard drain 1f3a9c02 --database-url postgres://db1 --database-url postgres://db2
  trunkline shard drain --move 1f3a9c02 --database-url postgres://db1 --database-url postgres://db2")]
    Drain {
        /// The shard, as printed by `shard list`
        #[arg(value_name = "SHARD")]
        shard: shards::Id,
        /// Move the waiting messages to the other servers
        #[arg(long = "move")]
        moves: bool,
    },
    /// Let a server that is draining or drained accept messages again
    #[command(after_help = "\
Example:
  trunkline shard resume 1f3a9c02 --database-url postgres://db1 --database-url postgres://db2")]
    Resume {
        /// The shard, as printed by `shard list`
        #[arg(value_name = "SHARD")]
        shard: shards::Id,
    },
}

/// The interval between reports of a drain's progress.
const TELL: Duration = Duration::from_secs(2);

pub async fn run(verb: Verb, database: &Database) -> Result<()> {
    let shards = database.shards().await?;
    match verb {
        Verb::List { json } => list(&shards, json).await,
        Verb::Drain { shard, moves } => drain(&shards, shard, moves, database.quiet).await,
        Verb::Resume { shard } => {
            let dbs = shards.db(shard).into_iter().collect();
            deed::undertake(dbs, Undone::Part, shards.resume(shard)).await
        }
    }
}

async fn list(shards: &shards::Set, as_json: bool) -> Result<()> {
    let mut lines = Vec::new();
    for state in shards.list() {
        let left = match state.id {
            Some(id) => shards.left(id).await,
            None => Ok(shards::Left::default()),
        };
        let left = left.map_err(|error| error.to_string());
        lines.push((state, left));
    }
    if as_json {
        return print::lines(lines.iter().map(|(state, left)| object(state, left)));
    }
    let mut table = Table::new(["shard", "server", "state", ">messages", ">moving", ">dead", ">archived"]);
    for (state, left) in lines {
        let sum = left.as_ref().map(shards::Left::sum).ok();
        let count = |of: fn(&trunkline::Stats) -> u64| sum.as_ref().map_or_else(String::new, |sum| thousands(of(sum)));
        table.row([
            state.id.map_or_else(String::new, |id| id.to_string()),
            state.server.clone(),
            word(&state, &left).to_owned(),
            count(|sum| sum.messages),
            left.as_ref().map_or_else(|_| String::new(), |left| thousands(left.moving)),
            count(|sum| sum.dead),
            count(|sum| sum.archived),
        ]);
    }
    print::text(table.to_string())
}

fn word(state: &shards::State, left: &Result<shards::Left, String>) -> &'static str {
    match left {
        _ if state.down.is_some() => "down",
        Err(_) => "unknown", // the JSON line has the reason
        Ok(left) if state.drains && left.is_drained() => "drained",
        Ok(_) if state.drains => "drains",
        Ok(_) => "open",
    }
}

fn object(state: &shards::State, left: &Result<shards::Left, String>) -> serde_json::Value {
    let sum = left.as_ref().map(shards::Left::sum).ok().filter(|_| state.id.is_some());
    let why = state.down.as_ref().map(ToString::to_string).or_else(|| left.as_ref().err().cloned());
    json!({
        "shard": state.id.map(|id| id.to_string()),
        "server": state.server,
        "state": word(state, left),
        "messages": sum.map(|sum| sum.messages),
        "dead": sum.map(|sum| sum.dead),
        "archived": sum.map(|sum| sum.archived),
        "moving": left.as_ref().ok().filter(|_| state.id.is_some()).map(|left| left.moving),
        "error": why,
    })
}

async fn drain(shards: &shards::Set, shard: shards::Id, moves: bool, quiet: bool) -> Result<()> {
    let mut stop = Stop::on_signals()?;
    let schedules = match shards.db(shard) {
        Some(db) => db.schedules().await?,
        None => Vec::new(), // the drain reports the unknown shard
    };
    let mut told = None::<std::time::Instant>;
    let tell = |left: &shards::Left| {
        if !quiet && told.is_none_or(|told| told.elapsed() > TELL) && !left.is_drained() {
            told = Some(std::time::Instant::now());
            print::note(said(left));
        }
    };
    let draining = async {
        match moves {
            true => shards.drain_and_move(shard, tell).await,
            false => shards.drain(shard, tell).await,
        }
    };
    let left = tokio::select! {
        left = draining => left?,
        () = stop.asked() => {
            return Err(Error::new("interrupted; the shard is still draining")
                .hint("run the command again to continue, or let the shard take messages again with `trunkline shard resume`"));
        }
    };
    let sum = left.sum();
    let mut lines = vec![format!(
        "shard {shard} is drained; {} dead letters and {} archived messages are left there",
        thousands(sum.dead),
        thousands(sum.archived)
    )];
    if !schedules.is_empty() {
        let names: Vec<_> = schedules.iter().map(|schedule| &*schedule.name).collect();
        lines.push(format!("its schedules enqueue nothing now: {}; set them on another server", names.join(", ")));
    }
    print::done(lines.iter())
}

fn said(left: &shards::Left) -> String {
    let sum = left.sum();
    let parts = [
        (sum.due, "due"),
        (sum.delayed, "delayed"),
        (sum.leased, "leased"),
        (sum.to_retry, "to be retried"),
        (left.moving, "on their way to other servers"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", thousands(*count)))
        .collect();
    match parts.is_empty() {
        true => "empty; closing".to_owned(),
        false => format!("left: {}", parts.join(", ")),
    }
}
