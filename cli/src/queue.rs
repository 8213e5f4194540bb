//! `trunkline queue create|alter|pause|resume|limit|list|describe|drop`

use std::time::Duration;

use serde_json::json;
use trunkline::{Changes, Db, Description, Limits, Settings};

use crate::{
    database::Database,
    error::{Error, Result},
    number,
    print::{self, Table},
    time,
};

/// What is done to queues.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Create a queue; nothing happens if it exists with the same settings
    Create(Create),
    /// Change settings of a queue; prints those that it has then
    Alter(Alter),
    /// Hand out nothing from now on; enqueues go on, and so does what is leased
    #[command(after_help = "\
Example:
  trunkline queue pause emails")]
    Pause {
        /// The queue
        name: String,
    },
    /// Hand out messages again, after a pause
    #[command(after_help = "\
Example:
  trunkline queue resume emails")]
    Resume {
        /// The queue
        name: String,
    },
    /// Set the limits of a queue, for all processes together; those that are not named are none
    Limit(Limit),
    /// All queues, by name
    #[command(after_help = "\
Examples:
  trunkline queue list
  trunkline queue list --json | jq -r .name")]
    List {
        /// A line of JSON for each queue
        #[arg(long)]
        json: bool,
    },
    /// The settings of one queue
    #[command(after_help = "\
Example:
  trunkline queue describe emails")]
    Describe {
        /// The queue
        name: String,
        /// One line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Drop a queue with all that is in it, dead letters and archive included
    #[command(after_help = "\
Example:
  trunkline queue drop emails --yes")]
    Drop {
        /// The queue
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// The arguments of `trunkline queue create`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A name has 1 to 48 characters: a lower-case letter, then a-z, 0-9, _, . or -.

Examples:
  trunkline queue create emails --type jsonb
  trunkline queue create thumbnails --type text --max-batch 1 --lease 5m --max-attempts 3
  trunkline queue create mails --type jsonb --priorities 3 --head-start 5m")]
pub struct Create {
    /// The name of the queue
    name: String,
    /// The type of its payloads: any type that Postgres knows
    #[arg(long = "type", value_name = "TYPE", default_value = "bytea")]
    payload: String,
    /// Deliveries before a message is a dead letter
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = attempts())]
    max_attempts: u32,
    /// How long a lease lasts
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time::more_than_zero)]
    lease: Duration,
    /// Messages in one row at most, 1 to 1024; 1 for slow jobs, which then spread over all workers
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = number::count::<u32>)]
    max_batch: u32,
    /// How many priorities it has, 1 to 10, numbered from 0, the lowest; for good
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::count::<u32>)]
    priorities: u32,
    /// What a step of priority is worth: so much older a message of it counts. 36500d is strict: the highest first
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = time::more_than_zero)]
    head_start: Duration,
    /// Messages may have unique keys; for good
    #[arg(long)]
    uniqueness: bool,
    /// As many lanes, 1 to 256, for messages that have keys; 64 for most. Those of a key are handled in order. Not
    /// together with priorities or --uniqueness
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["priorities", "uniqueness"])]
    lanes: u32,
    /// Messages of a key that are handled at the same time, at most; with more than 1 they are in no order
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::count::<u32>, requires = "lanes")]
    per_key: u32,
}

/// The arguments of `trunkline queue alter`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "trunkline queue alter [OPTIONS] <NAME>",
    group = clap::ArgGroup::new("settings").args(["max_attempts", "lease", "max_batch", "head_start", "per_key", "lanes"]).multiple(true).required(true),
    after_help = "\
What is not named stays as it is; the type of the payloads and the number of priorities stay for
good. What is leased keeps its lease. Programs that run keep the maximal batch, and workers the
lease time and the messages of a key at the same time, that they began with.

