//! `trunkline find`

use std::time::SystemTime;

use serde_json::json;

use crate::{
    database::Database,
    error::{Error, Result},
    print::{self, Table},
    text::Text,
    time,
};

/// The arguments of `trunkline find`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The state is due, delayed, retrying, leased, dead or archived. For a lease, `due at` is when it ends.

Example:
  trunkline find emails 1024 --json")]
pub struct Args {
    /// The queue
    queue: String,
    /// The message's id, as `enqueue` and `peek` print it
    id: i64,
    /// A line of JSON, with the whole payload
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let queue = database.queue_to_show(&args.queue).await?;
    let Some(found) = queue.find(args.id).await? else {
        let told = format!("queue {:?} has no message {}", args.queue, args.id);
        return Err(Error::new(told).hint("one that was acknowledged, taken, cancelled or discarded is gone"));
    };
    let at = |time: Option<SystemTime>| time.map(time::rfc3339);
    if args.json {
        let (field, payload) = Text::field_of(&found.payload);
        let metadata: serde_json::Map<_, _> =
            found.metadata.iter().map(|(name, text)| (name.to_owned(), text.into())).collect();
        let line = json!({
            "id": found.id,
            "state": found.state.name(),
            "attempt": found.attempt,
            "due_at": at(found.due_at),
            "ended_at": at(found.ended_at),
            "enqueued_at": time::rfc3339(found.enqueued_at),
            "error": found.error,
            "metadata": metadata,
            field: payload,
        });
        return print::line(line.to_string());
    }
    let when = if found.due_at.is_some() { "due at" } else { "ended at" };
    let mut table = Table::new([">id", "state", when, ">attempt", "enqueued at", "payload", "error"]);
    table.row([
        found.id.to_string(),
        found.state.name().to_owned(),
        at(found.due_at.or(found.ended_at)).unwrap_or_default(),
        found.attempt.to_string(),
        time::rfc3339(found.enqueued_at),
        Text::preview_of(&found.payload),
        found.error.unwrap_or_default(),
    ]);
    print::text(table.to_string())
}
