//! Communicates with a contender: starts it, waits until it is ready, sends `go`, and reads its
//! results.

mod log;

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use serde::Deserialize;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};
use trunkline_programs::{Program, last_words};

use self::log::Log;
use crate::{
    Failure,
    ground::Address,
    results::{Latency, Told},
};

/// The time limit for a contender to install its schema and send its backlog.
const GET_READY: Duration = Duration::from_secs(300);
/// The additional time limit per million rows that the contender has to write and delete.
const FOR_A_MILLION_DEAD: Duration = Duration::from_secs(120);
/// The time that a contender may be silent while the clock runs.
pub const SILENCE: Duration = Duration::from_secs(20);
/// The maximum overtime of a contender, in silence periods. Without this limit, progress lines
/// would keep a contender with a hung call alive.
const OVERTIME: u32 = 2;
/// The time that a contender may take to exit.
const END: Duration = Duration::from_secs(15);

/// A line of a contender's output.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Ready(Ready),
    Progress(Progress),
    Latency(std::collections::HashMap<u64, u64>),
    Done(Done),
    Missing(String),
    Error(String),
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct Ready {
    pub version: String,
    #[serde(default)]
    pub runtime: String,
    #[serde(default)]
    pub settings: String,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub struct Progress {
    pub sent: u64,
    pub received: u64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Done {
    pub sent: u64,
    pub received: u64,
    pub seconds: f64,
    /// The number of messages that arrived out of the order of their keys.
    pub disordered: Option<u64>,
    pub allocations: Option<u64>,
    pub allocated_bytes: Option<u64>,
}

/// The reason why the communication ended early.
#[derive(Debug)]
pub enum Ended {
    Missing(String),
    Stalled(String),
    Failed(String),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure.to_string())
    }
}

impl From<std::io::Error> for Ended {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The database of a contender, and its connection string on each server if there are several.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub name: &'a str,
    pub stripes: &'a [String],
}

/// A running contender.
pub struct Contending {
    child: Child,
    pub pid: u32,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    log: Log,
    silence: Duration,
    time: Duration,
    get_ready: Duration,
    /// The time by which the contender must be done. It is known once `go` was sent.
    overdue: Option<Instant>,
    latencies: Histogram<u64>,
    /// The latencies of each part of the measured time.
    windows: Vec<Latency>,
    pub progress: Progress,
}

