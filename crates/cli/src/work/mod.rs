//! `trunkline work`

mod group;
mod orphans;
mod absent;
mod lines;
mod output;
mod ending;
mod counts;
mod job;
mod drain;

use std::{
    fmt::Write,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use trunkline::{Queue, RetryPolicy, Summary, Worker, shards};

use self::{absent::Absent, counts::Counts, job::Job, output::Output};
use crate::{
    any::{AnyQueue, Id},
    database::Database,
    error::{Error, Result},
    number,
    print::{self, thousands},
    stop::Stop,
    text::Text,
    time, warnings,
};

/// The arguments of `trunkline work`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The command is run by `sh -c` for each message, at least once. It finds
  the payload     on standard input, with a line break at its end; payloads of bytea unchanged
  what it is      in its environment: TRUNKLINE_QUEUE, TRUNKLINE_ID, TRUNKLINE_ATTEMPT (1 for the
                  first) and TRUNKLINE_ENQUEUED_AT (RFC 3339); if the message has them,
                  TRUNKLINE_KEY, TRUNKLINE_METADATA (a JSON object), and TRACEPARENT and
                  TRACESTATE; queue and id are the same at every attempt
but not DATABASE_URL, PGPASSWORD and those of PGDATABASE, PGHOST and libpq's other variables that
hold a connection string (see --pass-credentials).
Its exit code decides what happens to the message:
  0               done
  100             dead at once: do not try again
  126, 127        what sh returns for a command that cannot be executed or does not exist: the
                  program ends with an error, and all messages are given back; no attempt is
                  counted. Once a command has ended otherwise, these codes count as failures,
                  unless the command is missing
  anything else   tried again, after 1 second, then 2, 4 … up to an hour (of each pause
                  a random part between half and all), until the queue's attempts are used up;
                  the reason, with the last lines of its standard error, is kept
                  (`trunkline dead list`)

Its output is forwarded line by line, prefixed with `QUEUE ID | `. It runs in a process group of its
own, and processes that it leaves running in the group are ended with it. After the timeout, or when
the lease is lost, the group receives SIGTERM, and 5 seconds later SIGKILL.

Before it leases anything, the program looks for the first word of the command, and ends if there is
no such program, shell function or file.

SIGTERM, SIGINT and, on Linux, SIGHUP end the program gracefully: it leases no more, waits for the running
commands, ends those that take too long, and gives their messages back without counting an attempt.
A second signal kills everything at once. If the commands receive the signal, too, as under systemd,
the messages of commands that it ends are given back in the same way; a command that catches it
decides by its exit code. If the program itself is killed by SIGKILL, a guard process kills its
commands, too, and their messages come back when the leases end. A process that a command moves into
a session of its own (setsid) is not ended with it.

As the first process of a container, it also reaps processes that commands leave behind.

The exit code is 0 even if messages failed: the last line on standard error counts them.

Examples:
  trunkline work emails --exec 'jq -r .to | xargs -n 1 ./send-mail'
  trunkline work thumbnails --concurrency 4 --timeout 1m --exec 'convert - \"$TRUNKLINE_ID.png\"'
  trunkline work imports --drain --exec ./import.sh")]
pub struct Args {
    /// The queue
    queue: String,
    /// The command to run for each message
    #[arg(long, value_name = "COMMAND")]
    exec: String,
    /// The number of commands that run at the same time; as many as there are processors if not set
    #[arg(long, value_name = "N", value_parser = number::more_than_zero)]
    concurrency: Option<NonZeroUsize>,
    /// The maximum duration of a command; after it, the command is ended and has failed. No limit
    /// if not set
    #[arg(long, value_name = "TIME", value_parser = time::more_than_zero)]
    timeout: Option<Duration>,
    /// The number of retries after the first failed attempt; messages given back at an orderly end
    /// do not count. The queue's own maximum of attempts applies as well
    #[arg(long, value_name = "N", value_parser = number::count::<u32>)]
    retries: Option<u32>,
    /// A lease time instead of the queue's own. Leases are renewed while a command runs, so it
    /// determines how soon messages come back after a crash
    #[arg(long, value_name = "TIME", value_parser = time::more_than_zero)]
    lease: Option<Duration>,
    /// Exit once nothing is due; waits for due messages that a pause or a limit holds
    /// back, but not for failed messages that wait for their next attempt
    #[arg(long)]
    drain: bool,
    /// The time for which an orderly end waits for running commands before it ends them
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time::duration)]
    shutdown_after: Duration,
    /// Write a report every ten seconds, for `trunkline console` to show: what was handled, what
    /// failed, and how long it took
    #[arg(long)]
    report: bool,
    /// Let the command see `DATABASE_URL`, `PGPASSWORD` and connection strings in libpq's other
    /// variables, which are otherwise removed from its environment
    #[arg(long)]
    pass_credentials: bool,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    if absent::runs_nothing(&args.exec, |name| std::env::var(name).ok()) {
        return Err(Error::usage(
            "--exec contains no command, so every message would be acknowledged without any work",
        )
        .hint("a variable in it may not be set; `true` is a command that does nothing"));
    }
    let mut stop = Stop::on_signals_and_then(group::kill_all)?;
    let Some(queue) = stop.or_connected(database.queue(&args.queue)).await? else { return Ok(()) };
    print::if_paused(&queue.description());
    let exec = args.exec.clone();
    let absent = Arc::new(crate::blocking(move || Absent::check(&exec)).await?);
    group::guard()?;
    let counts = Arc::new(Counts::new(&args.queue));
    let (output, writing) = Output::start(counts.clone());
    let aside = output.aside();
    warnings::show_with(move |line| aside.say(line), !database.quiet);
    let job = Job {
        exec: args.exec.clone(),
        queue: args.queue.clone(),
        raw: queue.description().payload == "bytea",
        timeout: args.timeout,
        pass_credentials: args.pass_credentials,
        output: output.clone(),
        counts: counts.clone(),
        give_up: CancellationToken::new(),
        stop: stop.clone(),
        absent: absent.clone(),
    };
    let (give_up, shown) = (job.give_up.clone(), counts.clone());
    let worker = worker(&args, queue.clone(), job);
    let (shutdown_after, noted) = (args.shutdown_after, absent.clone());
    let (all, is_drained) = (queue.clone(), Arc::new(AtomicBool::new(false)));
    let (drained, note) = (is_drained.clone(), output.aside());
    let ended = worker.run(async move {
        tokio::select! {
            () = stop.asked() => {}
            () = output.closed() => note.say("standard output cannot be written to: the worker ends"),
            () = noted.noted() => {}
            () = drain::drained(&queue, &counts), if args.drain => drained.store(true, Ordering::Relaxed),
        }
        tokio::spawn(async move {
            tokio::time::sleep(shutdown_after).await;
            give_up.cancel();
        });
    });
    let summary = tokio::select! {
        summary = ended => summary,
        never = shown.show() => match never {},
        never = orphans::reap() => match never {},
    };
    shown.clear();
    let written = writing.end().await;
    let summary = summary?;
    if !database.quiet {
        print::note(told(&args.queue, &summary));
    }
    absent.outcome().and(written)?;
    if is_drained.load(Ordering::Relaxed) { all.complete(Ok(())) } else { Ok(()) }
}