Examples:
  trunkline queue alter emails --max-attempts 5
  trunkline queue alter emails --lease 2m --max-batch 100 --json"
)]
pub struct Alter {
    /// The queue
    name: String,
    /// Deliveries before a message is a dead letter
    #[arg(long, value_name = "N", value_parser = attempts())]
    max_attempts: Option<u32>,
    /// How long a lease lasts
    #[arg(long, value_name = "TIME", value_parser = time::more_than_zero)]
    lease: Option<Duration>,
    /// Messages in one row at most, 1 to 1024; 1 for slow jobs, which then spread over all workers
    #[arg(long, value_name = "N", value_parser = number::count::<u32>)]
    max_batch: Option<u32>,
    /// What a step of priority is worth: so much older a message of it counts
    #[arg(long, value_name = "TIME", value_parser = time::more_than_zero)]
    head_start: Option<Duration>,
    /// Messages of a key that are handled at the same time, at most
    #[arg(long, value_name = "N", value_parser = number::count::<u32>)]
    per_key: Option<u32>,
    /// More lanes, in a queue with keys: a multiple of those that it has, up to 256. The queue stands still until what waits
    /// in it is put in order: some 20 seconds for each million messages
    #[arg(long, value_name = "N", value_parser = number::count::<u32>)]
    lanes: Option<u32>,
    /// One line of JSON
    #[arg(long)]
    json: bool,
}

/// The arguments of `trunkline queue limit`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "trunkline queue limit [OPTIONS] <NAME>",
    group = clap::ArgGroup::new("limits").args(["max_leased", "per_second", "key_per_second", "none"]).multiple(true).required(true),
    after_help = "\
The limits hold for takes and leases, from now on, also in programs that run. They are exact: the
dequeues of a queue with limits wait for each other's commits.

Examples:
  trunkline queue limit emails --max-leased 100
  trunkline queue limit emails --per-second 50 --burst 10
  trunkline queue limit bookings --key-per-second 10
  trunkline queue limit emails --none"
)]
pub struct Limit {
    /// The queue
    name: String,
    /// While so many messages are leased, nothing is dequeued
    #[arg(long, value_name = "N", value_parser = number::count::<u32>)]
    max_leased: Option<u32>,
    /// Messages dequeued in a second; 0.1 is one in ten seconds
    #[arg(long, value_name = "N")]
    per_second: Option<f64>,
    /// Messages that may be dequeued at once, after a rest; those of a second if not given
    #[arg(long, value_name = "N", requires = "per_second", value_parser = number::count::<u32>)]
    burst: Option<u32>,
    /// Messages of each key that workers begin with in a second, in a queue with keys
    #[arg(long, value_name = "N")]
    key_per_second: Option<f64>,
    /// Messages of a key that may be begun with at once, after a rest; those of a second if not given
    #[arg(long, value_name = "N", requires = "key_per_second", value_parser = number::count::<u32>)]
    key_burst: Option<u32>,
    /// No limits
    #[arg(long, conflicts_with_all = ["max_leased", "per_second", "burst", "key_per_second", "key_burst"])]
    none: bool,
}

impl Limit {
    fn limits(&self) -> Limits {
        let mut limits = Limits::none();
        (limits.max_leased, limits.per_second, limits.burst) = (self.max_leased, self.per_second, self.burst);
        (limits.key_per_second, limits.key_burst) = (self.key_per_second, self.key_burst);
        limits
    }
}

impl Alter {
    fn changes(&self) -> Changes {
        let changes = with(Changes::new(), self.max_attempts, Changes::max_attempts);
        let changes = with(changes, self.lease, Changes::lease);
        let changes = with(changes, self.max_batch, Changes::max_batch);
        let changes = with(changes, self.head_start, Changes::head_start);
        let changes = with(changes, self.per_key, Changes::per_key);
        with(changes, self.lanes, Changes::lanes)
    }
}

/// Also a change that was asked for.
fn with<T>(changes: Changes, asked: Option<T>, change: fn(Changes, T) -> Changes) -> Changes {
    match asked {
        Some(value) => change(changes, value),
        None => changes,
    }
}

fn attempts() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(i32::MAX))
}

