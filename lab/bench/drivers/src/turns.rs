use std::time::{Duration, Instant};

use crate::{
    Failure, Person,
    cpu::Began,
    driver::{Driver, Way},
    measured::{Measured, Turn},
    server::Server,
    work::{Done, Work},
    workloads::Workload,
};

/// The limits of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// The maximum number of turns per way.
    pub rounds: usize,
    /// The measuring time after which a way gets no further turns at a workload. Every way gets at
    /// least five turns.
    pub enough: Duration,
}

/// The maximum duration of a first turn that is followed by a second one. In a longer turn, the
/// one-time preparations do not matter.
const LONG: Duration = Duration::from_secs(3);
/// The number of turns that warm up a way. PostgreSQL caches a generic plan when it executes a
/// statement for the sixth time.
const WARM: usize = 6;

pub struct Open {
    pub way: Way,
    pub driver: Box<dyn Driver>,
}

/// Measures a workload in every way on one server. The ways take turns. First checks that all ways
/// have the same effect.
pub async fn turns(
    server: &mut Server,
    open: &[Open],
    (workload, delay): (&Workload, Duration),
    people: &[Person],
    patience: Patience,
) -> Result<Vec<Measured>, Failure> {
    let mut rows = Vec::new();
    let mut same = None;
    for Open { way, driver } in open {
        server.clear().await?;
        let work = server.next(workload, people).await?;
        let (first, done) = turn(&**driver, &work).await.map_err(|failure| said(way, workload, &*failure))?;
        let Some(done) = done else { continue };
        let did = (done, server.effect(workload.kind).await?);
        if *same.get_or_insert_with(|| did.clone()) != did {
            return Err(format!("{} at {}: it did {did:?}, the others {same:?}", way.name, workload.name).into());
        }
        let turns = if first.time > LONG { vec![first] } else { Vec::new() };
        rows.push((&**driver, Measured { delay, workload: *workload, way: way.name, turns }));
    }
    server.populate().await?;
    for (driver, _) in rows.iter().filter(|(_, row)| row.turns.is_empty()) {
        let began = Instant::now();
        // Needs no cached plans for a single round, which is only a trial.
        let warm = if patience.rounds > 1 { WARM } else { 1 };
        for _ in 0..warm {
            turn(*driver, &server.next(workload, people).await?).await?;
            if began.elapsed() > LONG / 3 {
                break;
            }
        }
    }
    let count = rows.len();
    for round in 0..patience.rounds {
        // Each round starts with the next way, so that no way is always the first or the last.
        for at in 0..count {
            let (driver, row) = &mut rows[(at + round) % count];
            let spent: Duration = row.turns.iter().map(|turn| turn.time).sum();
            if spent > LONG && row.turns.len() == 1 || spent > patience.enough && row.turns.len() >= 5 {
                continue;
            }
            let work = server.next(workload, people).await?;
            row.turns.push(turn(*driver, &work).await?.0);
        }
    }
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

async fn turn(driver: &dyn Driver, work: &Work<'_>) -> Result<(Turn, Option<Done>), Failure> {
    let began = Began::now()?;
    let done = driver.run(work).await?;
    Ok((began.ended()?, done))
}

fn said(way: &Way, workload: &Workload, failure: &(dyn std::error::Error + Send + Sync)) -> Failure {
    format!("{} at {}: {failure}: {:?}", way.name, workload.name, failure.source().map(ToString::to_string)).into()
}
