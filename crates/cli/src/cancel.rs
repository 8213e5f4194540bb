//! `trunkline cancel`

use crate::{
    any::Id,
    database::Database,
    error::{Error, Result},
    print,
};

/// The arguments of `trunkline cancel`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A waiting message is not delivered any more. The lease of a leased message ends now: its handler may
already have done its work, and every later attempt to end or renew the lease is refused. To delete
dead letters, use `trunkline dead discard`.

Example:
  trunkline cancel emails 1024 1025                prints the ids that are gone")]
pub struct Args {
    /// The queue
    queue: String,
    /// Ids of messages; other ids are skipped
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Id>,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let queue = database.queue_unread(&args.queue).await?;
    let gone = queue.change_in_parts(queue.cancel(&args.ids)).await?;
    let printed = print::done(gone.iter());
    if gone.is_empty() {
        return Err(Error::new(format!(
            "none of these ids is a message that waits or is leased in queue {:?}",
            args.queue
        ))
        .hint(format!("`trunkline find {} ID` shows the state of a message", args.queue)));
    }
    printed
}
