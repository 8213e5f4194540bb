use std::{sync::Arc, time::Instant};

use hdrhistogram::Histogram;

use crate::{Contender, Failure, Settings, Tally, callers::Callers, produce, say, tally::histogram};

/// Measures only producers.
pub async fn run<C: Contender>(settings: Settings) -> Result<(), Failure> {
    let (contender, ready) = C::install(&settings).await?;
    let (contender, tally) = (Arc::new(contender), Arc::new(Tally::new(false, 0, Vec::new())));
    let callers = Callers::of(&contender, &settings);
    produce::warm_up(&callers, &settings).await?;
    say::ready(&ready).await?;
    let progress = tokio::spawn(say::progress(tally.clone()));
    let began = Instant::now();
    let mut sending = tokio::spawn(send(callers, settings.clone(), tally.clone()));
    let ended = tokio::select! {
        () = tokio::time::sleep(settings.time) => None,
        // With a requested rate, the last message may be sent a little before the end.
        ended = &mut sending => Some(ended??),
    };
    tally.finish();
    let (sent, took) = (tally.sent(), began.elapsed());
    progress.abort();
    say::latencies(&match ended {
        Some(latencies) => latencies,
        None => sending.await??,
    });
    say::done(sent, 0, took.as_secs_f64(), None);
    say::end().await
}

/// Sends at the requested rate, or as fast as calls are answered. Call durations are measured only
/// without a requested rate.
async fn send<C: Contender>(
    callers: Arc<Callers<C>>,
    settings: Settings,
    tally: Arc<Tally>,
) -> Result<Histogram<u64>, Failure> {
    match settings.rate {
        Some(rate) => produce::open_loop(callers, settings, rate, tally).await.map(|()| histogram()),
        None => produce::closed_loop(callers, settings, tally).await,
    }
}
