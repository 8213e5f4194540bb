//! Trunkline measured beside the SQL of hasql-queue: same driver, same process, same server, in turns.
//!
//! `cargo run --release -p trunkline-bench -- [ROUNDS] [NAME]` prints a line a measurement and the medians at the end.

mod coalesced;
mod hasql_queue;
mod idle;
mod many;
mod one;

use std::{collections::BTreeMap, future::Future, path::PathBuf, pin::Pin, time::Instant};

use trunkline::{Db, Queue, Settings};
use trunkline_embedded::{Binaries, Cluster};

/// What every measurement is given.
#[derive(Clone)]
pub struct Ground {
    url: String,
    db: Db,
    /// The server's own programs, its socket's folder and port, for pgbench.
    place: (PathBuf, PathBuf, u16),
}

/// Named figures of one measurement, in the unit that the name says.
pub type Figures = Vec<(&'static str, f64)>;
type Failure = Box<dyn std::error::Error + Send + Sync>;
type Run = fn(Ground) -> Pin<Box<dyn Future<Output = Result<Figures, Failure>> + Send>>;

const RUNS: &[(&str, Run)] = &[
    ("coalesced", |ground| Box::pin(coalesced::run(ground))),
    ("many", |ground| Box::pin(many::run(ground))),
    ("one", |ground| Box::pin(one::run(ground))),
    ("plain-insert", |ground| Box::pin(one::plain(ground))),
    ("pgbench", |ground| Box::pin(one::pgbench(ground))),
    ("idle", |ground| Box::pin(idle::run(ground))),
    ("plain-idle", |ground| Box::pin(one::plain_idle(ground))),
    ("handed-over", |ground| Box::pin(idle::handed_over(ground))),
    ("hasql-queue", |ground| Box::pin(hasql_queue::run(ground))),
];

impl Ground {
    /// A fresh, empty queue of bytes.
    async fn queue(&self, name: &str) -> Result<Queue<Vec<u8>>, Failure> {
        if self.db.list_queues().await?.iter().any(|queue| queue.name == name) {
            self.db.drop_queue(name).await?;
        }
        self.db.create_queue(name, &Settings::new("bytea")).await?;
        Ok(self.db.queue(name).await?)
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(3), |rounds| rounds.parse())?;
    let only = arguments.next();
    let cluster = Cluster::temporary().binaries(Binaries::find_or_fetch(|_, _| {})?).start()?;
    println!("{}; {:.0} fsyncs/s", cluster.binaries().version(), fsyncs_per_second()?);
    let runtime = tokio::runtime::Runtime::new()?;
    let url = cluster.url("postgres");
    let ground = runtime.block_on(async {
        let db = Db::connect(&url).await?;
        db.migrate().await?;
        let place = (cluster.binaries().dir().to_owned(), cluster.socket_dir().to_owned(), cluster.port());
        Ok::<_, Failure>(Ground { url: url.clone(), db, place })
    })?;
    let mut all: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for round in 1..=rounds {
        for (name, run) in RUNS.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| name == only)) {
            // Spawned: work on the thread that blocks would cost twice as much.
            let figures = runtime.block_on(async { tokio::spawn(run(ground.clone())).await })??;
            let text: Vec<String> = figures.iter().map(|(what, value)| format!("{what} {value:.0}")).collect();
            println!("{round} {name:12} {}", text.join("  "));
            for (what, value) in figures {
                all.entry((name, what)).or_default().push(value);
            }
        }
    }
    println!("\nmedian (least, most); {:.0} fsyncs/s", fsyncs_per_second()?);
    for ((name, what), mut values) in all {
        values.sort_by(f64::total_cmp);
        println!(
            "{name:12} {what:24} {:12.0} ({:.0}, {:.0})",
            values[values.len() / 2],
            values[0],
            values[values.len() - 1]
        );
    }
    Ok(())
}

/// How fast this disk is now: writes of 8 KB, each made durable.
fn fsyncs_per_second() -> Result<f64, Failure> {
    use std::io::{Seek, Write};
    let path = std::env::temp_dir().join(format!("trunkline-fsync-{}", std::process::id()));
    let mut file = std::fs::File::create(&path)?;
    let began = Instant::now();
    for _ in 0..200 {
        file.rewind()?;
        file.write_all(&[0; 8192])?;
        file.sync_data()?;
    }
    let rate = 200.0 / began.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    Ok(rate)
}

/// The value below which that share of the sorted values lies.
fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values
        .get(((values.len() as f64 * share) as usize).min(values.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}
