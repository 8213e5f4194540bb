//! `trunkline dequeue`

use std::{collections::VecDeque, time::Duration};

use trunkline::{Consumer, Lease, Message, Queue, Wait};

use crate::{
    database::Database,
    error::{Error, Result},
    outlet::{Chunk, Outlet},
    print::thousands,
    stop::Stop,
    text::Text,
};

/// The arguments of `trunkline dequeue`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A payload is printed as it is, and a line break after it: payloads with line breaks of their own become several lines
(`trunkline peek --json` shows them apart).

At least once, a message is acknowledged only after it was written and, where standard output is a pipe, taken out of
it. What was not, after SIGINT, SIGTERM or the end of the reader, is given back at once, and no attempt is charged.
At most once, what was taken from the queue and could not be written is lost.

Examples:
  trunkline dequeue words > words.txt             all that is due now
  trunkline dequeue words -n 10 | sort
  trunkline dequeue emails --follow | while read -r email; do …; done")]
pub struct Args {
    /// The queue
    queue: String,
    /// Messages to dequeue at most; without it, all that are due
    #[arg(short, value_name = "N")]
    n: Option<u64>,
    /// Wait for more messages: until there were N or, without -n, until a signal
    #[arg(long)]
    follow: bool,
    /// What happens to messages whose reader goes away
    #[arg(long, value_name = "MODE", default_value = "at-least-once")]
    mode: Mode,
    /// Keep what was delivered in the queue's archive (at least once only)
    #[arg(long)]
    archive: bool,
}

/// What happens to messages whose reader goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    /// They are lost: a message leaves the queue before it is printed
    AtMostOnce,
    /// They come again: a message leaves the queue after it was printed
    AtLeastOnce,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    if args.archive && args.mode == Mode::AtMostOnce {
        return Err(Error::usage("--archive keeps what is acknowledged, and at most once nothing is")
            .hint("leave out --archive or --mode at-most-once"));
    }
    let queue = database.queue(&args.queue).await?;
    let delivery = Delivery {
        left: args.n.unwrap_or(u64::MAX),
        follow: args.follow,
        archive: args.archive,
        size: Size::default(),
        outlet: Outlet::stdout()?,
        stop: Stop::on_signals()?,
        consumer: queue.consumer(Wait::Adaptive),
        queue,
    };
    match args.mode {
        Mode::AtMostOnce => delivery.at_most_once().await,
        Mode::AtLeastOnce => delivery.at_least_once().await,
    }
}

/// What comes out of a queue and goes to standard output.
struct Delivery {
    queue: Queue<Text>,
    consumer: Consumer<Text>,
    /// Messages that are still wanted.
    left: u64,
    follow: bool,
    archive: bool,
    size: Size,
    outlet: Outlet,
    stop: Stop,
}

impl Delivery {
    /// Leases, prints, acknowledges, until there is enough.
    async fn at_least_once(mut self) -> Result<()> {
        let mut held = Held { keep: self.archive, ..Held::default() };
        let outcome = self.lease_and_print(&mut held).await;
        // Whatever ended it: what was delivered is acknowledged, the rest is given back.
        let delivered = self.outlet.end().await;
        let settled = held.acknowledge(&self.queue, delivered).await;
        held.give_back(&self.queue).await?;
        held.warn();
        outcome.and(settled)
    }

    async fn lease_and_print(&mut self, held: &mut Held) -> Result<()> {
        while self.left > 0 && !self.stop.is_asked() {
            let n = self.size.messages(CHUNK).min(self.left) as usize;
            // Not given up half way: what the server leases for us, we get.
            let messages = self.queue.at_least_once(n).await?;
            if messages.is_empty() {
                if !self.follow {
                    return Ok(());
                }
                let delivered = self.outlet.drained().await;
                held.acknowledge(&self.queue, delivered).await?;
                self.wait().await?;
                continue;
            }
            self.left -= messages.len() as u64;
            let before = self.outlet.sent();
            let chunk = self.chunk(&messages, |lease, end| held.leases.push_back((lease, before + end)));
            drop(messages);
            self.outlet.send(chunk);
            self.print(held).await?;
            held.acknowledge(&self.queue, self.outlet.taken()).await?;
        }
        Ok(())
    }

    /// Returns when the chunk is written, cannot be, or a signal came; extends the leases meanwhile.
    async fn print(&mut self, held: &mut Held) -> Result<()> {
        let lease = self.queue.description().lease;
        let mut soon = tokio::time::interval(lease / 3);
        soon.tick().await; // the first is at once
        loop {
            tokio::select! {
                written = self.outlet.written() => return written,
                () = self.stop.asked() => return Ok(()),
                _ = soon.tick() => held.extend(&self.queue, lease).await?,
            }
        }
    }

