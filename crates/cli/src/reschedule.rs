//! `trunkline reschedule`

use std::time::{Duration, SystemTime};

use trunkline::Due;

use crate::{
    any::Id,
    database::Database,
    error::{Error, Result},
    print, time,
};

/// The arguments of `trunkline reschedule`.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("when").args(["after", "at", "now"]).required(true),
    after_help = "\
Leased messages and dead letters are skipped. A message that failed keeps its error and its
attempts.

Examples:
  trunkline reschedule emails 1024 --now           prints the ids that were moved
  trunkline reschedule emails 1024 1025 --in 5m
  trunkline reschedule emails 1024 --at 2030-01-01T08:00:00Z"
)]
pub struct Args {
    /// The queue
    queue: String,
    /// Ids of waiting messages; other ids are skipped
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Id>,
    /// Make the messages due after this time
    #[arg(long = "in", value_name = "TIME", value_parser = time::duration)]
    after: Option<Duration>,
    /// Make them due at a point in time, in RFC 3339: 2030-01-01T08:00:00Z, or with an offset such
    /// as +02:00; a time in the past means now
    #[arg(long, value_name = "WHEN", value_parser = time::instant)]
    at: Option<SystemTime>,
    /// Make them due now; messages that are due already keep their place
    #[arg(long)]
    now: bool,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let queue = database.queue_unread(&args.queue).await?;
    let due = args.at.map_or(Due::After(args.after.unwrap_or_default()), Due::At);
    let moved = queue.change_in_parts(queue.reschedule(&args.ids, due)).await?;
    let printed = print::done(moved.iter());
    if moved.is_empty() {
        return Err(Error::new(format!("none of these ids is a message that waits in queue {:?}", args.queue))
            .hint(format!("`trunkline find {} ID` shows the state of a message", args.queue)));
    }
    printed
}
