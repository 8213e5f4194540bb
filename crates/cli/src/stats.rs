//! `trunkline stats`

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::json;
use trunkline::{Db, Stats, postgres::Statement, shards};

use crate::{
    any,
    database::Database,
    error::{Result, lacks_right},
    print::{self, Table, thousands},
    text::Unread,
    time,
};

/// The arguments of `trunkline stats`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
On several servers the first line of a queue is the sum, and the next ones are its shards. A sum that
lacks a server is marked as `partial`.

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
    for QueueCounts { queue, is_paused, shard, is_partial, stats } in found {
        let numbers = [stats.due, stats.delayed, stats.leased, stats.to_retry, stats.dead, stats.archived, stats.rows];
        let oldest = stats.oldest_due.map_or_else(String::new, |oldest: Duration| time::age(oldest));
        let sum = if is_partial { "partial" } else { "all" };
        let shard = several.then(|| shard.map_or_else(|| sum.to_owned(), |shard| shard.to_string()));
        let queue = if is_paused { format!("{queue} (paused)") } else { queue };
        table.row([queue].into_iter().chain(numbers.map(thousands)).chain([oldest]).chain(shard));
    }
    print::text(table.to_string())
}

/// The counts of a queue, or of the queue's part on one shard.
struct QueueCounts {
    queue: String,
    is_paused: bool,
    shard: Option<shards::Id>,
    /// True if the counts are a sum that lacks a server.
    is_partial: bool,
    stats: Stats,
}

fn counts(queue: String, is_paused: bool, shard: Option<shards::Id>, stats: Stats) -> QueueCounts {
    QueueCounts { queue, is_paused, shard, is_partial: false, stats }
}

/// The number of queues that one statement counts. The statement locks eight tables and indexes per
/// queue, and the server's table of locks has 64 entries per connection.
const PAGE: usize = 32;

async fn of_one(mut names: Vec<String>, db: &Db) -> Result<Vec<QueueCounts>> {
    let known: BTreeMap<String, bool> = match names.len() {
        1 => BTreeMap::new(), // a single queue needs no list, because its own statement counts it
        _ => db.list_queues().await?.into_iter().map(|queue| (queue.name, queue.is_paused)).collect(),
    };
    let is_all = names.is_empty();
    if is_all {
        names.extend(known.keys().cloned());
    }
    let mut found = Vec::with_capacity(names.len());
    let mut uncounted = Uncounted::default();
    for page in names.chunks(PAGE) {
        // The statement for a page fails if the role may not read one of its queues. Then each
        // queue gets its own statement, which fails only for that queue.
        let counted = match page.iter().all(|name| known.contains_key(name)) {
            true => of_page(page, &known, db).await.ok(),
            false => None,
        };
        match counted {
            Some(lines) => found.extend(lines),
            None => {
                for name in page {
                    let counted = async {
                        let queue = db.queue::<Unread>(name).await?;
                        Ok::<_, trunkline::Error>((queue.description().is_paused, queue.stats().await?))
                    };
                    match counted.await {
                        Err(error) if is_all && lacks_right(&error) => {
                            uncounted.add(name, error);
                        }
                        Err(error) if is_all && error.is_no_queue() => {} // it was dropped after it was listed
                        counted => {
                            let (is_paused, stats) = counted?;
                            found.push(counts(name.clone(), is_paused, None, stats));
                        }
                    }
                }
            }
        }
    }
    uncounted.or(found)
}

/// A queue's name and its counts, in the order of the fields of [`Stats`].
type Counted = (String, i64, i64, i64, i64, i64, i64, i64, i64, Option<f64>);

/// Counts existing queues with one statement. Returns them in the order of `page`.
async fn of_page(page: &[String], known: &BTreeMap<String, bool>, db: &Db) -> trunkline::Result<Vec<QueueCounts>> {
    let count = include_str!("../sql/stats.sql").replace("trunkline.", &format!("{}.", db.schema_name()));
    let counts = page.iter().map(|name| count.replace("{name}", name));
    let counts: Statement<(), Vec<Counted>> = Statement::of(counts.collect::<Vec<_>>().join("\nunion all\n"));
    let mut lines: Vec<QueueCounts> =
        db.run_in_catalog(&counts, ()).await?.into_iter().map(|counted| line(counted, known)).collect();
    // Finds each row by name. The server may count in several parallel processes, so the order of
    // the rows is undefined.
    let next = |name: &String| Some(lines.swap_remove(lines.iter().position(|line| line.queue == *name)?));
    Ok(page.iter().filter_map(next).collect())
}

