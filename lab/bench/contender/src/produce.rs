use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use tokio::{runtime::Handle, task::JoinSet};

use crate::{Contender, Failure, Settings, Tally, callers::Callers, payload::now, tally::histogram};

/// The number of histograms that the callers share.
const HISTOGRAMS: usize = 16;

/// Makes one call per caller, so that connections are open and statements are prepared before the
/// clock starts.
pub async fn warm_up<C: Contender>(callers: &Arc<Callers<C>>, settings: &Settings) -> Result<(), Failure> {
    let mut calls = JoinSet::new();
    for caller in 0..settings.producers {
        let callers = callers.clone();
        calls.spawn(async move { callers.send(caller, callers.next(caller, now())).await });
    }
    while let Some(call) = calls.join_next().await {
        call??;
    }
    Ok(())
}

/// Lets each caller send its next call as soon as the previous call is answered, until the end.
/// Returns the durations of the calls.
pub async fn closed_loop<C: Contender>(
    sending: Arc<Callers<C>>,
    settings: Settings,
    tally: Arc<Tally>,
) -> Result<Histogram<u64>, Failure> {
    // Creating a histogram touches all of its 170 KB. One histogram for each of a thousand callers
    // would take part of the measured time.
    let histograms: Arc<[_]> = (0..settings.producers.min(HISTOGRAMS)).map(|_| Mutex::new(histogram())).collect();
    let mut callers = JoinSet::new();
    for caller in 0..settings.producers {
        let (sending, batch, tally) = (sending.clone(), settings.batch, tally.clone());
        let histograms = histograms.clone();
        callers.spawn(async move {
            let latencies = &histograms[caller % histograms.len()];
            while !tally.is_over() {
                let next = sending.next(caller, now());
                let began = Instant::now();
                sending.send(caller, next).await?;
                let took = began.elapsed().as_micros() as u64;
                latencies.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(took);
                if !tally.is_over() {
                    tally.did_send(batch);
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

/// Sends at a steady rate, regardless of how long the answers take. A separate thread keeps the
/// pace, because a runtime's timers have a resolution of a millisecond.
pub async fn open_loop<C: Contender>(
    sending: Arc<Callers<C>>,
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
            let caller = call % settings.producers;
            let next = sending.next(caller, at);
            let (sending, failed, tally) = (sending.clone(), failed.clone(), tally.clone());
            runtime.spawn(async move {
                match sending.send(caller, next).await {
                    Ok(()) => tally.did_send(settings.batch),
                    Err(failure) => *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure),
                }
            });
        }
    })
    .await?;
    failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
}