    /// Takes no more than can be written at once, and prints it.
    async fn at_most_once(mut self) -> Result<()> {
        while self.left > 0 && !self.stop.is_asked() {
            if self.outlet.is_closed() {
                return Err(Error::OutputClosed);
            }
            let room = self.outlet.room().min(CHUNK);
            if room < CHUNK.min(crate::outlet::PIPE) / 2 {
                // The reader is slow, and what is taken now would hang about here.
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(2)) => continue,
                    () = self.stop.asked() => break,
                }
            }
            let n = self.size.messages(room).min(self.left) as usize;
            let messages = self.queue.at_most_once(n).await?;
            if messages.is_empty() {
                if !self.follow {
                    break;
                }
                self.wait().await?;
                continue;
            }
            self.left -= messages.len() as u64;
            let mut ends = Vec::with_capacity(messages.len());
            let before = self.outlet.sent();
            let chunk = self.chunk(&messages, |_, end| ends.push(before + end));
            self.outlet.send(chunk);
            let outcome = tokio::select! {
                written = self.outlet.written() => written,
                () = self.stop.asked() => Ok(()),
            };
            if outcome.is_err() || self.stop.is_asked() {
                let patient = tokio::time::timeout(Duration::from_secs(1), self.outlet.written()).await;
                let delivered = self.outlet.end().await;
                let lost = ends.iter().filter(|end| **end > delivered).count();
                if lost > 0 {
                    eprintln!("warning: {lost} messages were taken from the queue and could not be written");
                }
                return outcome.and(patient.unwrap_or(Ok(())));
            }
        }
        Ok(())
    }

    fn chunk(&mut self, messages: &[Message<Text>], mut each: impl FnMut(Lease, u64)) -> Chunk {
        let mut chunk = Chunk::default();
        let mut bytes = 0;
        for message in messages {
            bytes = chunk.line(&message.payload.0);
            each(message.lease(), bytes);
        }
        self.size.saw(messages.len() as u64, bytes);
        chunk
    }

    /// Waits until something is due, a signal comes, or the reader goes away.
    async fn wait(&mut self) -> Result<()> {
        let outlet = &self.outlet;
        let gone = async {
            while !outlet.is_closed() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            ready = self.consumer.ready() => ready?,
            () = self.stop.asked() => return Ok(()),
            () = gone => return Err(Error::OutputClosed),
        }
        // What is due may be in someone else's hands: not asked for more often than this.
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(())
    }
}

/// Bytes that are dequeued at a time, going by what was seen last.
const CHUNK: u64 = 512 << 10;

/// How large messages are.
struct Size {
    average: u64,
    /// Grows slowly: the next messages may be larger.
    limit: u64,
}

impl Default for Size {
    fn default() -> Self {
        Self { average: 1, limit: 16 }
    }
}

impl Size {
    /// How many messages make up some bytes.
    fn messages(&self, bytes: u64) -> u64 {
        (bytes / self.average).clamp(1, self.limit)
    }

    fn saw(&mut self, messages: u64, bytes: u64) {
        self.average = (bytes / messages.max(1)).max(1);
        self.limit = (self.limit * 4).min(8192);
    }
}

/// Leases of what is not known to be delivered, each with where it ends in all that was written.
#[derive(Default)]
struct Held {
    leases: VecDeque<(Lease, u64)>,
    /// In the archive, once they are acknowledged.
    keep: bool,
    late: u64,
}

impl Held {
    /// Acknowledges what ends within the bytes that were delivered.
    async fn acknowledge(&mut self, queue: &Queue<Text>, delivered: u64) -> Result<()> {
        let count = self.leases.partition_point(|(_, end)| *end <= delivered);
        let delivered = self.leases.range(..count).map(|(lease, _)| lease);
        let outcome = match self.keep {
            true => queue.archive(delivered).await,
            false => queue.ack(delivered).await,
        };
        self.note_late(outcome)?;
        self.leases.drain(..count);
        Ok(())
    }

    async fn extend(&mut self, queue: &Queue<Text>, by: Duration) -> Result<()> {
        let outcome = queue.extend(self.leases.iter().map(|(lease, _)| lease), by).await;
        if let Err(error) = &outcome {
            self.leases.retain(|(lease, _)| !error.lost_ids().contains(&lease.id));
        }
        self.note_late(outcome)
    }

    async fn give_back(&mut self, queue: &Queue<Text>) -> Result<()> {
        let leases = self.leases.drain(..).map(|(lease, _)| lease);
        match queue.release(leases).await {
            Err(error) if error.is_lease_lost() => Ok(()), // they are back already
            outcome => Ok(outcome?),
        }
    }

    fn note_late(&mut self, outcome: trunkline::Result<()>) -> Result<()> {
        match outcome {
            Err(error) if error.is_lease_lost() => {
                self.late += error.lost_ids().len() as u64;
                Ok(())
            }
            outcome => Ok(outcome?),
        }
    }

    fn warn(&self) {
        if self.late > 0 {
            let late = thousands(self.late);
            eprintln!("warning: {late} messages were delivered after their leases had ended, and may come again");
        }
    }
}
