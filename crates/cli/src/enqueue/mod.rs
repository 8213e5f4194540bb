//! `trunkline enqueue`

mod bad_lines;
pub mod entry;
mod taken;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use trunkline::{Description, MAX_METADATA, MAX_PAYLOAD, Metadata};

pub use self::entry::named;
use self::{
    bad_lines::{BadLines, Fate},
    entry::{Due, Entry, Form, Usual},
    taken::Taken,
};
use crate::{
    any::AnyQueue,
    database::Database,
    error::{Error, Result},
    input, json,
    lines::Lines,
    number,
    print::{self, thousands},
    stop::Stop,
    text::Text,
    time,
};

/// The maximum length of a line of JSON. Escapes can make each byte of a payload and its metadata
/// six bytes long.
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
The PAYLOAD `-` stands for all of standard input as one message, including a line break at its end. To
enqueue a message that is a hyphen, use `printf - | trunkline enqueue QUEUE -`. Every other PAYLOAD is
the message itself, never the name of a file, whatever it begins with. A message has at most 64 MiB;
longer ones are refused.

A line of --json-lines is an object with these fields:
  payload      the message. For queues of json and jsonb any JSON; for other types a string that
               holds the type's text form (for bytea, the bytes of the string), or a number, true
               or false, which stand for their text
  payload_hex  instead of payload: bytes as pairs of hexadecimal digits
  delay        seconds, or a string with a unit: \"90s\"
  at           instead of delay: a point in time: \"2030-01-01T08:00:00Z\"; due_at is the same
  priority     from 0, the lowest, in a queue with priorities
  unique       its unique key, in a queue with uniqueness
  key          its key, in a queue with keys
  metadata     an object: {\"tenant\": \"acme\"}; values that are not strings become their JSON text
  columns      an object of columns that you added to the queue's table, and their values
The options --delay, --at, --priority, --unique, --key, --with and --column apply to lines that lack
the field.
All lines that `dequeue`, `peek`, `find`, `archive` and `dead list` print with --json can be such
lines. In them id, state, attempt, error, and the times enqueued_at, ended_at, dead_at and archived_at
are ignored, because the message is a new one.

The first ten bad lines are reported by number on standard error, and all are counted at the end; the
exit code is 0 if bad lines were to be skipped or saved. A line that is longer than a message can be
ends the program in any case. Lines are enqueued as they arrive, many at a time. A line whose unique key
another message has is not enqueued, or replaces that message; the number of these lines is reported on
standard error.

The program reads a pipe ahead of what it enqueues. If it ends early, it reports how many lines it has
read and not enqueued; they are no longer in the pipe. It says how many of them may be enqueued after
all, because the connection broke. --bad-lines FILE appends them to FILE, with bad lines, in order.

Examples:
  trunkline queue create words --type text
  trunkline enqueue words 'one message' 'and another'      prints their ids
  trunkline enqueue words --delay 1m 'in a minute'
  trunkline enqueue words --at 2090-01-01T08:00:00+02:00 --with tenant=acme 'much later'
  echo 'one message' | trunkline enqueue words -
  trunkline enqueue words --direct 'now'                   for `dequeue words --direct`
  trunkline enqueue words --file words.txt                 one message with all of its lines
  trunkline enqueue words --lines words.txt                prints how many
  grep -v '^#' list | trunkline enqueue words --lines -
  trunkline queue create emails --type jsonb
  trunkline enqueue emails '{\"to\": \"a@example.org\"}'
  trunkline enqueue emails --lines emails.ndjson --bad-lines rejected.ndjson
  echo '{\"payload\": {\"to\": \"b@example.org\"}, \"delay\": 90}' | trunkline enqueue emails --json-lines -
  trunkline archive words --json | trunkline enqueue words --delay 1h --json-lines -
  trunkline queue create reports --type text --uniqueness
  trunkline enqueue reports --unique acme 'of acme'         prints the id of the one that is there
  trunkline enqueue reports --unique acme --replace --delay 10s 'of acme, again'")]
pub struct Args {
    /// The queue
    queue: String,
    /// The messages, one per argument, `-` for standard input; without --direct, either all of them
    /// are enqueued or none
    payload: Vec<OsString>,
    /// A file whose whole content becomes one message; `-` for standard input; may be repeated
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// A file with one message per line, `-` for standard input; a line is every byte up to the
    /// line break
    #[arg(long, value_name = "FILE")]
    lines: Option<PathBuf>,
    /// A file with one message per line, as a JSON object that can also contain the due time, the
    /// metadata and more
    #[arg(long, value_name = "FILE")]
    json_lines: Option<PathBuf>,
    /// The treatment of lines that are not messages of the queue: `fail` stops at the first and
    /// reports it (the lines before it are enqueued), `skip` skips them, and a FILE has them
    /// appended, unchanged, for another attempt
    #[arg(long, value_name = "fail|skip|FILE", default_value = "fail", conflicts_with_all = ["payload", "file"])]
    bad_lines: Fate,
    /// The delay after which the messages are due
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = time::duration)]
    delay: Duration,
    /// The time at which the messages are due, in RFC 3339: 2030-01-01T08:00:00Z, or with an offset
    /// such as +02:00; a time in the past means now
    #[arg(long, value_name = "WHEN", value_parser = time::instant, conflicts_with = "delay")]
    at: Option<SystemTime>,
    /// Metadata: a name and a value stored with the payload, such as tenant=acme; may be repeated
    #[arg(long = "with", value_name = "NAME=VALUE", value_parser = named)]
    metadata: Vec<(String, String)>,
    /// The value of a column that you added to the queue's table, such as tenant=acme; may be
    /// repeated
    #[arg(long = "column", value_name = "NAME=VALUE", value_parser = named)]
    columns: Vec<(String, String)>,
    /// The priority of the messages, in a queue with priorities: from 0, the lowest
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number::priority)]
    priority: u8,
    /// A unique key, in a queue with uniqueness: if another message has the key, that message's id
    /// is printed, and nothing is enqueued
    #[arg(long, value_name = "KEY")]
    unique: Option<String>,
    /// Keep unique keys for this time, whatever happens to the messages; by default, until the
    /// messages have ended
    #[arg(long, value_name = "TIME", value_parser = time::duration)]
    unique_for: Option<Duration>,
    /// Replace the payload, metadata and due time of a waiting message with the same unique key
    #[arg(long)]
    replace: bool,
    /// The key of the messages, in a queue with keys: messages with the same key are handled in
    /// order
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Send each message inside a notification to a consumer that waits in `dequeue --direct`,
    /// without storing it; without such a consumer, the message is enqueued. An error ends the
    /// command, and the messages before it are already sent
    #[arg(long, conflicts_with_all = ["lines", "json_lines"])]
    direct: bool,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    if (args.unique_for.is_some() || args.replace) && args.unique.is_none() && args.json_lines.is_none() {
        return Err(Error::usage("--unique-for and --replace need the key of the messages: add --unique KEY"));
    }
    named_once("--with", &args.metadata)?;
    named_once("--column", &args.columns)?;
    let queue = database.queue(&args.queue).await?;
    let mut usual = Usual {
        due: args.at.map_or(Due::After(args.delay), Due::At),
        metadata: Metadata::from_iter(args.metadata),
        priority: args.priority,
        unique: None,
        within: args.unique_for,
        replaces: args.replace,
        key: args.key,
        columns: Metadata::from_iter(args.columns),
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
        let load = LineLoad { queue: &queue, form, usual, enqueued: 0, taken: Taken::default(), bad };
        return lines(load, Lines::open(&path, longest)?).await;
    }
    let payloads: Vec<Text> = match args.file.is_empty() {
        true => input::arguments(args.payload).await?,
        false => input::files(args.file).await?,
    };
    let entries: Vec<Entry<'_>> = payloads.iter().map(|payload| usual.payload(payload)).collect();
    if args.direct {
        let mut written = Ok(()); // a failed write does not keep the other messages from being sent
        for entry in &entries {
            written = written.and(print::done([queue.change_in_parts(queue.send_direct(entry.draft())).await?].iter()));
        }
        return written;
    }
    let enqueued = queue.change(queue.enqueue_many(entries.iter().map(Entry::draft))).await?;
    print::done(enqueued.iter().map(|(id, _)| id))
}

