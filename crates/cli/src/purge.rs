//! `trunkline purge`, `prune` and `teardown`: the verbs that delete.

use std::time::Duration;

use crate::{
    database::Database,
    deed::{self, Undone},
    error::Result,
    print, time,
};

/// The arguments of `trunkline purge`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  trunkline purge emails --yes")]
pub struct Purge {
    /// The queue
    queue: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// The arguments of `trunkline teardown`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  trunkline teardown --schema trial --yes")]
pub struct Teardown {
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// The arguments of `trunkline prune`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It does not ask for confirmation, because the age limits what is deleted. An age of 0 means the whole
archive, so it asks then.

Example:
  trunkline prune emails --older-than 7d")]
pub struct Prune {
    /// The queue
    queue: String,
    /// The minimum age of the messages to delete
    #[arg(long, value_name = "TIME", value_parser = time::duration)]
    older_than: Duration,
    /// Do not ask for confirmation if the age is 0
    #[arg(long)]
    yes: bool,
}

pub async fn purge(args: Purge, database: &Database) -> Result<()> {
    let place = database.place();
    let what = format!("delete all waiting and leased messages of queue {:?} in {place}", args.queue);
    crate::confirm(what, args.yes).await?;
    let queue = database.queue_unread(&args.queue).await?;
    let purged = queue.change(queue.purge()).await?;
    queue.complete(print::done([purged].iter()))
}

pub async fn prune(args: Prune, database: &Database) -> Result<()> {
    if args.older_than.is_zero() {
        let place = database.place();
        crate::confirm(format!("delete the whole archive of queue {:?} in {place}", args.queue), args.yes).await?;
    }
    let queue = database.queue_unread(&args.queue).await?;
    let pruned = queue.change(queue.prune(args.older_than)).await?;
    queue.complete(print::done([pruned].iter()))
}

pub async fn teardown(args: Teardown, database: &Database) -> Result<()> {
    let db = database.connect().await?;
    let (schema, place) = (db.schema_name(), database.place());
    let what = format!("remove schema {schema:?} in {place}, with all queues and everything in them");
    crate::confirm(what, args.yes).await?;
    // The library removes at most twenty queues with one transaction.
    let is_whole = db.list_queues().await.is_ok_and(|queues| queues.len() <= 20);
    let undone = if is_whole { Undone::All } else { Undone::Part };
    deed::undertake(vec![db.clone()], undone, db.teardown()).await
}
