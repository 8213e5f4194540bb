//! `trunkline enqueue`

mod bad_lines;
pub mod entry;

use std::{
    ffi::OsString,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use trunkline::{MAX_METADATA, MAX_PAYLOAD, Metadata};

pub use self::entry::named;
use self::{
    bad_lines::{BadLines, Fate},
    entry::{Due, Entry, Form, Usual},
};
use crate::{
    any::AnyQueue,
    database::Database,
    error::{Error, Result},
    input, json,
    lines::Lines,
    print::{self, thousands},
    stop::Stop,
    text::Text,
    time,
};

/// The longest line of JSON: each byte of a payload and its metadata can be an escape of six.
const LONGEST_OBJECT: usize = 6 * (MAX_PAYLOAD + MAX_METADATA) + 4096;

/// The arguments of `trunkline enqueue`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "\
trunkline enqueue [OPTIONS] <QUEUE> <PAYLOAD>...
       trunkline enqueue [OPTIONS] <QUEUE> --file <FILE>...
       trunkline enqueue [OPTIONS] <QUEUE> --lines <FILE>
       trunkline enqueue [OPTIONS] <QUEUE> --json-lines <FILE>",
    group = clap::ArgGroup::new("messages").args(["payload", "file", "lines", "json_lines"]).required(true)
)]
#[command(after_help = "\
A PAYLOAD that is `-` is all of standard input as one message, a line break at its end included; a
message that is a hyphen goes in by `printf - | trunkline enqueue QUEUE -`. No other argument means
a file, whatever it begins with. A message has at most 64 MiB, and what is longer is refused.

A line of --json-lines is an object with these fields:
  payload      the message. For queues of json and jsonb any JSON; for other types a string that
               holds the type's text form (for bytea, the bytes of the string), or a number, true
               or false, which stand for their text
  payload_hex  instead, bytes as pairs of hexadecimal digits
  delay        seconds, or a string with a unit: \"90s\"
  at           instead, a point in time: \"2030-01-01T08:00:00Z\"; due_at is the same
  priority     of a queue with priorities, from 0, the lowest
  unique       its unique key, of a queue with uniqueness
  key          of a queue whose messages have keys
  metadata     an object of names and texts: {\"tenant\": \"acme\"}; other values stand for their JSON
What a line does not say, --delay, --at, --priority, --unique, --key and --with say for it. Whatever
`dequeue`, `peek`, `find`,
`archive` and `dead list` print with --json can be such lines. Of these id, state, attempt, error,
and the times enqueued_at, ended_at, dead_at and archived_at are passed over: it is a new message.

Bad lines are named by number on standard error, the first ten of them, and counted at the end; the
exit code is 0 if they were to be skipped or set aside. A line that is longer than a message can be
ends it in any case. Lines are enqueued as they come, many at a time.

Examples:
  trunkline queue create words --type text
  trunkline enqueue words 'one message' 'and another'      prints their ids
  trunkline enqueue words --delay 1m 'in a minute'
  trunkline enqueue words --at 2090-01-01T08:00:00+02:00 --with tenant=acme 'much later'
  echo 'one message' | trunkline enqueue words -
  trunkline enqueue words --file words.txt                 one message with all of its lines
  trunkline enqueue words --lines words.txt                prints how many
  grep -v '^#' list | trunkline enqueue words --lines -
  trunkline queue create emails --type jsonb
  trunkline enqueue emails '{\"to\": \"a@example.org\"}'
  trunkline enqueue emails --lines emails.ndjson --bad-lines rejected.ndjson
  echo '{\"payload\": {\"to\": \"b@example.org\"}, \"delay\": 90}' | trunkline enqueue emails --json-lines -
  trunkline dequeue words -n 1 --json | trunkline enqueue words --delay 1h --json-lines -
  trunkline queue create reports --type text --uniqueness
  trunkline enqueue reports --unique acme 'of acme'         prints the id of the one that is there
  trunkline enqueue reports --unique acme --replace --delay 10s 'of acme, again'")]
pub struct Args {
    /// The queue
    queue: String,
    /// A message each, `-` for standard input; all of them are enqueued, or none
    payload: Vec<OsString>,
    /// A message that is the whole of a file, as it is, `-` for standard input; once for each
    /// message
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// A message for each line of a file, `-` for standard input; a line is all bytes but the line
    /// break at its end
    #[arg(long, value_name = "FILE")]
    lines: Option<PathBuf>,
    /// A message for each line, which is an object in JSON and also says when the message is due,
    /// and its metadata
    #[arg(long, value_name = "FILE")]
    json_lines: Option<PathBuf>,
    /// The treatment of lines that are no messages of the queue: `fail` ends at the first and names
    /// it (what is before it is enqueued), `skip` passes over them, and a FILE gets them at its
    /// end, as they are, for a next try
    #[arg(long, value_name = "fail|skip|FILE", default_value = "fail", conflicts_with_all = ["payload", "file"])]
    bad_lines: Fate,
    /// The delay after which the messages are due
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = time::duration)]
    delay: Duration,
    /// The time at which the messages are due, in RFC 3339: 2030-01-01T08:00:00Z, or with an offset
    /// as +02:00; a time that has passed is now
    #[arg(long, value_name = "WHEN", value_parser = time::instant, conflicts_with = "delay")]
    at: Option<SystemTime>,
    /// Metadata: a name and its text beside the payload, as tenant=acme; once for each name
    #[arg(long = "with", value_name = "NAME=VALUE", value_parser = named)]
    metadata: Vec<(String, String)>,
    /// The priority of the messages, in a queue that has some: from 0, the lowest
    #[arg(long, value_name = "N", default_value_t = 0)]
    priority: u8,
    /// A key that the message shares with no other, in a queue with uniqueness: where another has
    /// it, that one's id is printed, and nothing is enqueued
    #[arg(long, value_name = "KEY")]
    unique: Option<String>,
    /// Keep unique keys for this time, whatever becomes of the messages; without it, until they
    /// have ended
    #[arg(long, value_name = "TIME", value_parser = time::duration)]
    unique_for: Option<Duration>,
    /// Replace a message that has the unique key and waits: its payload, its metadata and when it
    /// is due
    #[arg(long)]
    replace: bool,
    /// The key of the messages, in a queue whose messages have keys: those of one are handled in
    /// order
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let queue = database.queue(&args.queue).await?;
    let mut usual = Usual {
        due: args.at.map_or(Due::After(args.delay), Due::At),
        metadata: Metadata::from_iter(args.metadata),
        priority: args.priority,
        unique: None,
        within: args.unique_for,
        replaces: args.replace,
        key: args.key,
    };
    usual.unique = args.unique.as_deref().map(|key| usual.key(key));
    let of_object = || Form::Object {
        payload: queue.description().payload.clone(),
        of_json: json::is_of_json(&queue.description()),
    };
    let read = match (args.lines, args.json_lines) {
        (Some(path), _) => Some((path, Form::Payload, MAX_PAYLOAD)),
        (_, Some(path)) => Some((path, of_object(), LONGEST_OBJECT)),
        _ => None,
    };
    if let Some((path, form, longest)) = read {
        let bad = BadLines::new(&args.bad_lines, &path)?;
        return lines(Load { queue: &queue, form, usual, enqueued: 0, bad }, Lines::open(&path, longest)?).await;
    }
    let payloads: Vec<Text> = match args.file.is_empty() {
        true => input::arguments(args.payload).await?,
        false => input::files(args.file).await?,
    };
    let entries: Vec<Entry<'_>> = payloads.iter().map(|payload| usual.payload(payload)).collect();
    let ids = queue.enqueue_many(entries.iter().map(Entry::draft)).await?;
    print::done(ids.iter())
}

