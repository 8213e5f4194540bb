//! `trunkline archive`

use serde_json::json;

use crate::{
    database::Database,
    error::Result,
    print::{self, Table},
    text::Text,
    time,
};

/// The arguments of `trunkline archive`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The queue
    queue: String,
    /// Messages to show
    #[arg(short, value_name = "N", default_value_t = 100)]
    n: usize,
    /// Begin after this id: the last one of the page before
    #[arg(long, value_name = "ID", default_value_t = 0)]
    after: i64,
    /// A line of JSON for each message, with its whole payload
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let archived = database.queue_to_show(&args.queue).await?.archived(args.after, args.n).await?;
    if args.json {
        return print::lines(archived.iter().map(|message| {
            let (field, payload) = Text::field_of(&message.payload);
            json!({
                "id": message.id,
                "enqueued_at": time::rfc3339(message.enqueued_at),
                "archived_at": time::rfc3339(message.archived_at),
                "attempt": message.attempt,
                field: payload,
            })
        }));
    }
    let mut table = Table::new([">id", "archived at", ">attempts", "payload"]);
    for message in archived {
        let (id, attempt) = (message.id.to_string(), message.attempt.to_string());
        table.row([id, time::rfc3339(message.archived_at), attempt, Text::preview_of(&message.payload)]);
    }
    print::text(table.to_string())
}
