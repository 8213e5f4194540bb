//! `trunkline queue create|alter|list|describe|drop`

use std::time::Duration;

use serde_json::json;
use trunkline::{Changes, Description, Settings};

use crate::{
    database::Database,
    error::Result,
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
  trunkline queue create thumbnails --type text --max-batch 1 --lease 5m --max-attempts 3")]
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
}

/// The arguments of `trunkline queue alter`.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("settings").args(["max_attempts", "lease", "max_batch"]).multiple(true).required(true),
    after_help = "\
What is not named stays as it is; the type of the payloads stays for good. What is leased keeps its
lease. Programs that run keep the maximal batch, and workers the lease time, that they began with.

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
    /// One line of JSON
    #[arg(long)]
    json: bool,
}

impl Alter {
    fn changes(&self) -> Changes {
        let mut changes = Changes::new();
        if let Some(max_attempts) = self.max_attempts {
            changes = changes.max_attempts(max_attempts);
        }
        if let Some(lease) = self.lease {
            changes = changes.lease(lease);
        }
        if let Some(max_batch) = self.max_batch {
            changes = changes.max_batch(max_batch);
        }
        changes
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
            Ok(database.connect().await?.create_queue(&create.name, &settings).await?)
        }
        Verb::Alter(alter) => {
            let db = database.connect().await?;
            db.alter_queue(&alter.name, &alter.changes()).await?;
            print::after_change(show(&[db.describe_queue(&alter.name).await?], alter.json))
        }
        Verb::List { json } => show(&database.connect().await?.list_queues().await?, json),
        Verb::Describe { name, json } => show(&[database.connect().await?.describe_queue(&name).await?], json),
        Verb::Drop { name, yes } => {
            crate::confirm(format!("drop queue {name:?} with all that is in it"), yes).await?;
            Ok(database.connect().await?.drop_queue(&name).await?)
        }
    }
}

fn show(queues: &[Description], as_json: bool) -> Result<()> {
    if as_json {
        return print::lines(queues.iter().map(|queue| {
            json!({
                "name": queue.name,
                "type": queue.payload,
                "max_attempts": queue.max_attempts,
                "lease_s": queue.lease.as_secs_f64(),
                "max_batch": queue.max_batch,
                "created_at": time::exact(queue.created_at),
            })
        }));
    }
    let mut table = Table::new(["name", "type", ">max attempts", ">lease", ">max batch", "created at"]);
    for queue in queues {
        table.row([
            queue.name.clone(),
            queue.payload.clone(),
            queue.max_attempts.to_string(),
            time::age(queue.lease),
            queue.max_batch.to_string(),
            time::rfc3339(queue.created_at),
        ]);
    }
    print::text(table.to_string())
}
