use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::{JoinError, JoinHandle};

use crate::{
    Contender, Failure, Settings, Tally,
    callers::{Callers, timed},
    produce, say,
};

/// The time that consumers have to stop after the end of the measurement.
const STOP: Duration = Duration::from_secs(5);

/// Measures producers and consumers at the same time.
pub async fn run<C: Contender>(settings: Settings) -> Result<(), Failure> {
    let (contender, ready) = C::install(&settings).await?;
    let contender = Arc::new(contender);
    let timed = timed(&*contender, &settings).await?;
    let tally = Arc::new(Tally::new(settings.rate.is_some(), settings.keys, timed));
    let callers = Callers::of(&contender, &settings);
    callers.seed().await?;
    let consume = contender.clone().consume(tally.clone());
    let mut consuming = if settings.backlog == 0 {
        let mut consuming = tokio::spawn(consume);
        callers.send_one().await?;
        tokio::select! {
            () = tally.has(1) => {}
            ended = &mut consuming => return Err(too_early(ended)),
        }
        say::ready(&ready).await?;
        consuming
    } else {
        // Warms nothing up, because a warm-up would already consume messages of the backlog.
        say::ready(&ready).await?;
        tokio::spawn(consume)
    };
    tally.start();
    let progress = tokio::spawn(say::progress(tally.clone()));
    let began = Instant::now();
    let mut producing = tokio::spawn(produce(callers, settings.clone(), tally.clone()));
    let mut window =
        tokio::time::interval_at((began + settings.time / settings.windows).into(), settings.time / settings.windows);
    let (mut produced, mut windows) = (false, 0);
    while windows < settings.windows {
        tokio::select! {
            _ = window.tick() => {
                windows += 1;
                if let Some(latencies) = tally.take_latencies() {
                    say::latencies(&latencies);
                }
            }
            ended = &mut producing, if !produced => { ended??; produced = true }
            ended = &mut consuming => return Err(too_early(ended)),
        }
    }
    let (sent, received, took) = (tally.sent(), tally.received_now(), began.elapsed());
    let disordered = tally.disordered();
    tally.finish();
    progress.abort();
    say::done(sent, received, took.as_secs_f64(), disordered);
    say::end().await?;
    if !produced {
        stopped(producing).await?;
    }
    stopped(consuming).await
}

async fn produce<C: Contender>(callers: Arc<Callers<C>>, settings: Settings, tally: Arc<Tally>) -> Result<(), Failure> {
    match settings.rate {
        Some(rate) => produce::open_loop(callers, settings, rate, tally).await,
        None => produce::closed_loop(callers, settings, tally).await.map(drop),
    }
}

/// Returns an error with the reason why the consumers stopped before the end.
pub fn too_early(ended: Result<Result<(), Failure>, JoinError>) -> Failure {
    match ended {
        Ok(Ok(())) => "the consumers stopped by themselves".into(),
        Ok(Err(failure)) => failure,
        Err(panic) => panic.into(),
    }
}

/// Waits at most `STOP` for the task to end, and then aborts it. Its unfinished calls do not count.
pub async fn stopped(mut task: JoinHandle<Result<(), Failure>>) -> Result<(), Failure> {
    if let Ok(ended) = tokio::time::timeout(STOP, &mut task).await {
        return ended?;
    }
    task.abort();
    Ok(())
}
