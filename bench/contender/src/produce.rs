use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use tokio::{runtime::Handle, task::JoinSet};

use crate::{
    Contender, Failure, Settings, Tally,
    payload::{now, payload},
    payloads,
    tally::histogram,
};

/// Callers share this many histograms.
const HISTOGRAMS: usize = 16;

/// Puts the backlog in: 16 calls of 1,000 at the same time, never more than that in memory.
pub async fn seed<C: Contender>(contender: &Arc<C>, settings: &Settings) -> Result<(), Failure> {
    let mut calls = JoinSet::new();
    let mut left = settings.backlog;
    while left > 0 || !calls.is_empty() {
        while left > 0 && calls.len() < 16 {
            let (contender, n, bytes) = (contender.clone(), left.min(1000), settings.payload);
            calls.spawn(async move { contender.seed(payloads(n, bytes)).await });
            left -= n;
        }
        if let Some(call) = calls.join_next().await {
            call??;
        }
    }
    Ok(())
}

/// Sends as fast as the answers come, until it is over; the times of the calls.
pub async fn closed_loop<C: Contender>(
    contender: Arc<C>,
    settings: Settings,
    tally: Arc<Tally>,
) -> Result<Histogram<u64>, Failure> {
    // A histogram is 170 KB that are touched when it is made: one for each of a thousand callers would take a part of the time.
    let histograms: Arc<[_]> = (0..settings.producers.min(HISTOGRAMS)).map(|_| Mutex::new(histogram())).collect();
    let mut callers = JoinSet::new();
    for caller in 0..settings.producers {
        let (contender, settings, tally) = (contender.clone(), settings.clone(), tally.clone());
        let histograms = histograms.clone();
        callers.spawn(async move {
            let latencies = &histograms[caller % histograms.len()];
            while !tally.is_over() {
                let payloads = payloads(settings.batch, settings.payload);
                let began = Instant::now();
                contender.send(caller, payloads).await?;
                let took = began.elapsed().as_micros() as u64;
                latencies.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(took);
                if !tally.is_over() {
                    tally.did_send(settings.batch);
                }
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    let mut all = histogram();
    for latencies in &*histograms {
        all.add(&*latencies.lock().unwrap_or_else(PoisonError::into_inner))?;
    }
    Ok(all)
}

/// Sends at a steady rate, however long the answers take. The pace is kept by a thread of its own: a runtime's timers are a millisecond wide.
pub async fn open_loop<C: Contender>(
    contender: Arc<C>,
    settings: Settings,
    rate: f64,
    tally: Arc<Tally>,
) -> Result<(), Failure> {
    let failed: Arc<Mutex<Option<Failure>>> = Arc::default();
    let (pace, runtime) = ((failed.clone(), tally.clone()), Handle::current());
    tokio::task::spawn_blocking(move || {
        let (failed, tally) = pace;
        let (began, began_at) = (Instant::now(), now());
        let calls = (rate * settings.time.as_secs_f64() / settings.batch as f64) as usize;
        for call in 0..calls {
            let due = Duration::from_secs_f64(call as f64 * settings.batch as f64 / rate);
            std::thread::sleep(due.saturating_sub(began.elapsed()));
            if tally.is_over() {
                return;
            }
            let at = began_at + due.as_micros() as u64;
            let payloads = (0..settings.batch).map(|_| payload(at, settings.payload)).collect();
            let (contender, failed, tally) = (contender.clone(), failed.clone(), tally.clone());
            let caller = call % settings.producers;
            runtime.spawn(async move {
                match contender.send(caller, payloads).await {
                    Ok(()) => tally.did_send(settings.batch),
                    Err(failure) => *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure),
                }
            });
        }
    })
    .await?;
    failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
}
