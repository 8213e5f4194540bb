//! Runs one program per caller, each in its own process, and adds up their results.

use std::{process::Stdio, sync::Arc, time::Duration};

use hdrhistogram::Histogram;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    task::JoinSet,
};

use crate::{Contender, Failure, Missing, Ready, Settings, Tally, cycle, say, tally::histogram};

/// The time that a process has to exit after its standard input was closed.
const EXIT: Duration = Duration::from_secs(5);

/// Measures `program`, a contender that sends as one caller, in as many processes as there are
/// callers. The contender `C` prepares the database, and consumes if the case is a cycle.
pub(crate) async fn run<C: Contender>(settings: Settings, program: &[String]) -> Result<(), Failure> {
    let (contender, ready) = C::install(&settings).await?;
    let is_cycle = settings.case == "cycle";
    let tally = Arc::new(Tally::new(is_cycle, 0, Vec::new()));
    // If nothing is consumed, the contender keeps no connection open.
    let consuming = is_cycle.then(|| tokio::spawn(Arc::new(contender).consume(tally.clone())));
    let mut callers = Vec::new();
    for _ in 0..settings.producers {
        callers.push(Caller::start(program, &settings)?);
    }
    let mut one = Value::Null;
    for caller in &mut callers {
        one = caller.ready().await?;
    }
    if is_cycle {
        tally.has(settings.producers).await;
    }
    let word = |name: &str| one[name].as_str().unwrap_or_default();
    let ready = Ready {
        version: format!("{}, {}", ready.version, word("version")),
        settings: format!("a process per caller, {}: {}", word("runtime"), word("settings")),
    };
    say::ready(&ready).await?;
    tally.start();
    let progress = tokio::spawn(say::progress(tally.clone()));
    // With a requested rate, the processes start one after another, so that they do not send their
    // messages at the same time.
    let pause = settings.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate));
    let (mut measuring, mut measured) = (JoinSet::new(), Vec::new());
    for mut caller in callers {
        tokio::time::sleep(pause).await;
        let tally = tally.clone();
        measuring.spawn(async move { caller.measure(&tally).await.map(|result| (caller, result)) });
    }
    let (mut latencies, mut seconds) = (histogram(), 0.0);
    while let Some(ended) = measuring.join_next().await {
        let (caller, (own, took)) = ended??;
        latencies.add(own)?;
        seconds += took / settings.producers as f64;
        measured.push(caller);
    }
    let (sent, received) = (tally.sent(), tally.received_now());
    tally.finish();
    progress.abort();
    say::latencies(&tally.take_latencies().unwrap_or(latencies));
    say::done(sent, received, seconds, None);
    say::end().await?;
    for caller in measured {
        caller.end().await;
    }
    match consuming {
        Some(consuming) => cycle::stopped(consuming).await,
        None => Ok(()),
    }
}

/// A process that sends as one caller. It is killed when it is dropped.
struct Caller {
    process: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Caller {
    fn start(program: &[String], settings: &Settings) -> Result<Self, Failure> {
        let (path, words) = program.split_first().ok_or("no program was named")?;
        let rate = settings.rate.map(|rate| (rate / settings.producers as f64).to_string());
        let mut process = Command::new(path)
            .args(words)
            .envs([("BENCH_CASE", "send"), ("BENCH_PRODUCERS", "1")])
            .env("BENCH_RATE", rate.unwrap_or_else(|| "max".to_owned()))
            .kill_on_drop(true)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take().ok_or("it has no standard input")?;
        let lines = BufReader::new(process.stdout.take().ok_or("it has no standard output")?).lines();
        Ok(Self { process, input, lines })
    }

    async fn ready(&mut self) -> Result<Value, Failure> {
        loop {
            let mut line = self.line().await?;
            if line["ready"].is_object() {
                return Ok(line["ready"].take());
            }
        }
    }

    /// Returns the latencies of the calls, and the seconds that the measurement took.
    async fn measure(&mut self, tally: &Tally) -> Result<(Histogram<u64>, f64), Failure> {
        self.input.write_all(b"go\n").await?;
        let (mut latencies, mut counted) = (histogram(), 0);
        loop {
            let line = self.line().await?;
            for (micros, count) in line["latency"].as_object().into_iter().flatten() {
                latencies.saturating_record_n(micros.parse()?, count.as_u64().unwrap_or_default());
            }
            if let Some(sent) = ["progress", "done"].iter().find_map(|kind| line[kind]["sent"].as_u64()) {
                tally.did_send(sent.saturating_sub(counted) as usize);
                counted = sent;
            }
            if let Some(seconds) = line["done"]["seconds"].as_f64() {
                return Ok((latencies, seconds));
            }
        }
    }

    async fn line(&mut self) -> Result<Value, Failure> {
        let line = self.lines.next_line().await?.ok_or("a process ended before it was done")?;
        let line: Value = serde_json::from_str(&line)?;
        match (line["missing"].as_str(), line["error"].as_str()) {
            (Some(why), _) => Err(Missing(why.to_owned()).into()),
            (_, Some(why)) => Err(why.into()),
            _ => Ok(line),
        }
    }

    async fn end(mut self) {
        drop(self.input);
        // Waits for the process to exit. If it does not exit in time, the drop of this value kills
        // it.
        let _ = tokio::time::timeout(EXIT, self.process.wait()).await;
    }
}
