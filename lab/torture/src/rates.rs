//! The benchmark of rates: many keys, each with a rate, and workers that are killed one after
//! another. No key may exceed its rate, and only a small part of the rate may be lost.

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use tokio::time::{Instant, sleep, sleep_until};
use tokio_postgres::Client;
use trunkline::{Db, Draft, Limits, Queue, Settings};
use trunkline_embedded::Cluster;
use trunkline_programs::say;

use crate::{
    crew::Crew,
    folder::Folder,
    ground,
    history::{self, Micros},
    roles::Role,
    run::launch,
};

/// The queue whose keys have a rate.
pub const QUEUE: &str = "rated";

#[derive(Debug, clap::Args)]
pub struct Rates {
    /// Keys, each of which has more messages than can be handled in the time.
    #[arg(long, default_value_t = 1000)]
    keys: u64,
    /// Messages of a key a second.
    #[arg(long, default_value_t = 10.0)]
    rate: f64,
    /// Messages of a key at once, after a rest.
    #[arg(long, default_value_t = 1)]
    burst: u32,
    /// Length of the run, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Workers, each a process.
    #[arg(long, default_value_t = 4)]
    processes: u32,
    /// Seconds until one of them is killed, and started again, and then between kills; 0 kills
    /// none.
    #[arg(long, default_value_t = 1.0)]
    kill_every: f64,
    /// Length of a lease, in milliseconds. Partitions of a killed worker stay held for one and a
    /// half times as long.
    #[arg(long, default_value_t = 1000)]
    lease: u64,
    /// Tolerated delay, in milliseconds, between a handler's start and its reading of the clock.
    #[arg(long, default_value_t = 100)]
    jitter: u64,
    /// Folder of the processes' histories.
    #[arg(long, default_value = "target/torture-rates")]
    folder: PathBuf,
}

/// Runs the benchmark. Returns true if no key was too fast.
pub fn run(rates: &Rates) -> Result<bool, String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(measure(rates))
}

async fn measure(asked: &Rates) -> Result<bool, String> {
    let folder = Folder::create(&asked.folder)?;
    let cluster = Cluster::temporary().start().map_err(|error| format!("no server: {error}"))?;
    let url = cluster.url("postgres");
    furnish(&url, asked).await.map_err(|error| error.to_string())?;
    let sql = ground::client(&url).await?;
    let mut crew = Crew::new(folder.clone(), launch(url, Vec::new(), 1));
    for _ in 0..asked.processes {
        crew.add(&Role::Rated.name())?;
    }
    shared(&sql, asked.processes).await?;
    let (from, start) = (history::now(), Instant::now());
    let (length, mut killed) = (Duration::from_secs(asked.seconds.into()), 0);
    if asked.kill_every > 0.0 {
        let every = Duration::from_secs_f64(asked.kill_every);
        while every * (killed + 1) < length {
            sleep_until(start + every * (killed + 1)).await;
            crew.kill((killed % asked.processes) as usize)?;
            killed += 1;
        }
    }
    sleep_until(start + length).await;
    crew.end();
    let begun = begun(&folder)?;
    let time = from..from + length.as_micros() as u64;
    let all: usize = begun.values().map(|begun| begun.iter().filter(|at| time.contains(at)).count()).sum();
    let allowed = asked.keys as f64 * asked.rate * f64::from(asked.seconds);
    say(format_args!(
        "{all} began in {} s, {:.3} of what the rates allow; {killed} processes were killed; leases of {} ms",
        asked.seconds,
        all as f64 / allowed,
        asked.lease
    ));
    let early = begun.values().map(|begun| early(begun, asked.rate, asked.burst)).fold(0.0, f64::max);
    say(format_args!("by the clocks of its handlers a key was ahead of its rate by at most {:.1} ms", early * 1e3));
    crew.misbehaved.iter().for_each(say);
    Ok(early * 1e3 <= asked.jitter as f64 && begun.len() as u64 == asked.keys && crew.misbehaved.is_empty())
}

