//! `trunkline dequeue`

mod at_least_once;
mod at_most_once;
mod direct;
mod held;
mod size;

use std::time::Duration;

use trunkline::Message;

use self::size::Size;
use crate::{
    any::{AnyConsumer, AnyQueue, Id, Lent},
    database::Database,
    error::{Error, Result},
    json::{self, Line},
    number,
    outage::Outage,
    outlet::{Chunk, Outlet},
    print,
    stop::Stop,
    text::Text,
    time,
};

/// The arguments of `trunkline dequeue`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A payload is printed unchanged, followed by a line break. So a payload that contains line breaks
becomes several lines. With --json each message is one line: an object with id, attempt, enqueued_at,
metadata and payload (payload_hex, in hexadecimal digits, if the bytes are not text; unchanged JSON
if the queue's payloads are JSON). It has no due time, because every dequeued message was due, and
neither priority nor unique key nor columns that you added.
`trunkline enqueue --json-lines` reads such lines into another queue, as new messages. But a pipe is no
safe way to move messages: what `enqueue` has read counts as delivered, and is lost if `enqueue` is
killed before it has enqueued it, or ends early without --bad-lines FILE. Inside a database, a
statement moves all messages or none:
  select trunkline.enqueue('letters', payload, metadata => metadata)
  from trunkline.take('emails', 1000);

With at-least-once, a message is acknowledged only after it was written and, if standard output is a
pipe, read from it; leases are extended while a slow reader reads. So read the output while the
program runs: it ends only after everything is read. After SIGINT, SIGTERM or the end of the reader,
all other messages are given back at once, and no attempt is counted. A signal waits for the reader
as long as it reads, at most ten seconds; after a second without progress, what is in its pipe
counts as read. With at-most-once, messages that were taken from the queue and could not be written
are lost.

Examples:
  trunkline dequeue words > words.txt             all that is due now
  trunkline dequeue words -n 10 | sort
  trunkline dequeue alarms --direct               those of `enqueue --direct`, without the disk
  trunkline dequeue emails --follow | while read -r email; do …; done
  trunkline dequeue emails --json --archive > emails.ndjson")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Args {
    /// The queue
    queue: String,
    /// The maximum number of messages to dequeue; all that are due if not given
    #[arg(short, value_name = "N", value_parser = number::count::<u64>)]
    n: Option<u64>,
    /// Wait for more messages: until N have been dequeued, or without -n until a signal
    #[arg(long)]
    follow: bool,
    /// A line of JSON for each message
    #[arg(long)]
    json: bool,
    /// The guarantee for messages whose reader goes away
    #[arg(long, value_name = "MODE", default_value = "at-least-once")]
    mode: Mode,
    /// Keep delivered messages in the queue's archive (only with at-least-once)
    #[arg(long)]
    archive: bool,
    /// Wait for messages inside notifications (`enqueue --direct`), and for all others: at most
    /// once, until N have arrived, or without -n until a signal
    #[arg(long, conflicts_with_all = ["archive", "follow", "mode"])]
    direct: bool,
}

/// The time limit for the server's answer to a dequeue after a signal.
const ANSWER: Duration = Duration::from_secs(1);

/// The guarantee for messages whose reader goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    /// Messages are lost: a message leaves the queue before it is printed
    AtMostOnce,
    /// Messages are delivered again: a message leaves the queue once it is written, and in a pipe
    /// once it is read; `head` reads more than it prints
    AtLeastOnce,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    if args.archive && args.mode == Mode::AtMostOnce {
        return Err(Error::usage("--archive keeps acknowledged messages, and --mode at-most-once acknowledges none")
            .hint("leave out --archive or --mode at-most-once"));
    }
    let queue = database.queue(&args.queue).await?;
    print::if_paused(&queue.description());
    let delivery = Delivery {
        left: args.n.unwrap_or(u64::MAX),
        follow: args.follow || args.direct,
        archive: args.archive,
        form: match args.json {
            true => Format::Object { of_json: json::is_of_json(&queue.description()) },
            false => Format::Payload,
        },
        size: Size::default(),
        outlet: Outlet::stdout()?,
        outage: Outage::default(),
        stop: Stop::on_signals()?,
        was_ready: false,
        consumer: queue.consumer(),
        queue,
    };
    match args.mode {
        _ if args.direct => delivery.direct().await,
        Mode::AtMostOnce => delivery.at_most_once().await,
        Mode::AtLeastOnce => delivery.at_least_once().await,
    }
}

