//! `trunkline stats`

use std::time::Duration;

use serde_json::json;
use trunkline::Queue;

use crate::{
    database::Database,
    error::Result,
    print::{self, Table, thousands},
    text::Unread,
    time,
};

/// The arguments of `trunkline stats`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trunkline stats
  trunkline stats emails words
  trunkline stats emails --json | jq .oldest_due_s")]
pub struct Args {
    /// The queues; all of them if none is named
    queues: Vec<String>,
    /// A line of JSON for each queue
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let db = database.connect().await?;
    let mut names = args.queues;
    if names.is_empty() {
        names.extend(db.list_queues().await?.into_iter().map(|queue| queue.name));
    }
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let queue: Queue<Unread> = db.queue(&name).await?;
        found.push((name, queue.stats().await?));
    }
    if args.json {
        return print::lines(found.iter().map(|(name, stats)| {
            json!({
                "queue": name,
                "due": stats.due,
                "waiting": stats.waiting(),
                "delayed": stats.delayed,
                "leased": stats.leased,
                "to_retry": stats.to_retry,
                "dead": stats.dead,
                "archived": stats.archived,
                "messages": stats.messages,
                "rows": stats.rows,
                "oldest_due_s": stats.oldest_due.map(|age| age.as_secs_f64()),
            })
        }));
    }
    let headers = ["queue", ">due", ">delayed", ">leased", ">to retry", ">dead", ">archived", ">rows", ">oldest due"];
    let mut table = Table::new(headers);
    for (name, stats) in found {
        let numbers = [stats.due, stats.delayed, stats.leased, stats.to_retry, stats.dead, stats.archived, stats.rows];
        let oldest = stats.oldest_due.map_or_else(String::new, |oldest: Duration| time::age(oldest));
        table.row([name].into_iter().chain(numbers.map(thousands)).chain([oldest]));
    }
    print::text(table.to_string())
}