/// Refuses a name that an option sets twice, because only one of the values could be stored.
fn named_once(option: &str, values: &[(String, String)]) -> Result<()> {
    let mut names = BTreeSet::new();
    match values.iter().find(|(name, _)| !names.insert(name)) {
        Some((name, _)) => Err(Error::usage(format!("{option} sets {name:?} more than once"))),
        None => Ok(()),
    }
}

/// Enqueues chunks one after another, so that messages become due in the order of their lines.
async fn lines(mut load: LineLoad<'_>, mut lines: Lines) -> Result<()> {
    let mut stop = Stop::on_signals()?;
    let failed = loop {
        let chunk = tokio::select! {
            chunk = lines.next() => chunk,
            () = stop.asked() => break None,
        };
        let mut chunk = match chunk {
            None => break None,
            Some(Ok(chunk)) => chunk,
            Some(Err(error)) => break Some((error, Vec::new())),
        };
        let before = load.read();
        if let Err(error) = load.enqueue(&chunk).await {
            break Some((error, chunk.split_off((load.read() - before) as usize)));
        }
        lines.bar.set_message(format!("{} messages", thousands(load.enqueued)));
    };
    lines.bar.finish_and_clear();
    load.bad.tell();
    load.taken.tell();
    if let Some((error, mut left)) = failed {
        left.extend(lines.read_ahead().await);
        let kept = load.bad.keep(if lines.is_stream() { &left } else { &[] });
        return Err(load.ended_by(&error, kept));
    }
    let printed = print::done([load.enqueued].iter());
    if stop.is_asked() {
        // Reports the interruption even if the output could not be written: Ctrl-C also ends the
        // reader of a pipe.
        let next = match load.bad.keep(&lines.read_ahead().await) {
            None if lines.is_stream() => "no further line was read".to_owned(),
            None => format!("continue with `tail -n +{} FILE`", load.read() + 1),
            Some(kept) => kept,
        };
        return Err(Error::new(format!("interrupted after {} lines", thousands(load.read())))
            .hint(format!("these lines are enqueued, except bad ones; {next}")));
    }
    printed
}

