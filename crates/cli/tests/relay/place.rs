//! A queue, a broker, and the program that carries messages between them.

use std::{
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::runtime::Runtime;
use trunkline::{Db, Draft, Queue};
use trunkline_relay::Raw;

use crate::{
    brokers::{Broker, Kind, Process},
    ends::{Arrived, Sent},
    far::{Far, broker},
    fixture::Trunkline,
};

pub struct Place {
    pub trunkline: Trunkline,
    pub runtime: Runtime,
    pub queue: Queue<Raw>,
    pub far: Far,
    pub broker: Broker,
    programs: AtomicUsize,
}

impl Place {
    /// Starts a broker, and creates the queue `q` of text with these settings.
    pub fn of(kind: Kind, settings: &[&str]) -> Self {
        let broker = broker(kind);
        let trunkline = Trunkline::with_queue(&[&["--type", "text"], settings].concat());
        let runtime = Runtime::new().expect("a runtime");
        let queue = runtime.block_on(async {
            let db = Db::connect(&trunkline.url).await.expect("connected");
            db.queue("q").await.expect("opened")
        });
        let far = Far::make(kind, &broker);
        Self { trunkline, runtime, queue, far, broker, programs: AtomicUsize::new(0) }
    }

    /// Starts the program, from the queue to the broker.
    pub fn out(&self, more: &[&str]) -> Program {
        self.start(&[&["relay", "q", "--to", &self.far.address(true), "--json"], more].concat())
    }

    /// Starts the program, from the broker into the queue.
    pub fn inward(&self) -> Program {
        self.start(&["relay", "--from", &self.far.address(false), "--to", "q", "--json"])
    }

    fn start(&self, args: &[&str]) -> Program {
        let log = format!("program-{}", self.programs.fetch_add(1, Ordering::Relaxed));
        let command: Command = self.trunkline.command(args);
        Program { process: self.broker.serve(command, &log), log }
    }

    /// Enqueues one message for each of `keys` keys.
    pub fn enqueue(&self, sent: &mut Sent, keys: usize) {
        let keyed = self.queue.description().partitions > 0;
        let draft = |key: usize| {
            let key = format!("k{key}");
            let body = sent.next(&key);
            sent.is_in(body.clone());
            let draft = Draft::new(Raw(body.into()));
            if keyed { draft.key(key) } else { draft }
        };
        let drafts: Vec<_> = (0..keys).map(draft).collect();
        self.runtime.block_on(self.queue.enqueue_many(drafts)).expect("enqueued");
    }

    pub fn stats(&self) -> trunkline::Stats {
        self.runtime.block_on(self.queue.stats()).expect("counted")
    }

    pub fn messages(&self) -> usize {
        self.stats().messages as usize
    }

    /// Takes all messages of the queue. Returns them in the order of their ids.
    pub fn take_all(&self) -> Vec<Arrived> {
        let mut all = Vec::new();
        loop {
            let some = self.runtime.block_on(self.queue.take(10_000)).expect("taken");
            if some.is_empty() {
                break;
            }
            all.extend(some);
        }
        all.sort_by_key(|message| message.id);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        all.iter().map(|message| Arrived { body: text(&message.payload.0), id: None }).collect()
    }

    /// Returns the last line of JSON that the program printed.
    pub fn progress(&self, program: &Program) -> Option<Value> {
        self.broker.said(&program.log).lines().rev().find_map(|line| serde_json::from_str(line).ok())
    }

    /// Stops the program gracefully.
    #[track_caller]
    pub fn end(&self, mut program: Program) {
        let status = program.process.end();
        assert!(status.is_some_and(|status| status.success()), "{status:?}: {}", self.broker.said(&program.log));
    }
}

/// A running program.
pub struct Program {
    pub process: Process,
    log: String,
}

impl Program {
    /// Kills the program with SIGKILL.
    pub fn kill(mut self) {
        assert!(self.process.runs(), "it has ended by itself");
        self.process.kill();
    }
}

/// The maximum time that a test waits for a condition.
pub const LONGEST: Duration = Duration::from_secs(180);

/// The time between two polls, each of which may count the messages of a queue.
pub const POLL: Duration = Duration::from_millis(25);

/// Waits until the condition holds. The machine may be busy with other tests.
#[track_caller]
pub fn within(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONGEST;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {LONGEST:?}: {what}");
        thread::sleep(POLL);
    }
}
