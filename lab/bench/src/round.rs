//! Runs one turn of a row: creates a database, runs the contender in it, and measures its costs.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use trunkline_programs::Program;

use crate::{
    Failure,
    contend::{Contending, Done, Ended, Place, Progress, Ready},
    disk::Slowed,
    ground::{Address, Counters, Database, Ground},
    machine::{self, Used},
    results::{Round, Sample},
    suites::Plan,
    watch::Watch,
};

/// The share of the processors that the host may take away before a round counts as disturbed.
const STOLEN: f64 = 0.03;
/// The factor by which the disk may become faster or slower before a round counts as disturbed.
const MOVED: f64 = 2.0;

/// Runs the contender once. Afterwards drops the database, even after a failure, unless the caller
/// wants to keep it.
pub async fn round(
    ground: &mut Ground,
    plan: &Plan,
    program: &Program,
    silence: Duration,
    keep: bool,
    told: impl FnMut(Progress),
) -> Result<Result<(Ready, Round), Ended>, Failure> {
    let database = ground.database(plan.statements, plan.told.stripes).await?;
    let outcome = measured(ground, &database, plan, program, silence, told).await;
    if !keep {
        ground.drop(database).await?;
    }
    Ok(outcome)
}

async fn measured(
    ground: &Ground,
    database: &Database,
    plan: &Plan,
    program: &Program,
    silence: Duration,
    mut told: impl FnMut(Progress),
) -> Result<(Ready, Round), Ended> {
    // Keeps the proxy until the end of the round.
    let (address, _proxy): (Address, _) = match plan.told.delay_ms > 0.0 || ground.tcp {
        true => database.address.delayed(plan.told.delay_ms).map(|(address, proxy)| (address, Some(proxy)))?,
        false => (database.address.clone(), None),
    };
    // The measurement of the disk takes a tenth of a second, or less if the turn itself is short.
    let turn = Duration::try_from_secs_f64(plan.told.seconds).map_err(Failure::from)?;
    let look = (turn / 10).min(Duration::from_millis(100));
    let fsyncs_before = ground.fsyncs(look)?;
    let hold = async |now: bool| match now {
        true => database.hold_snapshot().await.map(Some),
        false => Ok(None),
    };
    // Rows that are dead before the clock starts must have died while the snapshot was held. If
    // there are no such rows, the snapshot must not cover the contender's preparations.
    let _holder_of_dead = hold(plan.told.held_snapshot && plan.told.dead > 0).await?;
    let place = Place { name: &database.name, stripes: &database.stripes };
    let mut contending = Contending::start(program, &address, &place, &plan.told, silence)?;
    let ready = contending.ready().await?;
    if plan.told.backlog > 0 {
        // Autovacuum would have analyzed the tables long before a real backlog grew to this size.
        // Without statistics, the plans of many peers sort the whole table.
        database.client.batch_execute("analyze").await.map_err(Failure::from)?;
    }
    let _holder = hold(plan.told.held_snapshot && plan.told.dead == 0).await?;
    let _sleeper = match plan.told.sleeper {
        true => Some(database.sleep().await?),
        false => None,
    };
    if plan.told.settle > 0.0 {
        // Lets the consumers fall asleep.
        tokio::time::sleep(Duration::try_from_secs_f64(plan.told.settle).map_err(Failure::from)?).await;
    }
    let stolen = machine::stolen();
    let watch = match plan.is_watched() {
        true => Some(Watch::start(ground.session("postgres").await?, &database.name)),
        false => None,
    };
    let client = machine::used(contending.pid);
    let before = ground.counters(database).await?;
    let slowed = Slowed::begin(&ground.disk, plan.told.fsync_ms)?;
    let began = Instant::now();
    contending.go().await?;
    let mut series = Series::new(before);
    let done = loop {
        if let Some(done) = contending.listen().await? {
            break done;
        }
        told(contending.progress);
        if plan.sampled {
            series.look(ground, database, contending.progress).await?;
        }
    };
    let wall = began.elapsed().as_secs_f64();
    drop(slowed);
    let after = ground.counters(database).await?;
    let client = spent(client, machine::used(contending.pid));
    let memory = machine::memory(contending.pid);
    let waits = match watch {
        Some(watch) => watch.end().await?,
        None => BTreeMap::new(),
    };
    let stolen = stolen
        .zip(machine::stolen())
        .map_or(0.0, |(before, after)| (after.0 - before.0) as f64 / ((after.1 - before.1) as f64).max(1.0));
    let (latency, windows) = contending.end().await?;
    let dead_after = ground.dead_at_the_end(database).await?;
    let fsyncs_after = ground.fsyncs(look)?;
    let mut round = costs(plan, &done, client, wall, &before, &after);
    (round.dead_after, round.client_memory, round.waits) = (dead_after, memory, waits);
    // Stores no number without an `analyze`, which runs only if there is a backlog: the statistics
    // omit dead rows of open sessions.
    round.dead_before = (plan.told.backlog > 0).then_some(before.dead);
    // Omits the latency at full speed, because a message then waits for all messages before it.
    // That time shows the length of the queue.
    let told = plan.told.case != "cycle" || plan.told.rate.is_some();
    (round.latency, round.series) = (latency.filter(|_| told), series.samples);
    // Omits a single window, which would repeat the latencies of the whole round.
    round.windows = if windows.len() > 1 && told { windows } else { Vec::new() };
    (round.fsyncs_before, round.fsyncs_after, round.stolen) = (fsyncs_before, fsyncs_after, stolen);
    round.disturbed = disturbed(&round);
    Ok((ready, round))
}