pub async fn run(verb: Verb, database: &Database) -> Result<()> {
    match verb {
        Verb::Create(create) => {
            let settings = Settings::new(create.payload).max_attempts(create.max_attempts);
            let settings = settings.lease(create.lease).max_batch(create.max_batch);
            let settings = settings.priorities(create.priorities).head_start(create.head_start);
            let settings = settings.uniqueness(create.uniqueness);
            let settings = settings.lanes(create.lanes).per_key(create.per_key);
            for (place, db) in database.connect_each().await? {
                db.create_queue(&create.name, &settings).await.map_err(|error| Error::from(error).at(&place))?;
            }
            Ok(())
        }
        Verb::Alter(alter) => {
            let dbs = database.connect_each().await?;
            for (place, db) in &dbs {
                let altered = db.alter_queue(&alter.name, &alter.changes()).await;
                altered.map_err(|error| Error::from(error).at(place))?;
            }
            print::after_change(show(&described(&dbs, &alter.name).await?, alter.json))
        }
        Verb::Pause { name } => {
            for (place, db) in database.connect_each().await? {
                db.pause_queue(&name).await.map_err(|error| Error::from(error).at(&place))?;
            }
            Ok(())
        }
        Verb::Resume { name } => {
            for (place, db) in database.connect_each().await? {
                db.resume_queue(&name).await.map_err(|error| Error::from(error).at(&place))?;
            }
            Ok(())
        }
        // What holds for a queue as a whole is nobody's to count over several servers.
        Verb::Limit(limit) => Ok(database.connect().await?.limit_queue(&limit.name, &limit.limits()).await?),
        Verb::List { json } => {
            let mut all = Vec::new();
            for (place, db) in database.connect_each().await? {
                let queues = db.list_queues().await.map_err(|error| Error::from(error).at(&place))?;
                all.extend(queues.into_iter().map(|queue| (place.clone(), queue)));
            }
            all.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name)); // those of one name as the servers were named
            show(&all, json)
        }
        Verb::Describe { name, json } => show(&described(&database.connect_each().await?, &name).await?, json),
        Verb::Drop { name, yes } => {
            crate::confirm(format!("drop queue {name:?} with all that is in it"), yes).await?;
            for (place, db) in database.connect_each().await? {
                db.drop_queue(&name).await.map_err(|error| Error::from(error).at(&place))?;
            }
            Ok(())
        }
    }
}

/// The queue as each server has it.
async fn described(dbs: &[(String, Db)], name: &str) -> Result<Vec<(String, Description)>> {
    let mut all = Vec::new();
    for (place, db) in dbs {
        let queue = db.describe_queue(name).await.map_err(|error| Error::from(error).at(place))?;
        all.push((place.clone(), queue));
    }
    Ok(all)
}

fn show(queues: &[(String, Description)], as_json: bool) -> Result<()> {
    if as_json {
        return print::lines(queues.iter().map(|(place, queue)| {
            let mut line = json!({
                "name": queue.name,
                "type": queue.payload,
                "max_attempts": queue.max_attempts,
                "lease_s": queue.lease.as_secs_f64(),
                "max_batch": queue.max_batch,
                "created_at": time::exact(queue.created_at),
                "paused": queue.is_paused,
                "max_leased": queue.limits.max_leased,
                "per_second": queue.limits.per_second,
                "burst": queue.limits.burst,
                "key_per_second": queue.limits.key_per_second,
                "key_burst": queue.limits.key_burst,
                "priorities": queue.priorities,
                "head_start_s": queue.head_start.as_secs_f64(),
                "uniqueness": queue.uniqueness,
                "lanes": queue.lanes,
                "per_key": queue.per_key,
            });
            if !place.is_empty() {
                line["server"] = place.as_str().into();
            }
            line
        }));
    }
    let several = queues.iter().any(|(place, _)| !place.is_empty());
    let headers = ["name", "type", ">max attempts", ">lease", ">max batch", ">priorities", "created at", "limits"];
    let mut table = Table::new(headers.into_iter().chain(several.then_some("server")));
    for (place, queue) in queues {
        let cells = [
            queue.name.clone(),
            queue.payload.clone(),
            queue.max_attempts.to_string(),
            time::age(queue.lease),
            queue.max_batch.to_string(),
            queue.priorities.to_string(),
            time::rfc3339(queue.created_at),
            limits(queue),
        ];
        table.row(cells.into_iter().chain(several.then(|| place.clone())));
    }
    print::text(table.to_string())
}

/// What holds messages back.
fn limits(queue: &Description) -> String {
    let Limits { max_leased, per_second, burst, key_per_second, key_burst, .. } = queue.limits;
    let paused = queue.is_paused.then(|| "paused".to_owned());
    let leased = max_leased.map(|most| format!("{most} leased"));
    let rate = per_second.map(|rate| format!("{rate}/s, {} at once", burst.unwrap_or(1)));
    let of_keys = key_per_second.map(|rate| format!("{rate}/s of a key, {} at once", key_burst.unwrap_or(1)));
    [paused, leased, rate, of_keys].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
