//! `trunkline stats`

use std::{collections::BTreeSet, time::Duration};

use serde_json::json;
use trunkline::{Db, Stats, shards};

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
On several servers the first line of a queue is the sum, and the next ones are its shards.

Examples:
  trunkline stats
  trunkline stats emails words
  trunkline stats emails --json | jq .oldest_due_s")]
pub struct Args {
    /// The queues; all queues if none is named
    queues: Vec<String>,
    /// A line of JSON for each queue
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let found = match database.is_sharded() {
        true => of_several(args.queues, &database.shards().await?).await?,
        false => of_one(args.queues, &database.connect().await?).await?,
    };
    if args.json {
        return print::lines(found.iter().map(object));
    }
    let several = found.iter().any(|line| line.shard.is_some());
    let headers = ["queue", ">due", ">delayed", ">leased", ">to retry", ">dead", ">archived", ">rows", ">oldest due"];
    let mut table = Table::new(headers.into_iter().chain(several.then_some("shard")));
    for Line { queue, shard, stats } in found {
        let numbers = [stats.due, stats.delayed, stats.leased, stats.to_retry, stats.dead, stats.archived, stats.rows];
        let oldest = stats.oldest_due.map_or_else(String::new, |oldest: Duration| time::age(oldest));
        let shard = several.then(|| shard.map_or_else(|| "all".to_owned(), |shard| shard.to_string()));
        table.row([queue].into_iter().chain(numbers.map(thousands)).chain([oldest]).chain(shard));
    }
    print::text(table.to_string())
}

/// The counts of one queue, or of its part on one shard.
struct Line {
    queue: String,
    shard: Option<shards::Id>,
    stats: Stats,
}

async fn of_one(mut names: Vec<String>, db: &Db) -> Result<Vec<Line>> {
    if names.is_empty() {
        names.extend(db.list_queues().await?.into_iter().map(|queue| queue.name));
    }
    let mut found = Vec::with_capacity(names.len());
    for queue in names {
        let stats = db.queue::<Unread>(&queue).await?.stats().await?;
        found.push(Line { queue, shard: None, stats });
    }
    Ok(found)
}

/// Returns for each queue the sum, then its parts. A shard that does not answer is reported on
/// standard error and left out of the sum.
async fn of_several(mut names: Vec<String>, shards: &shards::Set) -> Result<Vec<Line>> {
    for shard in shards.list().iter().filter(|shard| shard.down.is_some()) {
        let why = shard.down.as_ref().map_or_else(String::new, ToString::to_string);
        print::note(format!("warning: {} is not counted: {why}", shard.server));
    }
    if names.is_empty() {
        let mut all = BTreeSet::new();
        for id in shards.list().iter().filter_map(|shard| shard.id) {
            if let Some(db) = shards.db(id) {
                all.extend(db.list_queues().await?.into_iter().map(|queue| queue.name));
            }
        }
        names.extend(all);
    }
    let mut found = Vec::new();
    for name in names {
        let stats = shards.queue::<Unread>(&name).await?.stats().await;
        found.push(Line { queue: name.clone(), shard: None, stats: stats.sum });
        for shards::Sharded { shard, of } in stats.parts {
            match of {
                Ok(stats) => found.push(Line { queue: name.clone(), shard: Some(shard), stats }),
                Err(error) => print::note(format!("warning: shard {shard} is not counted: {error}")),
            }
        }
    }
    Ok(found)
}

fn object(Line { queue, shard, stats }: &Line) -> serde_json::Value {
    let mut line = json!({
        "queue": queue,
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
    });
    if let Some(shard) = shard {
        line["shard"] = shard.to_string().into();
    }
    line
}
