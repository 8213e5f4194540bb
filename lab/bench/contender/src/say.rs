use std::{
    io::{BufRead, Read, Write},
    process::ExitCode,
    sync::{Arc, OnceLock},
    time::Duration,
};

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

use crate::{Failure, Missing, Ready, Tally, measure::Measure};

/// The counter of the process's allocations, if it has one.
static COUNTER: OnceLock<fn() -> (u64, u64)> = OnceLock::new();
/// The allocations and the allocated bytes before the clock started.
static BEFORE: OnceLock<(u64, u64)> = OnceLock::new();

/// Sets the counter of allocations, for a race.
pub fn count(measure: Measure) {
    if let Some(counter) = measure {
        let _ = COUNTER.set(counter); // set only once, because a process runs one race
    }
}

/// Prints a line. Ignores errors, because if the runner is gone, no reader is left.
fn line(value: &Value) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{value}").and_then(|()| out.flush());
}

/// Sends `ready` and waits for `go`.
pub async fn ready(ready: &Ready) -> Result<(), Failure> {
    let runtime = if cfg!(debug_assertions) { "Rust, debug build" } else { "Rust, release build" };
    line(&json!({ "ready": { "version": ready.version, "runtime": runtime, "settings": ready.settings } }));
    tokio::task::spawn_blocking(|| {
        let mut word = String::new();
        std::io::stdin().lock().read_line(&mut word)?;
        match word.trim() {
            "go" => {
                if let Some(counter) = COUNTER.get() {
                    let _ = BEFORE.set(counter()); // set only once, because `go` is sent once
                }
                Ok(())
            }
            word => Err(format!("expected go, not {word:?}").into()),
        }
    })
    .await?
}

/// Sends the counts twice a second, until the task is aborted.
pub async fn progress(tally: Arc<Tally>) {
    let mut tick = tokio::time::interval(Duration::from_millis(500));
    loop {
        tick.tick().await;
        line(&json!({ "progress": { "sent": tally.sent(), "received": tally.all_received() } }));
    }
}

pub fn latencies(latencies: &Histogram<u64>) {
    let counts: Map<String, Value> = latencies
        .iter_recorded()
        .map(|bucket| (bucket.value_iterated_to().to_string(), bucket.count_since_last_iteration().into()))
        .collect();
    if !counts.is_empty() {
        line(&json!({ "latency": counts }));
    }
}

pub fn done(sent: u64, received: u64, seconds: f64, disordered: Option<u64>) {
    let mut done = json!({ "sent": sent, "received": received, "seconds": seconds });
    if let Some(disordered) = disordered {
        done["disordered"] = disordered.into();
    }
    if let Some((counter, before)) = COUNTER.get().zip(BEFORE.get()) {
        let after = counter();
        done["allocations"] = (after.0 - before.0).into();
        done["allocated_bytes"] = (after.1 - before.1).into();
    }
    line(&json!({ "done": done }));
}

/// Reports the end of a step, with its allocations if they were counted.
pub fn done_with(count: u64, seconds: f64, allocated: Option<(u64, u64)>) {
    let mut done = json!({ "sent": count, "received": count, "seconds": seconds });
    if let Some((allocations, bytes)) = allocated {
        done["allocations"] = allocations.into();
        done["allocated_bytes"] = bytes.into();
    }
    line(&json!({ "done": done }));
}

/// Waits until the runner closes standard input, which it does after its checks.
pub async fn end() -> Result<(), Failure> {
    tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin().lock().by_ref(), &mut std::io::sink()))
        .await??;
    Ok(())
}

pub fn failure(failure: &Failure) -> ExitCode {
    if let Some(missing) = failure.downcast_ref::<Missing>() {
        line(&json!({ "missing": missing.0 }));
        return ExitCode::SUCCESS;
    }
    let mut text = failure.to_string();
    let mut cause = failure.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    line(&json!({ "error": text }));
    ExitCode::FAILURE
}