#[derive(Debug, Clone, Copy)]
enum Format {
    Payload,
    /// A JSON object. If `of_json` is true, its payload is itself JSON.
    Object {
        of_json: bool,
    },
}

/// Messages on their way from a queue to standard output.
struct Delivery {
    queue: AnyQueue<Text>,
    consumer: AnyConsumer<Text>,
    /// The number of messages that the user still wants.
    left: u64,
    follow: bool,
    archive: bool,
    form: Format,
    size: Size,
    outlet: Outlet,
    outage: Outage,
    stop: Stop,
    /// True if a message was due at the end of the last wait, and none has been found since.
    was_ready: bool,
}

impl Delivery {
    /// Pauses if the program follows the queue and the database may recover. Otherwise returns the
    /// error.
    async fn wait_for_database(&mut self, error: Error) -> Result<()> {
        if !self.follow {
            return Err(error);
        }
        if self.outlet.is_closed() {
            return Err(Error::OutputClosed); // without a reader, there is no reason to wait for the database
        }
        let pause = self.outage.pause(error)?;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.stop.asked() => {}
        }
        Ok(())
    }

    /// Returns the outcome of a delivery. If it ended because no more messages were due, fails if a
    /// server was away, because that server may hold due messages.
    fn complete(&self, outcome: Result<()>) -> Result<()> {
        match outcome {
            Ok(()) if !self.follow && self.left > 0 && !self.stop.is_asked() => self.queue.complete(Ok(())),
            outcome => outcome,
        }
    }

    fn chunk(&mut self, messages: &[(Id, Message<Text>)], mut each: impl FnMut(Lent, u64)) -> Chunk {
        let mut chunk = Chunk::default();
        let mut bytes = 0;
        for (id, message) in messages {
            bytes = match self.form {
                Format::Payload => chunk.line(&message.payload.0),
                Format::Object { of_json } => chunk.line(object(*id, message, of_json).to_string().as_bytes()),
            };
            each(Lent { shard: id.shard, lease: message.lease() }, bytes);
        }
        self.size.saw(messages.len() as u64, bytes);
        chunk
    }

    /// Waits until a message is due, a signal arrives, or the reader is gone.
    async fn wait(&mut self) -> Result<()> {
        self.pause_if_held().await;
        tokio::select! {
            ready = self.consumer.ready() => Ok(ready?),
            () = self.stop.asked() => Ok(()),
            () = gone(&self.outlet) => Err(Error::OutputClosed),
        }
    }

    /// Pauses if another consumer holds the due messages. The pause limits how often the server is
    /// queried.
    async fn pause_if_held(&mut self) {
        if std::mem::replace(&mut self.was_ready, true) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn gone(outlet: &Outlet) {
    while !outlet.is_closed() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Returns a dequeue's result. Returns `None` if a signal arrived and the server did not answer
/// soon after it. The database then counts as unavailable.
async fn unless_stopped<R>(mut stop: Stop, dequeue: impl Future<Output = R>) -> Option<R> {
    tokio::select! {
        answer = dequeue => Some(answer),
        () = async { stop.asked().await; tokio::time::sleep(ANSWER).await } => None,
    }
}

fn object(id: Id, message: &Message<Text>, of_json: bool) -> Line {
    let line = Line::default().with("id", id).with("attempt", message.attempt);
    let line = line.with("enqueued_at", time::exact(message.enqueued_at));
    line.metadata(&message.metadata).payload(&message.payload, of_json)
}
