//! `trunkline dead list|replay|discard`

use trunkline::{DeadLetter, Description, Readable};

use crate::{
    any::{AnyQueue, Id},
    database::Database,
    error::{Error, Result},
    json::{self, Line},
    number,
    print::{self, Table},
    text::{Text, Unread, preview_of_error, preview_of_metadata},
    time,
};

/// The verbs of `trunkline dead`.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Show a page of dead letters, by id
    #[command(after_help = "\
The lines of --json contain id, attempt, dead_at, enqueued_at, error, priority or key (if the
queue has them), metadata and payload, as `trunkline dequeue --json` prints it; `trunkline enqueue
--json-lines` reads them into another queue.

Examples:
  trunkline dead list emails -n 10
  trunkline dead list emails --after 1024 --json | jq -r .error | sort | uniq -c")]
    List {
        /// The queue
        queue: String,
        /// Letters to show
        #[arg(short, value_name = "N", default_value_t = 100, value_parser = number::count::<usize>)]
        n: usize,
        /// Start after this id: the last id of the previous page
        #[arg(long, value_name = "ID", default_value = "0")]
        after: Id,
        /// A line of JSON for each letter, with its whole error and payload
        #[arg(long)]
        json: bool,
    },
    /// Make dead letters due again, under the same ids, with new attempts; prints how many
    #[command(
        override_usage = "\
trunkline dead replay [OPTIONS] <QUEUE> <ID>...
       trunkline dead replay [OPTIONS] <QUEUE> --all",
        after_help = "\
The attempts that count begin again at zero; the number of a delivery continues. If another message
has the id of a letter by now, the letter gets another id.

Examples:
  trunkline dead replay emails 1024 1025
  trunkline dead replay emails --all"
    )]
    Replay(Which),
    /// Delete dead letters for good; prints how many
    #[command(
        override_usage = "\
trunkline dead discard [OPTIONS] <QUEUE> <ID>...
       trunkline dead discard [OPTIONS] <QUEUE> --all",
        after_help = "\
Examples:
  trunkline dead discard emails 1024 1025
  trunkline dead discard emails --all --yes"
    )]
    Discard {
        #[command(flatten)]
        which: Which,
        /// Do not ask for confirmation with --all
        #[arg(long, conflicts_with = "ids")]
        yes: bool,
    },
}

/// The dead letters to act on.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// The queue
    queue: String,
    /// Ids of dead letters; other ids are skipped
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<Id>,
    /// All dead letters of the queue
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

impl Which {
    /// Returns the ids, or `None` for all dead letters.
    fn named(&self) -> Option<&[Id]> {
        (!self.all).then_some(&*self.ids)
    }
}

pub async fn run(verb: Verb, database: &Database) -> Result<()> {
    match verb {
        Verb::List { queue, n, after, json } => {
            let queue = database.queue_to_show(&queue).await?;
            queue.complete(list(queue.dead_letters(after, n).await?, &queue.description(), json))
        }
        Verb::Replay(which) => {
            let queue = database.queue_unread(&which.queue).await?;
            let count = change(&queue, &which, queue.replay(which.named())).await?;
            told(&queue, count, &which)
        }
        Verb::Discard { which, yes } => {
            if which.all {
                let place = database.place();
                crate::confirm(format!("delete all dead letters of queue {:?} in {place}", which.queue), yes).await?;
            }
            let queue = database.queue_unread(&which.queue).await?;
            let count = change(&queue, &which, queue.discard(which.named())).await?;
            told(&queue, count, &which)
        }
    }
}

/// Changes dead letters. The library changes all of a queue in several transactions.
async fn change(queue: &AnyQueue<Unread>, which: &Which, change: impl Future<Output = Result<usize>>) -> Result<usize> {
    match which.all {
        true => queue.change_in_parts(change).await,
        false => queue.change(change).await,
    }
}

fn told(queue: &AnyQueue<Unread>, count: usize, which: &Which) -> Result<()> {
    let printed = print::done([count].iter());
    if which.all {
        return queue.complete(printed);
    }
    if count == 0 {
        let name = queue.description().name;
        return Err(Error::new(format!("none of these ids is a dead letter of queue {name:?}"))
            .hint(format!("`trunkline dead list {name}` shows them")));
    }
    printed
}

fn list(letters: Vec<(Id, DeadLetter<Readable<Text>>)>, queue: &Description, as_json: bool) -> Result<()> {
    if as_json {
        return print::lines(letters.iter().map(|(id, letter)| object(*id, letter, queue)));
    }
    let mut table = Table::new([">id", "dead at", ">attempts", ">priority", "key", "error", "payload", "metadata"]);
    for (id, letter) in letters {
        table.row([
            id.to_string(),
            time::rfc3339(letter.dead_at),
            letter.attempt.to_string(),
            letter.priority.to_string(),
            letter.key.as_deref().unwrap_or_default().to_owned(),
            preview_of_error(&letter.error),
            Text::preview_of(&letter.payload),
            preview_of_metadata(&letter.metadata),
        ]);
    }
    print::text(table.of(queue).to_string())
}

fn object(id: Id, letter: &DeadLetter<Readable<Text>>, queue: &Description) -> Line {
    let line = Line::default().with("id", id).with("attempt", letter.attempt);
    let line = line.with("dead_at", time::exact(letter.dead_at));
    let line = line.with("enqueued_at", time::exact(letter.enqueued_at)).with("error", letter.error.as_str());
    let line = line.priority(queue, letter.priority).key(letter.key.as_deref()).metadata(&letter.metadata);
    line.payload_of(&letter.payload, json::is_of_json(queue))
}