/// A worker of one server or of several.
enum AnyWorker {
    One(Box<Worker<Text>>),
    Sharded(shards::Worker<Text>),
}

impl AnyWorker {
    async fn run(self, shutdown: impl Future<Output = ()>) -> trunkline::Result<Summary> {
        match self {
            Self::One(worker) => Box::pin(worker.run(shutdown)).await,
            Self::Sharded(worker) => Box::pin(worker.run(shutdown)).await,
        }
    }
}

fn worker(args: &Args, queue: AnyQueue<Text>, job: Job) -> AnyWorker {
    let job = Arc::new(job);
    let processors = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let concurrency = args.concurrency.unwrap_or_else(processors).get();
    // Normally the commands end and their messages are given back before this limit. The limit ends
    // the program if one of these steps hangs.
    let shutdown_after = args.shutdown_after + ending::PATIENCE + 3 * ending::LEFTOVERS;
    let (lease, retries, reports) = (args.lease, args.retries, args.report);
    let of = move |shard: Option<shards::Id>, queue: Queue<Text>| {
        let job = job.clone();
        let mut worker = Worker::with_attempt(queue, move |message, attempt| {
            let job = job.clone();
            async move { job.run(Id { shard, id: message.id }, message, attempt).await }
        })
        .concurrency(concurrency)
        .shutdown_after(shutdown_after)
        .reports(reports);
        if let Some(lease) = lease {
            worker = worker.lease(lease);
        }
        if let Some(retries) = retries {
            worker = worker.retry(RetryPolicy::default().attempts(retries.saturating_add(1)));
        }
        worker
    };
    match queue {
        AnyQueue::One(queue) => AnyWorker::One(Box::new(of(None, queue))),
        AnyQueue::Sharded { queue, .. } => {
            let each = move |shard, queue| of(Some(shard), queue);
            AnyWorker::Sharded(shards::Worker::new(queue, each).concurrency(concurrency))
        }
    }
}

/// Returns the summary that the program prints last.
fn told(queue: &str, summary: &Summary) -> String {
    let mut told = format!("{queue}: {} done", thousands(summary.done));
    let others = [
        (summary.retried, "failed"),
        (summary.dead, "dead"),
        (summary.released, "given back"),
        (summary.lost, "discarded because the lease was lost"),
    ];
    for (count, what) in others.into_iter().filter(|(count, what)| *count > 0 || *what == "failed") {
        let _ = write!(told, ", {} {what}", thousands(count)); // writing to a String cannot fail
    }
    told
}
