//! A run: every row that was chosen, in turns.

use std::{
    collections::HashMap,
    io::IsTerminal,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{
    Failure, Run,
    choose::chosen,
    contend::{Ended, Progress, SILENCE},
    drivers,
    ground::Ground,
    prepare::{COUNTED, LAYERS, Program, Unfit, prepare},
    report,
    results::{Outcome, Results, Row},
    round, show,
    suites::Plan,
};

pub async fn run(asked: &Run) -> Result<(), Failure> {
    let mut plans = chosen(&asked.choice);
    if plans.is_empty() {
        return Err(match drivers::is_chosen(&asked.choice) {
            true => "`drivers` is a verb of its own: `trunkline-bench drivers`".into(),
            false => "no row has such a name; `list` shows them".into(),
        });
    }
    for plan in &mut plans {
        plan.rounds = asked.rounds.unwrap_or(plan.rounds);
        plan.told.seconds = asked.seconds.unwrap_or(plan.told.seconds);
    }
    let mut results = report::read(&asked.results)?;
    let mut programs = Programs::default();
    let bar = bar(plans.iter().map(|plan| u64::from(plan.rounds)).sum());
    for plan in &plans {
        bar.set_message(format!("building {}", plan.contender.name));
        let _ = programs.of(plan, LAYERS);
    }
    let mut ground = Ground::start(asked.database_url.as_deref(), &asked.settings).await?;
    let disk = match ground.server.fsync.as_str() {
        "off" => "nobody waits for the disk".to_owned(),
        _ => ground.test_fsync().unwrap_or_else(|| "pg_test_fsync is not here".to_owned()),
    };
    let mut rows: Vec<Row> = plans.iter().map(|plan| empty(plan, &ground, &disk)).collect();
    let server = &ground.server;
    say(
        &bar,
        &format!(
            "PostgreSQL {}, fsync {}, synchronous_commit {}, wal_level {}, commit_delay {}; {} processors; {disk}",
            server.version,
            server.fsync,
            server.synchronous_commit,
            server.wal_level,
            server.commit_delay,
            server.processors
        ),
    );
    let most = plans.iter().map(|plan| plan.rounds).max().unwrap_or(0);
    // Rows of a case are next to each other, and all of them have had a turn before one has the next: what moves moves for all.
    for turn in 1..=most {
        for (plan, row) in
            plans.iter().zip(&mut rows).filter(|(plan, row)| plan.rounds >= turn && row.outcome == Outcome::Measured)
        {
            bar.set_message(crate::choose::name(plan));
            match turned(&mut ground, plan, &mut programs, asked.skip_cleanup, &bar).await? {
                Ok((ready, round)) => {
                    say(&bar, &show::round(plan, turn, &round));
                    (row.version, row.runtime, row.settings) = (ready.version, ready.runtime, ready.settings);
                    row.rounds.push(round);
                }
                Err(outcome) => {
                    row.outcome = outcome;
                    say(&bar, &show::row(row));
                }
            }
            row.measured_at = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
            bar.inc(1);
            // A run that is broken off keeps what it has.
            keep(&asked.results, &mut results, row)?;
        }
    }
    bar.finish_and_clear();
    println!("\nmedian (least, most) of the turns");
    for row in &rows {
        println!("{}", show::row(row));
    }
    if let Some(path) = &asked.csv {
        std::fs::write(path, report::csv(&Results { rows }))?;
    }
    Ok(())
}

type Turn = Result<(crate::contend::Ready, crate::results::Round), Outcome>;

/// One turn of a row, and, where allocations are asked for, the counting program's turn, of which only these figures are kept.
async fn turned(
    ground: &mut Ground,
    plan: &Plan,
    programs: &mut Programs,
    keep: bool,
    bar: &ProgressBar,
) -> Result<Turn, Failure> {
    let told = |progress: Progress| {
        bar.set_message(format!(
            "{}: {} sent, {} received",
            crate::choose::name(plan),
            progress.sent,
            progress.received
        ));
    };
    let program = match programs.of(plan, LAYERS) {
        Ok(program) => program,
        Err(Unfit::Missing(why)) => return Ok(Err(Outcome::Missing(why))),
        Err(Unfit::Failed(why)) => return Ok(Err(Outcome::Failed(why))),
    };
    let mut turn = match round::round(ground, plan, &program, silence(), keep, told).await? {
        Ok(turn) => turn,
        Err(ended) => return Ok(Err(outcome(ended))),
    };
    if plan.allocations {
        let counting = match programs.of(plan, COUNTED) {
            Ok(program) => round::round(ground, plan, &program, silence(), keep, told).await?,
            Err(Unfit::Missing(why) | Unfit::Failed(why)) => Err(Ended::Failed(why)),
        };
        match counting {
            Ok((_, counted)) => {
                (turn.1.allocations, turn.1.allocated_bytes) = (counted.allocations, counted.allocated_bytes);
            }
            Err(ended) => return Ok(Err(outcome(ended))),
        }
    }
    Ok(Ok(turn))
}

/// A test's contender that stalls need not be waited for so long.
fn silence() -> Duration {
    let told = std::env::var("BENCH_SILENCE").ok().and_then(|seconds| seconds.parse().ok());
    told.map_or(SILENCE, Duration::from_secs)
}

fn outcome(ended: Ended) -> Outcome {
    match ended {
        Ended::Missing(why) => Outcome::Missing(why),
        Ended::Stalled(why) => Outcome::Stalled(why),
        Ended::Failed(why) => Outcome::Failed(why),
    }
}

fn empty(plan: &Plan, ground: &Ground, disk: &str) -> Row {
    Row {
        suite: plan.suite.to_owned(),
        case: plan.case.clone(),
        contender: plan.contender.name.to_owned(),
        version: String::new(),
        runtime: String::new(),
        settings: String::new(),
        told: plan.told.clone(),
        server: ground.server.clone(),
        disk: disk.to_owned(),
        measured_at: 0,
        outcome: Outcome::Measured,
        rounds: Vec::new(),
    }
}

/// Programs that were built in this run, or why they could not be.
#[derive(Default)]
struct Programs(HashMap<(&'static str, bool, &'static str), Result<Program, Unfit>>);

impl Programs {
    fn of(&mut self, plan: &Plan, own: &'static str) -> Result<Program, Unfit> {
        let many = plan.told.batch > 1;
        let key = (plan.contender.name, many, own);
        self.0.entry(key).or_insert_with(|| prepare(&plan.contender, many, own)).clone()
    }
}

/// Puts a row into what is kept, in the place of the same row of an earlier run.
fn keep(path: &Path, results: &mut Results, row: &Row) -> Result<(), Failure> {
    let same = |kept: &&mut Row| (&kept.suite, &kept.case, &kept.contender) == (&row.suite, &row.case, &row.contender);
    match results.rows.iter_mut().find(same) {
        Some(kept) => *kept = row.clone(),
        None => results.rows.push(row.clone()),
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    Ok(std::fs::write(path, report::json(results)?)?)
}

fn bar(turns: u64) -> ProgressBar {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let style = ProgressStyle::with_template("{bar:30.cyan/dim} {pos} of {len}, {eta} left  {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(turns), target).with_style(style.progress_chars("━╸─"))
}

fn say(bar: &ProgressBar, line: &str) {
    bar.suspend(|| println!("{line}"));
}