async fn furnish(url: &str, rates: &Rates) -> trunkline::Result<()> {
    let db = Db::connect(url).await?;
    db.migrate().await?;
    let settings = Settings::of::<String>().partitions(64).lease(Duration::from_millis(rates.lease));
    db.create_queue(QUEUE, &settings).await?;
    db.limit_queue(QUEUE, &Limits::none().key_per_second(rates.rate).key_burst(rates.burst)).await?;
    let queue: Queue<String> = db.queue(QUEUE).await?;
    // Enqueues more messages per key than the handlers can begin before the processes end.
    let each = (rates.rate * (f64::from(rates.seconds) + 30.0)) as u64 + u64::from(rates.burst);
    for _ in 0..each {
        queue.enqueue_many((1..=rates.keys).map(|key| Draft::new(String::new()).key(format!("key {key}")))).await?;
    }
    Ok(())
}

pub fn key_of(key: Option<&str>) -> u64 {
    key.and_then(|key| key.strip_prefix("key ")).and_then(|nr| nr.parse().ok()).unwrap_or_default()
}

/// Waits until each process holds partitions.
async fn shared(sql: &Client, processes: u32) -> Result<(), String> {
    let holders = format!(
        "select count(distinct h.holder) >= {processes} from trunkline.lane_{QUEUE} h where h.held_until > clock_timestamp()"
    );
    for _ in 0..600 {
        let row = sql.query_one(&holders, &[]).await.map_err(|error| error.to_string())?;
        if row.get(0) {
            return Ok(());
        }
        sleep(Duration::from_millis(100)).await;
    }
    Err("the processes did not share the lanes within a minute".to_owned())
}

/// Returns the times at which the messages of each key began, in order.
fn begun(folder: &Folder) -> Result<BTreeMap<u64, Vec<Micros>>, String> {
    let mut begun: BTreeMap<u64, Vec<Micros>> = BTreeMap::new();
    let histories = folder.path().join("histories");
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", histories.display());
    for entry in fs::read_dir(&histories).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            let process = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            for op in history::read(process, &fs::read_to_string(&path).map_err(failed)?)? {
                op.call.tags.iter().for_each(|key| begun.entry(*key).or_default().push(op.began));
            }
        }
    }
    for begun in begun.values_mut() {
        begun.sort_unstable();
    }
    Ok(begun)
}

/// Returns the maximum number of seconds by which a message of a key began too early. In any
/// period, no more messages may begin than the burst and the rate allow.
fn early(begun: &[Micros], rate: f64, burst: u32) -> f64 {
    let (mut worst, mut least): (f64, f64) = (0.0, f64::INFINITY);
    for (nr, at) in begun.iter().enumerate() {
        let first = begun[0];
        // `ahead` is the key's lead over its rate at this message. When the lead was smallest, the
        // bucket was as full as it can be.
        let ahead = nr as f64 / rate - (at - first) as f64 / 1e6;
        least = least.min(ahead);
        worst = worst.max(ahead - least - (f64::from(burst) - 1.0) / rate);
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::early;

    #[test]
    fn early_beginning_is_found_at_any_position() {
        let every_tenth: Vec<u64> = (0..50).map(|nr| nr * 100_000).collect();
        assert!(early(&every_tenth, 10.0, 1).abs() < 1e-9);
        assert!((early(&every_tenth, 5.0, 1) - 4.9).abs() < 1e-9, "49 of them take 9.8 s");
        let burst: Vec<u64> = (0..5).map(|_| 10_000_000).chain((1..20).map(|nr| 10_000_000 + nr * 100_000)).collect();
        assert!(early(&burst, 10.0, 5).abs() < 1e-9);
        assert!((early(&burst, 10.0, 4) - 0.1).abs() < 1e-9);
        // Tests a pause, which does not fill a bucket beyond its burst.
        let after_rest = [0, 10_000_000, 10_000_000, 10_000_000];
        assert!((early(&after_rest, 10.0, 2) - 0.1).abs() < 1e-9);
        assert!(early(&after_rest, 10.0, 3).abs() < 1e-9);
    }
}
