//! `trunkline archive`

use trunkline::{Archived, Description, Readable};

use crate::{
    any::Id,
    database::Database,
    error::Result,
    json::{self, Line},
    number,
    print::{self, Table},
    text::{Text, preview_of_metadata},
    time,
};

/// The arguments of `trunkline archive`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The lines of --json contain id, attempt, archived_at, enqueued_at, priority or key (if the
queue has them), metadata and payload, as `trunkline dequeue --json` prints it; `trunkline enqueue
--json-lines` reads them into another queue.

Examples:
  trunkline archive emails -n 10
  trunkline archive emails --after 1024 --json")]
pub struct Args {
    /// The queue
    queue: String,
    /// Messages to show
    #[arg(short, value_name = "N", default_value_t = 100, value_parser = number::count::<usize>)]
    n: usize,
    /// Start after this id: the last id of the previous page
    #[arg(long, value_name = "ID", default_value = "0")]
    after: Id,
    /// A line of JSON for each message, with its whole payload
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let queue = database.queue_to_show(&args.queue).await?;
    let archived = queue.archived(args.after, args.n).await?;
    queue.complete(print_page(archived, &queue.description(), args.json))
}

fn print_page(archived: Vec<(Id, Archived<Readable<Text>>)>, queue: &Description, as_json: bool) -> Result<()> {
    if as_json {
        return print::lines(archived.iter().map(|(id, message)| object(*id, message, queue)));
    }
    let mut table = Table::new([">id", "archived at", ">attempts", ">priority", "key", "payload", "metadata"]);
    for (id, message) in archived {
        table.row([
            id.to_string(),
            time::rfc3339(message.archived_at),
            message.attempt.to_string(),
            message.priority.to_string(),
            message.key.as_deref().unwrap_or_default().to_owned(),
            Text::preview_of(&message.payload),
            preview_of_metadata(&message.metadata),
        ]);
    }
    print::text(table.of(queue).to_string())
}

fn object(id: Id, message: &Archived<Readable<Text>>, queue: &Description) -> Line {
    let line = Line::default().with("id", id).with("attempt", message.attempt);
    let line = line.with("archived_at", time::exact(message.archived_at));
    let line = line.with("enqueued_at", time::exact(message.enqueued_at));
    let line = line.priority(queue, message.priority).key(message.key.as_deref()).metadata(&message.metadata);
    line.payload_of(&message.payload, json::is_of_json(queue))
}
