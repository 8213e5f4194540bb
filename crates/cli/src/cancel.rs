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
A message that waits is never delivered any more. The lease of one that is leased ends now: its
handler may have done its work already; whatever ends or renews the lease then is refused. Dead
letters are for `trunkline dead discard`.

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
    let gone = database.queue_unread(&args.queue).await?.cancel(&args.ids).await?;
    print::done(gone.iter())?;
    if gone.is_empty() {
        return Err(Error::new(format!(
            "none of these ids is a message that waits or is leased in queue {:?}",
            args.queue
        ))
        .hint(format!("`trunkline find {} ID` says what became of one", args.queue)));
    }
    Ok(())
}
