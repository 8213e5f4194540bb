use std::{sync::Arc, time::Instant};

use crate::{Contender, Failure, Settings, Tally, callers::Callers, produce, say};

/// Measures only producers.
pub async fn run<C: Contender>(settings: Settings) -> Result<(), Failure> {
    let (contender, ready) = C::install(&settings).await?;
    let (contender, tally) = (Arc::new(contender), Arc::new(Tally::new(false, 0, Vec::new())));
    let callers = Callers::of(&contender, &settings);
    produce::warm_up(&callers, &settings).await?;
    say::ready(&ready).await?;
    let progress = tokio::spawn(say::progress(tally.clone()));
    let began = Instant::now();
    let mut sending = tokio::spawn(produce::closed_loop(callers, settings.clone(), tally.clone()));
    tokio::select! {
        () = tokio::time::sleep(settings.time) => {}
        failed = &mut sending => { failed??; }
    }
    tally.finish();
    let (sent, took) = (tally.sent(), began.elapsed());
    progress.abort();
    say::latencies(&sending.await??);
    say::done(sent, 0, took.as_secs_f64(), None);
    say::end().await
}