impl Contending {
    /// Starts a contender that may be silent for at most `silence`.
    pub fn start(
        program: &Program,
        address: &Address,
        database: &Place<'_>,
        told: &Told,
        silence: Duration,
    ) -> Result<Self, Ended> {
        let Place { name: database, stripes } = *database;
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).current_dir(&program.folder).process_group(0).kill_on_drop(true);
        command.env("BENCH_URL", address.url(database)).env("PGDATABASE", database);
        command.env("PGHOST", &address.host).env("PGPORT", address.port.to_string()).env("PGUSER", &address.user);
        command.env("PGPASSWORD", &address.password);
        for (name, value) in [
            ("CASE", told.case.clone()),
            ("PAYLOAD", told.payload.to_string()),
            ("BATCH", told.batch.to_string()),
            ("PRODUCERS", told.producers.to_string()),
            ("CONSUMERS", told.consumers.to_string()),
            ("RATE", told.rate.map_or_else(|| "max".to_owned(), |rate| rate.to_string())),
            ("BACKLOG", told.backlog.to_string()),
            ("MESSAGES", told.messages.to_string()),
            ("KEYS", told.keys.to_string()),
            ("TIMED", if told.timed.is_empty() { "all".to_owned() } else { told.timed.clone() }),
            ("DEAD", told.dead.to_string()),
            ("WINDOWS", told.windows.to_string()),
            ("SECONDS", told.seconds.to_string()),
            ("WAIT", told.wait.clone()),
            ("DEQUEUE_BATCH", told.dequeue_batch.to_string()),
            ("THREADS", told.threads.to_string()),
        ] {
            command.env(format!("BENCH_{name}"), value);
        }
        if !stripes.is_empty() {
            command.env("BENCH_STRIPES", stripes.join("\n"));
        }
        if told.threads > 0 {
            // Limits Go's threads by the only setting that Go has for this.
            command.env("GOMAXPROCS", told.threads.to_string());
        }
        let time = Duration::try_from_secs_f64(told.seconds).map_err(Failure::from)?;
        let log = Log::new()?;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log.file.try_clone()?).spawn()?;
        let (pid, input) = (child.id().unwrap_or_default(), child.stdin.take());
        let output = child.stdout.take().ok_or_else(|| Ended::Failed("it has no standard output".to_owned()))?;
        let lines = BufReader::new(output).lines();
        Ok(Self {
            child,
            pid,
            input,
            lines,
            log,
            silence,
            time,
            get_ready: GET_READY.max(silence) + FOR_A_MILLION_DEAD * told.dead.div_ceil(1_000_000) as u32,
            overdue: None,
            latencies: histogram(),
            windows: Vec::new(),
            progress: Progress::default(),
        })
    }

    /// Waits until the contender is ready.
    pub async fn ready(&mut self) -> Result<Ready, Ended> {
        loop {
            match self.line(self.get_ready).await? {
                Line::Ready(ready) => return Ok(ready),
                Line::Progress(progress) => self.progress = progress,
                Line::Missing(why) => return Err(Ended::Missing(why)),
                line => return Err(Ended::Failed(format!("it should have said that it is ready, and said {line:?}"))),
            }
        }
    }

    pub async fn go(&mut self) -> Result<(), Ended> {
        let input = self.input.as_mut().ok_or_else(|| Ended::Failed("it has no standard input".to_owned()))?;
        input.write_all(b"go\n").await?;
        self.overdue = Some(Instant::now() + self.time + OVERTIME * self.silence);
        Ok(input.flush().await?)
    }

    /// Reads the contender's next line while the clock runs. Returns the results, or `None` if they
    /// have not arrived yet.
    pub async fn listen(&mut self) -> Result<Option<Done>, Ended> {
        if self.overdue.is_some_and(|overdue| Instant::now() > overdue) {
            let late = (OVERTIME * self.silence).as_secs_f64();
            return Err(self.stalled(&format!("still going {late:.0} s after its time")).await);
        }
        match self.line(self.silence).await? {
            Line::Done(done) => return Ok(Some(done)),
            Line::Progress(progress) => self.progress = progress,
            Line::Latency(counts) => {
                let mut window = histogram();
                for (value, count) in counts {
                    window.saturating_record_n(value, count);
                }
                self.latencies.add(&window).map_err(Failure::from)?;
                self.windows.extend(summary(&window));
            }
            line => return Err(Ended::Failed(format!("it should have said how far it is, and said {line:?}"))),
        }
        Ok(None)
    }

    /// Closes the contender's input and waits until the contender has exited.
    pub async fn end(mut self) -> Result<(Option<Latency>, Vec<Latency>), Ended> {
        drop(self.input.take());
        match timeout(END, self.child.wait()).await {
            Ok(status) if status.as_ref().is_ok_and(std::process::ExitStatus::success) => {}
            Ok(_) => return Err(self.exited().await),
            Err(_) => self.kill().await,
        }
        Ok((summary(&self.latencies), std::mem::take(&mut self.windows)))
    }

    /// Kills the contender and its descendants, which have their own process group.
    async fn kill(&mut self) {
        self.kill_group();
        let _ = self.child.wait().await;
    }

    fn kill_group(&self) {
        if self.pid != 0 {
            let group = format!("-{}", self.pid);
            let mut kill = std::process::Command::new("kill");
            let _ = kill.args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        }
    }

    async fn line(&mut self, patience: Duration) -> Result<Line, Ended> {
        let Ok(line) = timeout(patience, self.lines.next_line()).await else {
            return Err(self.stalled(&format!("silent for {:.0} s", patience.as_secs_f64())).await);
        };
        let Some(line) = line? else { return Err(self.exited().await) };
        match serde_json::from_str(&line) {
            Ok(Line::Error(text)) => Err(Ended::Failed(text)),
            Ok(line) => Ok(line),
            Err(error) => Err(Ended::Failed(format!("it said {line:?}, which is not the protocol: {error}"))),
        }
    }

    async fn stalled(&mut self, how: &str) -> Ended {
        self.kill().await;
        let Progress { sent, received } = self.progress;
        Ended::Stalled(format!("{how}; before, {sent} sent and {received} received"))
    }

    /// Describes how a contender stopped without being asked, with its last output.
    async fn exited(&mut self) -> Ended {
        let status = match timeout(END, self.child.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            _ => "it closed its output".to_owned(),
        };
        self.kill().await;
        Ended::Failed(format!("{status}; {}", last_words(&self.log.end())))
    }
}

fn histogram() -> Histogram<u64> {
    let mut latencies = Histogram::new_with_max(1_000_000_000, 3).expect("bounds that hdrhistogram takes");
    latencies.auto(true);
    latencies
}

/// Summarizes latencies. Returns `None` if nothing was counted.
fn summary(counted: &Histogram<u64>) -> Option<Latency> {
    (!counted.is_empty()).then(|| Latency {
        count: counted.len(),
        mean: counted.mean(),
        p50: counted.value_at_quantile(0.5),
        p90: counted.value_at_quantile(0.9),
        p99: counted.value_at_quantile(0.99),
        p999: counted.value_at_quantile(0.999),
        max: counted.max(),
    })
}

/// Kills the process group, however the contender ended. So no descendant is still running when the
/// next contender is measured.
impl Drop for Contending {
    fn drop(&mut self) {
        self.kill_group();
    }
}

#[cfg(test)]
mod tests;
