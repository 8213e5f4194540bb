//! `trunkline schedule set`

use std::{ffi::OsString, time::SystemTime};

use trunkline::{Metadata, Missed, Schedule};

use crate::{database::Database, deed, enqueue::named, error::Result, input, number, print, time};

/// The arguments of `trunkline schedule set`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An expression has five fields of cron (minute, hour, day of the month, month, day of the week), or
six with seconds first; or is @hourly, @daily, @weekly, @monthly, @yearly; or `every 90 seconds`
(minutes, hours, days), which counts from 1970-01-01 UTC.

Each message has the metadata `schedule`, the name, and `tick`, the time of the tick in UTC.

Ticks are made by `trunkline work`, by `trunkline schedule run`, and by every program with a worker.

Examples:
  trunkline queue create digests --type text
  trunkline schedule set nightly digests '0 3 * * *' 'all customers' --zone Europe/Berlin
  trunkline schedule set pulse digests 'every 90 seconds' ping --missed skip")]
pub struct Args {
    /// The schedule: 1 to 48 characters, a lower-case letter, then a-z, 0-9, _, . or -
    name: String,
    /// The queue into which its messages are enqueued
    queue: String,
    /// The times at which it ticks
    expression: String,
    /// The payload of each message, `-` for all of standard input
    payload: OsString,
    /// The time zone in which the fields of the expression are read
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    zone: String,
    /// The ticks to make if several are due, or the last is old, because they were not made in
    /// time: once, only the last; skip, only the last, if it is at most a minute old; each, up to
    /// the last 1,000
    #[arg(long, value_name = "skip|once|each", default_value = "once", value_parser = missed)]
    missed: Missed,
    /// The priority of each message, in a queue with priorities: from 0, the lowest
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number::priority)]
    priority: u8,
    /// The key of each message, in a queue with keys
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Metadata: a name and a value stored with the payload, such as tenant=acme; may be repeated
    #[arg(long = "with", value_name = "NAME=VALUE", value_parser = named)]
    metadata: Vec<(String, String)>,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let schedule = Schedule::new(args.name, args.expression)
        .zone(args.zone)
        .missed(args.missed)
        .priority(args.priority)
        .metadata(Metadata::from_iter(args.metadata));
    let schedule = match args.key {
        Some(key) => schedule.key(key),
        None => schedule,
    };
    schedule.next_after(SystemTime::now())?; // refuses a wrong schedule before anything is opened
    let queue = database.queue_of_one(&args.queue).await?;
    for payload in input::arguments(vec![args.payload]).await? {
        deed::on(queue.db(), queue.schedule(&schedule, &payload)).await?;
    }
    let mut next = Vec::new();
    let mut time = SystemTime::now();
    while next.len() < 3
        && let Some(tick) = schedule.next_after(time)?
    {
        next.push(time::rfc3339(tick));
        time = tick;
    }
    print::done(next.iter())
}

fn missed(text: &str) -> Result<Missed, String> {
    let all = [Missed::Skip, Missed::Once, Missed::Each];
    all.into_iter().find(|missed| missed.name() == text).ok_or_else(|| "it must be skip, once or each".to_owned())
}
