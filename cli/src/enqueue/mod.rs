//! `trunkline enqueue`

mod bad_lines;

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    time::Duration,
};

use trunkline::{Draft, Queue};

use self::bad_lines::{BadLines, Fate};
use crate::{
    database::Database,
    error::{Error, Result},
    lines::Lines,
    print::{self, thousands},
    stop::Stop,
    text::Text,
    time,
};

/// The arguments of `trunkline enqueue`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "trunkline enqueue [OPTIONS] <QUEUE> <PAYLOAD>...\n       trunkline enqueue [OPTIONS] <QUEUE> --lines <FILE>"
)]
#[command(after_help = "\
Bad lines are named by number on standard error, the first ten of them, and counted at the end; the exit code is 0 if
they were to be skipped or set aside. A line that is longer than a payload can be (64 MiB) ends it in any case.

Examples, with queues made by `trunkline queue create words --type text` and `trunkline queue create emails --type jsonb`:
  trunkline enqueue words 'one message' 'and another'      prints their ids
  trunkline enqueue words --delay 1m 'in a minute'
  trunkline enqueue words --lines words.txt                prints how many
  grep -v '^#' list | trunkline enqueue words --lines -
  trunkline enqueue emails '{\"to\": \"a@example.org\"}'
  trunkline enqueue emails --lines emails.ndjson --bad-lines rejected.ndjson")]
pub struct Args {
    /// The queue
    queue: String,
    /// A message each; all of them are enqueued, or none
    #[arg(required_unless_present = "lines")]
    payload: Vec<OsString>,
    /// A message for each line of a file, `-` for standard input; a line is all bytes but the line break at its end
    #[arg(long, value_name = "FILE", conflicts_with = "payload")]
    lines: Option<PathBuf>,
    /// What happens to lines that are no payloads of the queue's type: `fail` ends at the first and names it (what is
    /// before it is enqueued), `skip` passes over them, and a FILE gets them at its end, as they are, for a next try
    #[arg(long, value_name = "fail|skip|FILE", default_value = "fail", conflicts_with = "payload")]
    bad_lines: Fate,
    /// When the messages are due, from now
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = time::duration)]
    delay: Duration,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let queue = database.queue(&args.queue).await?;
    if let Some(path) = &args.lines {
        return lines(&queue, path, args.delay, &args.bad_lines).await;
    }
    let payloads: Vec<Text> = args.payload.into_iter().map(|payload| Text(payload.into_vec())).collect();
    let ids = queue.enqueue_many(payloads.iter().map(|payload| Draft::new(payload).after(args.delay))).await?;
    print::done(ids.iter())
}

/// One chunk after another, so that messages are due in the order of the lines.
async fn lines(queue: &Queue<Text>, path: &Path, delay: Duration, bad: &Fate) -> Result<()> {
    let mut load = Load { queue, delay, enqueued: 0, bad: BadLines::new(bad, path)? };
    let mut lines = Lines::open(path)?;
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
    queue: &'a Queue<Text>,
    delay: Duration,
    enqueued: u64,
    bad: BadLines,
}

impl Load<'_> {
    /// Lines of which the fate is known.
    fn read(&self) -> u64 {
        self.enqueued + self.bad.count()
    }

    /// Enqueues the next lines. One that is refused is found by halving: neither the library nor the server says which
    /// of many it is.
    async fn enqueue(&mut self, lines: &[Text]) -> Result<()> {
        let mut parts = vec![lines];
        while let Some(part) = parts.pop() {
            let first = self.read() + 1;
            match self.queue.enqueue_many(part.iter().map(|payload| Draft::new(payload).after(self.delay))).await {
                Ok(ids) => self.enqueued += ids.len() as u64,
                Err(error) if error.is_bad_payload() => {
                    if let [line] = part {
                        self.bad.met(first, line, error)?;
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

    /// The error with what became of the lines before.
    fn ended_by(&self, error: &Error) -> Error {
        let before = format!("the {} lines before are enqueued", thousands(self.enqueued));
        let (text, hint) = error.told();
        Error::new(text).hint(hint.map_or_else(|| before.clone(), |hint| format!("{before}; {hint}")))
    }
}