fn line(counted: Counted, known: &BTreeMap<String, bool>) -> QueueCounts {
    let (queue, due, delayed, leased, to_retry, dead, archived, rows, messages, oldest_due) = counted;
    let [due, delayed, leased, to_retry] = [due, delayed, leased, to_retry].map(i64::unsigned_abs);
    let [dead, archived, rows, messages] = [dead, archived, rows, messages].map(i64::unsigned_abs);
    let mut stats = Stats::default();
    (stats.due, stats.delayed, stats.leased, stats.to_retry) = (due, delayed, leased, to_retry);
    (stats.dead, stats.archived, stats.rows, stats.messages) = (dead, archived, rows, messages);
    stats.oldest_due = oldest_due.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let is_paused = known.get(&queue).is_some_and(|is_paused| *is_paused);
    counts(queue, is_paused, None, stats)
}

/// Returns the sum and then the parts of each queue. Reports a shard that does not answer on
/// standard error, and leaves it out of the sum.
async fn of_several(mut names: Vec<String>, shards: &shards::Set) -> Result<Vec<QueueCounts>> {
    for (server, why) in any::down(shards) {
        print::note(format!("warning: cannot count {server}: {why}"));
    }
    let is_all = names.is_empty();
    if is_all {
        let mut all = BTreeSet::new();
        for id in shards.list().iter().filter_map(|shard| shard.id) {
            if let Some(db) = shards.db(id) {
                all.extend(db.list_queues().await?.into_iter().map(|queue| queue.name));
            }
        }
        names.extend(all);
    }
    let mut found = Vec::new();
    let mut uncounted = Uncounted::default();
    for name in names {
        let queue = match shards.queue::<Unread>(&name).await {
            // The queue may exist on some servers only.
            Err(error) if is_all && error.is_no_queue() => {
                uncounted.add(&name, error);
                continue;
            }
            queue => queue?,
        };
        let stats = queue.stats().await;
        let is_paused = |shard| queue.on(shard).is_ok_and(|part| part.description().is_paused);
        let is_paused_somewhere = stats.parts.iter().any(|part| is_paused(part.shard));
        // Returns an error if nothing was counted, because a sum of no counts would look like an
        // empty queue.
        if let Some(error) = error_of_all(&stats.parts) {
            if !(is_all && lacks_right(error)) {
                return Err(error.clone().into());
            }
            uncounted.add(&name, error.clone());
            continue;
        }
        let is_partial = !any::absent(&queue).is_empty() || stats.parts.iter().any(|part| part.of.is_err());
        found.push(QueueCounts { is_partial, ..counts(name.clone(), is_paused_somewhere, None, stats.sum) });
        for shards::Sharded { shard, of } in stats.parts {
            match of {
                Ok(stats) => {
                    let is_paused = is_paused(shard);
                    found.push(counts(name.clone(), is_paused, Some(shard), stats));
                }
                Err(error) => print::note(format!("warning: cannot count shard {shard}: {error}")),
            }
        }
    }
    uncounted.or(found)
}

/// The queues that the role may not count, and the error of the first one.
#[derive(Default)]
struct Uncounted {
    names: Vec<String>,
    error: Option<trunkline::Error>,
}

impl Uncounted {
    /// The number of queues that the warning names. Further queues are only counted.
    const NAMED: usize = 3;

    fn add(&mut self, name: &str, error: trunkline::Error) {
        self.names.push(name.to_owned());
        self.error.get_or_insert(error);
    }

    /// Warns about the queues and returns the other queues' counts. If there are no counts, returns
    /// the error.
    fn or(self, found: Vec<QueueCounts>) -> Result<Vec<QueueCounts>> {
        let Some(error) = self.error else { return Ok(found) };
        if found.is_empty() {
            return Err(error.into());
        }
        let named = self.names.iter().take(Self::NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let others = match self.names.len().saturating_sub(Self::NAMED) {
            0 => String::new(),
            1 => " and one other queue".to_owned(),
            others => format!(" and {others} other queues"),
        };
        print::note(format!("warning: cannot count {named}{others}: {error}"));
        Ok(found)
    }
}

/// Returns an error if no part was counted.
fn error_of_all(parts: &[shards::Sharded<trunkline::Result<Stats>>]) -> Option<&trunkline::Error> {
    let errors = parts.iter().map(|part| part.of.as_ref().err());
    errors.collect::<Option<Vec<_>>>()?.into_iter().next()
}

fn object(QueueCounts { queue, is_paused, shard, is_partial, stats }: &QueueCounts) -> serde_json::Value {
    let mut line = json!({
        "queue": queue,
        "paused": is_paused,
        "due": stats.due,
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
    if *is_partial {
        line["partial"] = true.into();
    }
    line
}
