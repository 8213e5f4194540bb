//! `trunkline find`

use std::time::SystemTime;

use trunkline::{Description, Found, Readable};

use crate::{
    any::Id,
    database::Database,
    error::{Error, Result},
    json::{self, Line},
    print::{self, Table},
    text::{Text, preview_of_metadata},
    time,
};

/// The arguments of `trunkline find`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The state is due, delayed, retrying, leased, dead or archived. For a leased message,
`due at` is when the lease ends.

Example:
  trunkline find emails 1024 --json")]
pub struct Args {
    /// The queue
    queue: String,
    /// The message's id, as `enqueue` and `peek` print it
    id: Id,
    /// A line of JSON, with the whole payload
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let queue = database.queue_to_show(&args.queue).await?;
    let Some(found) = queue.find(args.id).await? else {
        let told = format!("queue {:?} has no message {}", args.queue, args.id);
        return Err(
            Error::new(told).hint("a message that was acknowledged, taken, cancelled or discarded no longer exists")
        );
    };
    let queue = queue.description();
    if args.json {
        return print::line(object(args.id, &found, &queue).to_string());
    }
    let when = if found.due_at.is_some() { "due at" } else { "ended at" };
    let mut table = Table::new([
        ">id",
        "state",
        when,
        ">attempt",
        ">priority",
        "key",
        "enqueued at",
        "payload",
        "metadata",
        "error",
    ]);
    table.row([
        args.id.to_string(),
        found.state.name().to_owned(),
        found.due_at.or(found.ended_at).map(time::rfc3339).unwrap_or_default(),
        found.attempt.to_string(),
        found.priority.to_string(),
        found.key.as_deref().unwrap_or_default().to_owned(),
        time::rfc3339(found.enqueued_at),
        Text::preview_of(&found.payload),
        preview_of_metadata(&found.metadata),
        found.error.unwrap_or_default(),
    ]);
    print::text(table.of(&queue).to_string())
}

fn object(id: Id, found: &Found<Readable<Text>>, queue: &Description) -> Line {
    let at = |time: Option<SystemTime>| time.map(time::exact);
    let line = Line::default().with("id", id).with("state", found.state.name()).with("attempt", found.attempt);
    let line = line.with("due_at", at(found.due_at)).with("ended_at", at(found.ended_at));
    let line = line.with("enqueued_at", time::exact(found.enqueued_at)).with("error", found.error.clone());
    let line = line.priority(queue, found.priority).key(found.key.as_deref()).metadata(&found.metadata);
    line.payload_of(&found.payload, json::is_of_json(queue))
}
