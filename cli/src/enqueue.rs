//! `trunkline enqueue`

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    time::Duration,
};

use trunkline::Queue;

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
Examples:
  trunkline enqueue emails 'one message' 'and another'     prints their ids
  trunkline enqueue emails --delay 60 'in a minute'
  trunkline enqueue words --lines words.txt                prints how many
  grep -v '^#' list | trunkline enqueue words --lines -")]
pub struct Args {
    /// The queue
    queue: String,
    /// A message each; all of them are enqueued, or none
    #[arg(required_unless_present = "lines")]
    payload: Vec<OsString>,
    /// A message for each line of a file, `-` for standard input; a line is all bytes but the line break at its end
    #[arg(long, value_name = "FILE", conflicts_with = "payload")]
    lines: Option<PathBuf>,
    /// When the messages are due, from now
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = time::seconds)]
    delay: Duration,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let queue = database.queue(&args.queue).await?;
    if let Some(path) = &args.lines {
        return lines(&queue, path, args.delay).await;
    }
    let payloads: Vec<Text> = args.payload.into_iter().map(|payload| Text(payload.into_vec())).collect();
    let ids = queue.enqueue_many_after(&payloads, args.delay).await?;
    print::lines(ids.iter())
}

/// One chunk after another, so that messages are due in the order of the lines.
async fn lines(queue: &Queue<Text>, path: &Path, delay: Duration) -> Result<()> {
    let mut lines = Lines::open(path)?;
    let mut stop = Stop::on_signals()?;
    let mut enqueued = 0;
    loop {
        let chunk = tokio::select! {
            chunk = lines.next() => chunk,
            () = stop.asked() => break,
        };
        let outcome = match chunk {
            None => break,
            Some(Ok(chunk)) => queue.enqueue_many_after(&chunk, delay).await.map_err(|error| {
                let unknown = error.is_outcome_unknown();
                let (text, _) = Error::from(error).told();
                let (first, last) = (enqueued + 1, enqueued + chunk.len() as u64);
                let fate =
                    if unknown { "it is not known whether these are enqueued" } else { "none of these is enqueued" };
                Error::new(format!("lines {} to {}: {text}", thousands(first), thousands(last))).hint(fate)
            }),
            Some(Err(error)) => Err(error),
        };
        match outcome {
            Ok(ids) => enqueued += ids.len() as u64,
            Err(Error::Failed(text, hint)) => {
                let before = format!("the {} lines before are enqueued", thousands(enqueued));
                let hint = hint.map_or_else(|| before.clone(), |hint| format!("{before}; {hint}"));
                return Err(Error::new(text).hint(hint));
            }
            Err(error) => return Err(error),
        }
        lines.bar.set_message(format!("{} messages", thousands(enqueued)));
    }
    lines.bar.finish_and_clear();
    print::line(enqueued.to_string())?;
    if stop.is_asked() {
        return Err(Error::new(format!("interrupted after {} lines", thousands(enqueued)))
            .hint(format!("those are enqueued; go on with `tail -n +{} FILE`", enqueued + 1)));
    }
    Ok(())
}
