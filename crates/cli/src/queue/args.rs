//! The arguments of `trunkline queue create|alter|limit`.

use std::time::Duration;

use trunkline::{Changes, Limits};

use crate::{number, time};

/// The default payload type, which can hold any bytes.
pub const PAYLOAD: &str = "bytea";

/// The arguments of `trunkline queue create`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A name has 1 to 48 characters: a lower-case letter, then a-z, 0-9, _, . or -.

Examples:
  trunkline queue create emails --type jsonb
  trunkline queue create thumbnails --type text --max-batch 1 --lease 5m --max-attempts 3
  trunkline queue create mails --type jsonb --priorities 3 --aging 5m")]
pub struct Create {
    /// The name of the queue
    pub name: String,
    /// The type of its payloads: any type of PostgreSQL; by default bytea, which holds any
    /// bytes. It cannot be changed later
    #[arg(long = "type", value_name = "TYPE")]
    pub payload: Option<String>,
    /// Number of deliveries after which a message becomes a dead letter
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = attempts())]
    pub max_attempts: u32,
    /// The duration of a lease
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time::more_than_zero)]
    pub lease: Duration,
    /// The maximum number of messages in one row, 1 to 1024; use 1 for slow jobs, so that they
    /// spread over all workers
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = number::count::<u32>)]
    pub max_batch: u32,
    /// The number of priorities, 1 to 10, numbered from 0, the lowest; cannot be changed later
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::count::<u32>)]
    pub priorities: u32,
    /// The time by which each level of priority makes a message count as older. 36500d makes
    /// priorities strict: the highest goes first
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = time::more_than_zero)]
    pub aging: Duration,
    /// Let messages have unique keys; cannot be changed later
    #[arg(long)]
    pub uniqueness: bool,
    /// The number of partitions, 1 to 256, for messages with keys; 64 suits most queues. Messages
    /// with the same key are handled in order. Cannot be combined with priorities or --uniqueness
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["priorities", "uniqueness"])]
    pub partitions: u32,
    /// The maximum number of messages of one key that are handled at the same time; with more than
    /// 1, their order is not kept
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::count::<u32>, requires = "partitions")]
    pub per_key: u32,
}

/// The arguments of `trunkline queue alter`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "trunkline queue alter [OPTIONS] <NAME>",
    group = clap::ArgGroup::new("settings").args(["max_attempts", "lease", "max_batch", "aging", "per_key", "partitions"]).multiple(true).required(true),
    after_help = "\
Settings that are not named stay unchanged. The type of the payloads and the number of priorities
cannot be changed. Leased messages keep their leases. Running programs keep the maximum batch that
they started with; running workers also keep the lease time and the maximum per key.

Examples:
  trunkline queue alter emails --max-attempts 5
  trunkline queue alter emails --lease 2m --max-batch 100 --json"
)]
pub struct Alter {
    /// The queue
    pub name: String,
    /// Number of deliveries after which a message becomes a dead letter
    #[arg(long, value_name = "N", value_parser = attempts())]
    pub max_attempts: Option<u32>,
    /// The duration of a lease
    #[arg(long, value_name = "TIME", value_parser = time::more_than_zero)]
    pub lease: Option<Duration>,
    /// The maximum number of messages in one row, 1 to 1024; use 1 for slow jobs, so that they
    /// spread over all workers
    #[arg(long, value_name = "N", value_parser = number::count::<u32>)]
    pub max_batch: Option<u32>,
    /// The worth of one level of priority: a message counts as older by this time for each level
    #[arg(long, value_name = "TIME", value_parser = time::more_than_zero)]
    pub aging: Option<Duration>,
    /// The maximum number of messages of one key that are handled at the same time
    #[arg(long, value_name = "N", value_parser = number::count::<u32>)]
    pub per_key: Option<u32>,
    /// More partitions, in a queue with keys: a multiple of the current number, up to 256. The
    /// queue is blocked while its waiting messages are sorted: about 20 seconds per million
    /// messages
    #[arg(long, value_name = "N", value_parser = number::count::<u32>)]
    pub partitions: Option<u32>,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `trunkline queue limit`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "trunkline queue limit [OPTIONS] <NAME>",
    group = clap::ArgGroup::new("limits").args(["max_leased", "per_second", "key_per_second", "none"]).multiple(true).required(true),
    after_help = "\
The limits apply to takes and leases from now on, including those of running programs. They are
exact: the dequeues of a queue with limits wait for each other's commits. In any T seconds, at most
burst + T * rate messages are dequeued, or started of a key; so up to twice the rate in the first
second after a rest, unless --burst or --key-burst is lower than the rate.

Examples:
  trunkline queue limit emails --max-leased 100
  trunkline queue limit emails --per-second 50 --burst 10
  trunkline queue limit bookings --key-per-second 10
  trunkline queue limit emails --none"
)]
pub struct Limit {
    /// The queue
    pub name: String,
    /// The maximum number of leased messages; while `N` are leased, nothing is dequeued
    #[arg(long, value_name = "N", value_parser = number::count::<u32>)]
    pub max_leased: Option<u32>,
    /// The number of messages that may be dequeued in a second; 0.1 is one in ten seconds
    #[arg(long, value_name = "N", value_parser = number::rate)]
    pub per_second: Option<f64>,
    /// The number of messages that may be dequeued at once, after a pause; as many as in one second
    /// if not given
    #[arg(long, value_name = "N", requires = "per_second", value_parser = number::count::<u32>)]
    pub burst: Option<u32>,
    /// The number of messages of each key that workers may start in a second, in a queue with keys
    #[arg(long, value_name = "N", value_parser = number::rate)]
    pub key_per_second: Option<f64>,
    /// The number of messages of a key that may be started at once, after a pause; as many as in
    /// one second if not given
    #[arg(long, value_name = "N", requires = "key_per_second", value_parser = number::count::<u32>)]
    pub key_burst: Option<u32>,
    /// Remove all limits
    #[arg(long, conflicts_with_all = ["max_leased", "per_second", "burst", "key_per_second", "key_burst"])]
    pub none: bool,
}

impl Limit {
    pub fn limits(&self) -> Limits {
        let mut limits = Limits::none();
        (limits.max_leased, limits.per_second, limits.burst) = (self.max_leased, self.per_second, self.burst);
        (limits.key_per_second, limits.key_burst) = (self.key_per_second, self.key_burst);
        limits
    }
}

impl Alter {
    pub fn changes(&self) -> Changes {
        let changes = with(Changes::new(), self.max_attempts, Changes::max_attempts);
        let changes = with(changes, self.lease, Changes::lease);
        let changes = with(changes, self.max_batch, Changes::max_batch);
        let changes = with(changes, self.aging, Changes::aging);
        let changes = with(changes, self.per_key, Changes::per_key);
        with(changes, self.partitions, Changes::partitions)
    }
}

/// Adds a change if it was requested.
fn with<T>(changes: Changes, asked: Option<T>, change: fn(Changes, T) -> Changes) -> Changes {
    match asked {
        Some(value) => change(changes, value),
        None => changes,
    }
}

fn attempts() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(i32::MAX))
}
