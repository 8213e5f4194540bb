//! The benchmark of schedules: many schedules that tick every second. The processes that make the
//! ticks are killed one after another. Each tick must be made once, and without much delay.

use std::{path::PathBuf, time::Duration};

use tokio::time::{Instant, sleep, sleep_until};
use tokio_postgres::Client;
use trunkline::{Db, Missed, Schedule, Settings};
use trunkline_embedded::Cluster;
use trunkline_programs::say;

use crate::{crew::Crew, folder::Folder, ground, roles::Role, run::launch};

#[derive(Debug, clap::Args)]
pub struct Ticks {
    /// Schedules, each of which ticks every second.
    #[arg(long, default_value_t = 1000)]
    schedules: u32,
    /// Length of the run, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Processes that make the ticks.
    #[arg(long, default_value_t = 3)]
    processes: u32,
    /// Seconds between kills, each at the time of a tick; the killed process is restarted.
    #[arg(long, default_value_t = 10)]
    kill_every: u32,
    /// Folder of the processes' error output.
    #[arg(long, default_value = "target/torture-ticks")]
    folder: PathBuf,
}

/// Runs the benchmark. Returns true if each tick was made once.
pub fn run(ticks: &Ticks) -> Result<bool, String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(measure(ticks))
}

async fn measure(ticks: &Ticks) -> Result<bool, String> {
    let folder = Folder::create(&ticks.folder)?;
    // With this setting, the server records when each row became visible to other sessions.
    let cluster = Cluster::temporary().setting("track_commit_timestamp", "on").start();
    let cluster = cluster.map_err(|error| format!("no server: {error}"))?;
    let url = cluster.url("postgres");
    furnish(&url, ticks.schedules).await.map_err(|error| error.to_string())?;
    let sql = ground::client(&url).await?;
    let mut crew = Crew::new(folder, launch(url, Vec::new(), 1));
    for _ in 0..ticks.processes {
        crew.add(&Role::Ticker.name())?;
    }
    until(&sql, "select bool_and(placed) from trunkline.schedule").await?;
    let (first, began) = first_tick(&sql).await?;
    let mut killed = 0;
    for second in (ticks.kill_every..ticks.seconds).step_by(ticks.kill_every.max(1) as usize) {
        // Waits until the process is in the middle of its work.
        sleep_until(began + Duration::from_secs(second.into()) + Duration::from_millis(10)).await;
        crew.kill(killed % ticks.processes as usize)?;
        killed += 1;
    }
    sleep_until(began + Duration::from_secs(ticks.seconds.into())).await;
    let end = format!("to_timestamp({first} + {})", ticks.seconds);
    until(&sql, &format!("select min(next_at) >= {end} from trunkline.schedule")).await?;
    crew.end();
    let row = sql.query_one(&figures(first, &end), &[]).await.map_err(|error| error.to_string())?;
    let (made, apart): (i64, i64) = (row.get(0), row.get(1));
    let wanted = i64::from(ticks.schedules) * i64::from(ticks.seconds);
    say(format_args!("{made} messages of {wanted} ticks, {apart} of them different; {killed} processes were killed"));
    let [p50, p99, most]: [f64; 3] = [row.get(2), row.get(3), row.get(4)];
    say(format_args!(
        "there for others after {p50:.0} ms (p50), {p99:.0} ms (p99), {most:.0} ms (all); {} after more than 100 ms",
        row.get::<_, i64>(5)
    ));
    crew.misbehaved.iter().for_each(say);
    Ok(made == wanted && apart == wanted && crew.misbehaved.is_empty())
}

async fn furnish(url: &str, schedules: u32) -> trunkline::Result<()> {
    let db = Db::connect(url).await?;
    db.migrate().await?;
    db.create_queue("ticks", &Settings::of::<i64>()).await?;
    let queue = db.queue::<i64>("ticks").await?;
    for nr in 0..schedules {
        let schedule = Schedule::new(format!("schedule.{nr}"), "every second").missed(Missed::Each);
        queue.schedule(&schedule, &i64::from(nr)).await?;
    }
    Ok(())
}

/// Returns the first tick that counts, in seconds since 1970, and the corresponding time of this
/// process's clock.
async fn first_tick(sql: &Client) -> Result<(i64, Instant), String> {
    let row = sql.query_one("select extract(epoch from clock_timestamp())::float8", &[]).await;
    let clock: f64 = row.map_err(|error| error.to_string())?.get(0);
    let first = clock.ceil() + 1.0;
    Ok((first as i64, Instant::now() + Duration::from_secs_f64(first - clock)))
}

async fn until(sql: &Client, condition: &str) -> Result<(), String> {
    for _ in 0..600 {
        let row = sql.query_one(condition, &[]).await.map_err(|error| error.to_string())?;
        if row.get::<_, Option<bool>>(0) == Some(true) {
            return Ok(());
        }
        sleep(Duration::from_millis(100)).await;
    }
    Err(format!("not within a minute: {condition}"))
}

fn figures(first: i64, end: &str) -> String {
    format!(
        "with tick as (
             select m.metadata ->> 'schedule' as schedule, (m.metadata ->> 'tick')::timestamptz as at, pg_xact_commit_timestamp(q.xmin) as made
             from trunkline.queue_ticks q, lateral unnest(q.metadata) m(metadata)
         ), late as (
             select t.*, (extract(epoch from t.made - t.at) * 1000)::float8 as ms from tick t where t.at >= to_timestamp({first}) and t.at < {end}
         )
         select count(*), count(distinct (l.schedule, l.at)), percentile_cont(0.5) within group (order by l.ms),
                percentile_cont(0.99) within group (order by l.ms), max(l.ms), count(*) filter (where l.ms > 100)
         from late l"
    )
}