/// The progress of loading lines into a queue.
struct LineLoad<'a> {
    queue: &'a AnyQueue<Text>,
    form: Form,
    usual: Usual,
    enqueued: u64,
    taken: Taken,
    bad: BadLines,
}

/// A line with its message, or with the reason why it is not a message.
type Read<'a> = (&'a Text, Result<Entry<'a>, String>);

impl LineLoad<'_> {
    fn read(&self) -> u64 {
        self.enqueued + self.taken.count() + self.bad.count()
    }

    /// Returns true if the queue can have a message with the defaults, apart from a missing key. If
    /// not, the options are wrong and not the lines.
    fn defaults_fit(&self, queue: &Description) -> bool {
        let key = self.usual.key.clone().or_else(|| (queue.partitions > 0).then(|| "any".to_owned()));
        let usual = Usual { key, ..self.usual.clone() };
        usual.payload(&Text(Vec::new())).misfit(queue).is_none()
    }

    async fn enqueue(&mut self, lines: &[Text]) -> Result<()> {
        let queue = self.queue.description();
        let checks = matches!(self.form, Form::Object { .. }) && self.defaults_fit(&queue);
        let read = |line| {
            let entry = self.usual.line(line, &self.form)?;
            match entry.misfit(&queue).filter(|_| checks) {
                Some(why) => Err(why),
                None => Ok(entry),
            }
        };
        let read: Vec<Read<'_>> = lines.iter().map(|line| (line, read(line))).collect();
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

    /// Splits messages into calls. A call reaches one server, and each unique key has its own.
    fn calls<'a>(&self, all: &'a [Read<'a>]) -> Vec<&'a [Read<'a>]> {
        let is_unique = |(_, entry): &Read<'_>| entry.as_ref().is_ok_and(|entry| entry.unique.is_some());
        match self.queue {
            AnyQueue::One(_) => vec![all],
            AnyQueue::Sharded { .. } => all.chunk_by(|one, next| !is_unique(one) && !is_unique(next)).collect(),
        }
    }

    /// Enqueues messages. If some messages are refused, halves the list to find them, because
    /// neither the library nor the server names them.
    async fn enqueue_messages(&mut self, all: &[Read<'_>]) -> Result<()> {
        let mut parts = self.calls(all);
        parts.reverse(); // the last one is enqueued next
        while let Some(part) = parts.pop() {
            let first = self.read() + 1;
            let entries = part.iter().filter_map(|(_, entry)| entry.as_ref().ok());
            match self.queue.enqueue_many(entries.map(Entry::draft)).await {
                Ok(enqueued) => {
                    for (_, one) in enqueued {
                        self.enqueued += u64::from(one.is_new());
                        self.taken.met(one);
                    }
                }
                Err(error) if error.is_bad_payload() => {
                    if let [(line, _)] = part {
                        self.bad.met(first, line, &Error::from(error).told().0)?;
                    } else {
                        let (one, other) = part.split_at(part.len() / 2);
                        parts.extend([other, one]);
                    }
                }
                Err(error) => {
                    self.bad.unknown = if error.is_outcome_unknown() { part.len() } else { 0 };
                    let last = self.read() + part.len() as u64;
                    let told =
                        format!("lines {} to {}: {}", thousands(first), thousands(last), Error::from(error).told().0);
                    return Err(Error::new(told).hint(match self.bad.unknown {
                        0 => "none of these lines was enqueued",
                        _ => "it is not known whether these lines were enqueued",
                    }));
                }
            }
        }
        Ok(())
    }

    /// Adds to an error how many of the preceding lines were enqueued, and what became of the lines
    /// that were read after them.
    fn ended_by(&self, error: &Error, kept: Option<String>) -> Error {
        let before = format!("the {} preceding lines were enqueued", thousands(self.enqueued));
        let (text, hint) = error.told();
        let told: Vec<String> = [Some(before), hint, kept].into_iter().flatten().collect();
        Error::new(text).hint(told.join("; "))
    }
}
