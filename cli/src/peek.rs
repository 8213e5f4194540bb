//! `trunkline peek`

use serde_json::json;

use crate::{
    database::Database,
    error::Result,
    print::{self, Table},
    text::Text,
    time,
};

/// The arguments of `trunkline peek`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The queue
    queue: String,
    /// Messages to show
    #[arg(short, value_name = "N", default_value_t = 10)]
    n: usize,
    /// A line of JSON for each message, with its whole payload
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let messages = database.queue_to_show(&args.queue).await?.peek(args.n).await?;
    if args.json {
        return print::lines(messages.iter().map(|message| {
            let (field, payload) = Text::field_of(&message.payload);
            json!({
                "id": message.id,
                "due_at": time::rfc3339(message.due_at),
                "enqueued_at": time::rfc3339(message.enqueued_at),
                "attempt": message.attempt,
                "error": message.error,
                field: payload,
            })
        }));
    }
    let mut table = Table::new([">id", "due at", ">attempt", "payload", "error"]);
    for message in messages {
        table.row([
            message.id.to_string(),
            time::rfc3339(message.due_at),
            message.attempt.to_string(),
            Text::preview_of(&message.payload),
            message.error.unwrap_or_default(),
        ]);
    }
    print::text(table.to_string())
}
