//! `trunkline dequeue`

mod held;

use std::time::Duration;

use trunkline::{Consumer, Lease, Message, Queue, Wait};

use self::held::Held;
use crate::{
    database::Database,
    error::{Error, Result},
    outage::Outage,
    outlet::{Chunk, Outlet},
    print,
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
        outage: Outage::default(),
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
    outage: Outage,
    stop: Stop,
}

impl Delivery {
    /// Leases, prints, acknowledges, until there is enough.
    async fn at_least_once(mut self) -> Result<()> {
        let mut held = Held::new(self.archive);
        let outcome = self.lease_and_print(&mut held).await;
        // Whatever ended it: what was delivered is acknowledged, the rest is given back.
        let delivered = self.outlet.end().await;
        let settled = self.settle(&mut held, delivered).await;
        held.warn();
        outcome.and(settled)
    }

    async fn lease_and_print(&mut self, held: &mut Held) -> Result<()> {
        while self.left > 0 && !self.stop.is_asked() {
            match self.lease_and_print_once(held).await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => self.wait_for_database(error).await?,
            }
        }
        Ok(())
    }

    /// Whether it goes on. After an error it can be called again: what is leased is kept until it is settled.
    async fn lease_and_print_once(&mut self, held: &mut Held) -> Result<bool> {
        if self.outage.lasted().is_some() {
            held.acknowledge(&self.queue, self.outlet.taken()).await?; // what was under way when it began
        }
        let n = self.size.messages(CHUNK).min(self.left) as usize;
        let queue = self.queue.clone();
        // Not given up half way: what the server leases for us, we get.
        let Some(messages) = self.unless_stopped(queue.at_least_once(n)).await else { return Ok(false) };
        let messages = messages?;
        self.outage.over();
        if messages.is_empty() {
            if !self.follow {
                return Ok(false);
            }
            let delivered = self.outlet.drained().await;
            held.acknowledge(&self.queue, delivered).await?;
            self.wait().await?;
            return Ok(true);
        }
        self.left -= messages.len() as u64;
        let before = self.outlet.sent();
        let chunk = self.chunk(&messages, |lease, end| held.add(lease, before + end));
        drop(messages);
        self.outlet.send(chunk);
        self.print(held).await?;
        held.acknowledge(&self.queue, self.outlet.taken()).await?;
        Ok(true)
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
                _ = soon.tick() => match held.extend(&self.queue, lease).await {
                    Ok(()) => self.outage.over(),
                    Err(error) => self.wait_for_database(error).await?,
                },
            }
        }
    }

    /// Ends all leases. A database that went away is waited for a while.
    async fn settle(&mut self, held: &mut Held, delivered: u64) -> Result<()> {
        loop {
            let settled = match held.acknowledge(&self.queue, delivered).await {
                Ok(()) => held.give_back(&self.queue).await,
                Err(error) => Err(error),
            };
            let Err(error) = settled else { return Ok(()) };
            if self.outage.lasted().is_some_and(|lasted| lasted > PATIENCE) {
                return Err(error);
            }
            tokio::time::sleep(self.outage.pause(error)?).await;
        }
    }

    /// Waits a moment where a follower may hope that the database comes back, or fails.
    async fn wait_for_database(&mut self, error: Error) -> Result<()> {
        if !self.follow {
            return Err(error);
        }
        if self.outlet.is_closed() {
            return Err(Error::OutputClosed); // there is nothing to wait for
        }
        let pause = self.outage.pause(error)?;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.stop.asked() => {}
        }
        Ok(())
    }

    /// A dequeue's answer, or nothing if a signal came and there was none soon after: then the database is away.
    async fn unless_stopped<R>(&self, dequeue: impl Future<Output = R>) -> Option<R> {
        let mut stop = self.stop.clone();
        tokio::select! {
            answer = dequeue => Some(answer),
            () = async { stop.asked().await; tokio::time::sleep(ANSWER).await } => None,
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
            let messages = match self.take(n).await {
                Ok(Some(messages)) => messages,
                Ok(None) => break,
                Err(error) => {
                    self.wait_for_database(error).await?;
                    continue;
                }
            };
            if messages.is_empty() {
                continue; // something may be due by now
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
                    print::note(format!("warning: {lost} messages were taken from the queue and could not be written"));
                }
                return outcome.and(patient.unwrap_or(Ok(())));
            }
        }
        Ok(())
    }

    /// Takes some messages or waits for some; `None` where nobody waits for more.
    async fn take(&mut self, n: usize) -> Result<Option<Vec<Message<Text>>>> {
        let queue = self.queue.clone();
        let Some(messages) = self.unless_stopped(queue.at_most_once(n)).await else { return Ok(None) };
        let messages = messages?;
        self.outage.over();
        if messages.is_empty() {
            if !self.follow {
                return Ok(None);
            }
            self.wait().await?;
        }
        Ok(Some(messages))
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

/// How long the last acknowledgements wait for a database that went away.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the answer to a dequeue is waited for, once a signal came.
const ANSWER: Duration = Duration::from_secs(1);
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
