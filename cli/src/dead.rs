//! `trunkline dead list|replay|discard`

use serde_json::json;
use trunkline::{Queue, Readable};

use crate::{
    database::Database,
    error::{Error, Result},
    print::{self, Table},
    text::{Text, Unread},
    time,
};

/// What is done to dead letters: messages whose attempts are used up.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// A page of dead letters, by id
    List {
        /// The queue
        queue: String,
        /// Letters to show
        #[arg(short, value_name = "N", default_value_t = 100)]
        n: usize,
        /// Begin after this id: the last one of the page before
        #[arg(long, value_name = "ID", default_value_t = 0)]
        after: i64,
        /// A line of JSON for each letter, with its whole payload
        #[arg(long)]
        json: bool,
    },
    /// Make dead letters due again, under the same ids, with all their attempts; prints how many
    Replay(Which),
    /// Delete dead letters for good; prints how many
    Discard(Which),
}

/// Some dead letters of a queue.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// The queue
    queue: String,
    /// Ids of dead letters; others are passed over
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<i64>,
    /// All of them
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

pub async fn run(verb: Verb, database: &Database) -> Result<()> {
    match verb {
        Verb::List { queue, n, after, json } => list(&database.queue_to_show(&queue).await?, n, after, json).await,
        Verb::Replay(which) => {
            let queue = database.queue_unread(&which.queue).await?;
            let count = if which.all { queue.replay_all().await? } else { queue.replay(&which.ids).await? };
            told(&queue, count, &which)
        }
        Verb::Discard(which) => {
            let queue = database.queue_unread(&which.queue).await?;
            let count = if which.all { queue.discard_all().await? } else { queue.discard(&which.ids).await? };
            told(&queue, count, &which)
        }
    }
}

fn told(queue: &Queue<Unread>, count: usize, which: &Which) -> Result<()> {
    print::done([count].iter())?;
    if count == 0 && !which.all {
        let name = &queue.description().name;
        return Err(Error::new(format!("none of these ids is a dead letter of queue {name:?}"))
            .hint(format!("`trunkline dead list {name}` shows them")));
    }
    Ok(())
}

async fn list(queue: &Queue<Readable<Text>>, n: usize, after: i64, as_json: bool) -> Result<()> {
    let letters = queue.dead_letters(after, n).await?;
    if as_json {
        return print::lines(letters.iter().map(|letter| {
            let (field, payload) = Text::field_of(&letter.payload);
            json!({
                "id": letter.id,
                "enqueued_at": time::rfc3339(letter.enqueued_at),
                "dead_at": time::rfc3339(letter.dead_at),
                "attempt": letter.attempt,
                "error": letter.error,
                field: payload,
            })
        }));
    }
    let mut table = Table::new([">id", "dead at", ">attempts", "error", "payload"]);
    for letter in letters {
        table.row([
            letter.id.to_string(),
            time::rfc3339(letter.dead_at),
            letter.attempt.to_string(),
            letter.error,
            Text::preview_of(&letter.payload),
        ]);
    }
    print::text(table.to_string())
}
