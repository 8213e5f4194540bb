//! `trunkline peek`

use trunkline::{Description, Peeked, Readable};

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

/// The arguments of `trunkline peek`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The state is due, delayed, retrying (it failed, or was given back, and is not due yet) or leased.
For a leased message, `due at` is when the lease ends. The lines of --json contain id, state, attempt, due_at,
enqueued_at, error, priority or key (if the queue has them), metadata and payload, as `trunkline
dequeue --json` prints it; `trunkline enqueue --json-lines` reads them into another queue, due at
the same times, with the same priorities or keys.

Examples:
  trunkline peek words
  trunkline peek emails -n 1000 --json | jq -r 'select(.state == \"retrying\") | .error'")]
pub struct Args {
    /// The queue
    queue: String,
    /// Messages to show
    #[arg(short, value_name = "N", default_value_t = 10, value_parser = number::count::<usize>)]
    n: usize,
    /// A line of JSON for each message, with its whole payload
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let queue = database.queue_to_show(&args.queue).await?;
    let messages = queue.peek(args.n).await?;
    queue.complete(print_page(messages, &queue.description(), args.json))
}

fn print_page(messages: Vec<(Id, Peeked<Readable<Text>>)>, queue: &Description, as_json: bool) -> Result<()> {
    if as_json {
        return print::lines(messages.iter().map(|(id, message)| object(*id, message, queue)));
    }
    let mut table =
        Table::new([">id", "state", "due at", ">attempt", ">priority", "key", "payload", "metadata", "error"]);
    for (id, message) in messages {
        table.row([
            id.to_string(),
            message.state.name().to_owned(),
            time::rfc3339(message.due_at),
            message.attempt.to_string(),
            message.priority.to_string(),
            message.key.as_deref().unwrap_or_default().to_owned(),
            Text::preview_of(&message.payload),
            preview_of_metadata(&message.metadata),
            message.error.unwrap_or_default(),
        ]);
    }
    print::text(table.of(queue).to_string())
}

fn object(id: Id, message: &Peeked<Readable<Text>>, queue: &Description) -> Line {
    let line = Line::default().with("id", id).with("state", message.state.name());
    let line = line.with("attempt", message.attempt).with("due_at", time::exact(message.due_at));
    let line = line.with("enqueued_at", time::exact(message.enqueued_at)).with("error", message.error.clone());
    let line = line.priority(queue, message.priority).key(message.key.as_deref()).metadata(&message.metadata);
    line.payload_of(&message.payload, json::is_of_json(queue))
}