/// Returns the resources that were used between two readings.
fn spent(before: Option<Used>, after: Option<Used>) -> Option<Used> {
    let (before, after) = before.zip(after)?;
    Some(Used {
        cpu: (after.cpu - before.cpu).max(0.0),
        step: before.step.max(after.step),
        read: after.read.saturating_sub(before.read),
        written: after.written.saturating_sub(before.written),
    })
}

fn costs(plan: &Plan, done: &Done, client: Option<Used>, wall: f64, before: &Counters, after: &Counters) -> Round {
    let server = spent(before.used, after.used);
    let cpu = |used: Option<Used>| used.map(|used| used.cpu);
    // Sent and received messages may be the same messages, so the greater number counts. A step
    // that needs other steps before it has no cost per message, because the counters include these
    // other steps. A round whose consumers did not keep up also has no cost per message.
    let messages = done.sent.max(done.received);
    let kept_up = plan.told.case != "cycle" || done.received as f64 >= 0.9 * done.sent as f64;
    // The counters cover one server only.
    let told = messages > 0 && kept_up && !plan.is_prepared() && plan.told.stripes < 2;
    let each = |cost: f64| told.then(|| cost / messages as f64);
    let statements = before.statements.zip(after.statements);
    let statements = statements.map(|(before, after)| after.saturating_sub(before) as f64);
    let a_step = |total: u64| (messages > 0).then(|| total as f64 * plan.told.batch as f64 / messages as f64);
    Round {
        sent: done.sent,
        received: done.received,
        seconds: done.seconds,
        disordered: done.disordered,
        client_cpu_us: cpu(client).and_then(|cpu| each(cpu * 1e6)),
        server_cpu_us: cpu(server).and_then(|cpu| each(cpu * 1e6)),
        wal_bytes: each((after.wal - before.wal) as f64),
        transactions: each((after.xid - before.xid) as f64),
        statements: statements.and_then(each),
        client_cpu: cpu(client).map(|cpu| cpu / wall),
        server_cpu: cpu(server).map(|cpu| cpu / wall),
        statements_per_second: statements.map(|count| count / wall),
        cpu_step: [client, server].into_iter().flatten().map(|used| used.step).fold(0.0, f64::max),
        wal_per_second: Some((after.wal - before.wal) as f64 / wall),
        read_per_second: server.map(|used| used.read as f64 / wall),
        written_per_second: server.map(|used| used.written as f64 / wall),
        allocations: done.allocations.and_then(a_step),
        allocated_bytes: done.allocated_bytes.and_then(a_step),
        ..Round::default()
    }
}

fn disturbed(round: &Round) -> Option<String> {
    let (before, after) = (round.fsyncs_before, round.fsyncs_after);
    if before > after * MOVED || after > before * MOVED {
        return Some(format!("the disk went from {before:.0} to {after:.0} fsyncs/s"));
    }
    (round.stolen > STOLEN).then(|| format!("the host took {:.0} % of the processors", round.stolen * 100.0))
}

/// The sampler of a long run.
struct Series {
    began: Instant,
    last: (f64, Counters, Progress),
    samples: Vec<Sample>,
}

impl Series {
    fn new(before: Counters) -> Self {
        Self { began: Instant::now(), last: (0.0, before, Progress::default()), samples: Vec::new() }
    }

    /// Takes one sample per second in the first minutes, and fewer later, for a total of at most a
    /// few hundred.
    async fn look(&mut self, ground: &Ground, database: &Database, progress: Progress) -> Result<(), Failure> {
        let (at, (then, before, last)) = (self.began.elapsed().as_secs_f64(), self.last);
        if at - then < (at / 200.0).max(1.0) {
            return Ok(());
        }
        let now = ground.counters(database).await?;
        let received = progress.received.saturating_sub(last.received) as f64;
        let cpu = spent(before.used, now.used).map_or(0.0, |used| used.cpu);
        self.samples.push(Sample {
            at,
            sent: progress.sent.saturating_sub(last.sent) as f64 / (at - then),
            received: received / (at - then),
            server_cpu_us: cpu * 1e6 / received.max(1.0),
            dead: now.dead,
            size: now.size,
        });
        self.last = (at, now, progress);
        Ok(())
    }
}
