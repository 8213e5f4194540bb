use std::{sync::Arc, time::Instant};

use crate::{
    Contender, Failure, Settings, Tally,
    callers::Callers,
    cycle::{stopped, too_early},
    say,
};

/// Measures only consumers, on a backlog.
pub async fn run<C: Contender>(settings: Settings) -> Result<(), Failure> {
    let (contender, ready) = C::install(&settings).await?;
    let (contender, tally) = (Arc::new(contender), Arc::new(Tally::new(false, 0, Vec::new())));
    Callers::of(&contender, &settings).seed().await?;
    say::ready(&ready).await?;
    let progress = tokio::spawn(say::progress(tally.clone()));
    let began = Instant::now();
    let mut consuming = match settings.case.as_str() {
        "ledger" => tokio::spawn(contender.record(tally.clone())),
        _ => tokio::spawn(contender.consume(tally.clone())),
    };
    tokio::select! {
        () = tokio::time::sleep(settings.time) => {}
        () = tally.has(settings.backlog) => {}
        ended = &mut consuming => return Err(too_early(ended)),
    }
    let (received, took) = (tally.all_received(), began.elapsed());
    tally.finish();
    progress.abort();
    say::done(0, received, took.as_secs_f64(), None);
    say::end().await?;
    stopped(consuming).await
}