/// Enqueues one chunk after another, so that messages are due in the order of the lines.
async fn lines(mut load: Load<'_>, mut lines: Lines) -> Result<()> {
    let mut stop = Stop::on_signals()?;
    loop {
        let chunk = tokio::select! {
            chunk = lines.next() => chunk,
            () = stop.asked() => break,
        };
        let outcome = match chunk {
            None => break,
            Some(Ok(chunk)) => load.enqueue(&chunk).await,
            Some(Err(error)) => Err(error),
        };
        if let Err(error) = outcome {
            lines.bar.finish_and_clear();
            load.bad.tell();
            return Err(load.ended_by(&error));
        }
        lines.bar.set_message(format!("{} messages", thousands(load.enqueued)));
    }
    lines.bar.finish_and_clear();
    load.bad.tell();
    print::done([load.enqueued].iter())?;
    if stop.is_asked() {
        return Err(Error::new(format!("interrupted after {} lines", thousands(load.read())))
            .hint(format!("those are enqueued, but for bad ones; go on with `tail -n +{} FILE`", load.read() + 1)));
    }
    Ok(())
}

/// Lines on their way into a queue.
struct Load<'a> {
    queue: &'a AnyQueue<Text>,
    form: Form,
    usual: Usual,
    enqueued: u64,
    bad: BadLines,
}

/// A line with its message, or the reason why it is none.
type Read<'a> = (&'a Text, Result<Entry<'a>, String>);

impl Load<'_> {
    /// Returns the number of lines whose outcome is known.
    fn read(&self) -> u64 {
        self.enqueued + self.bad.count()
    }

    async fn enqueue(&mut self, lines: &[Text]) -> Result<()> {
        let read: Vec<Read<'_>> = lines.iter().map(|line| (line, self.usual.line(line, &self.form))).collect();
        for run in read.chunk_by(|(_, one), (_, next)| one.is_ok() && next.is_ok()) {
            match run {
                [(line, Err(why))] => {
                    let number = self.read() + 1;
                    self.bad.met(number, line, why)?;
                }
                good => self.enqueue_messages(good).await?,
            }
        }
        Ok(())
    }

    /// Enqueues messages. A refused message is found by halving, because neither the library nor
    /// the server reports which one it is.
    async fn enqueue_messages(&mut self, all: &[Read<'_>]) -> Result<()> {
        let mut parts = vec![all];
        while let Some(part) = parts.pop() {
            let first = self.read() + 1;
            let entries = part.iter().filter_map(|(_, entry)| entry.as_ref().ok());
            match self.queue.enqueue_many(entries.map(Entry::draft)).await {
                Ok(ids) => self.enqueued += ids.len() as u64,
                Err(error) if error.is_bad_payload() => {
                    if let [(line, _)] = part {
                        self.bad.met(first, line, &Error::from(error).told().0)?;
                    } else {
                        let (one, other) = part.split_at(part.len() / 2);
                        parts.extend([other, one]);
                    }
                }
                Err(error) => {
                    let unknown = error.is_outcome_unknown();
                    let last = self.read() + part.len() as u64;
                    let told =
                        format!("lines {} to {}: {}", thousands(first), thousands(last), Error::from(error).told().0);
                    return Err(Error::new(told).hint(match unknown {
                        true => "it is not known whether these are enqueued",
                        false => "none of these is enqueued",
                    }));
                }
            }
        }
        Ok(())
    }

    /// Adds to an error what happened to the lines before it.
    fn ended_by(&self, error: &Error) -> Error {
        let before = format!("the {} lines before are enqueued", thousands(self.enqueued));
        let (text, hint) = error.told();
        Error::new(text).hint(hint.map_or_else(|| before.clone(), |hint| format!("{before}; {hint}")))
    }
}
