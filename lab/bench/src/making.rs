//! A run in progress. Its rows take turns, and each turn is saved as soon as it has been measured.
//! An interrupted run can be continued.

use std::{
    collections::{HashMap, hash_map::Entry},
    io::IsTerminal,
    path::{Path, PathBuf},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use trunkline_programs::{Program, Unfit, machine};

use crate::{
    Failure,
    choose::name,
    contend::{Ended, Progress, Ready, SILENCE},
    continued::other_server,
    ground::Ground,
    prepare::{COUNTED, LAYERS, prepare},
    report,
    results::{Header, Outcome, Results, Round, Row},
    round, show,
    suites::Plan,
    tree,
    wanted::Wanted,
};

/// The servers of a run, each with three flags: a disk that can be slowed down, a standby, and no
/// fsync.
const SERVERS: [(bool, bool, bool); 4] =
    [(false, false, false), (false, true, false), (true, false, false), (false, false, true)];

pub struct Making {
    file: PathBuf,
    pub results: Results,
    programs: Programs,
    is_of_one_commit: bool,
}

impl Making {
    /// Begins a new run and keeps its results in this file.
    pub fn begin(file: &Path, plans: &[Plan], left_out: Vec<String>) -> Result<Self, Failure> {
        tree::outside(file)?;
        let now = tree::now();
        let run = Header {
            id: tree::id(),
            made: tree::made(),
            sittings: vec![(now, now)],
            planned: plans.iter().map(name).collect(),
            left_out,
        };
        let results = Results { runs: vec![run], rows: Vec::new() };
        Ok(Self { file: file.to_owned(), results, programs: Programs::default(), is_of_one_commit: false })
    }

    /// Continues a run that was interrupted.
    pub fn again(file: &Path, mut results: Results) -> Self {
        let now = tree::now();
        for run in &mut results.runs {
            run.sittings.push((now, now));
        }
        Self { file: file.to_owned(), results, programs: Programs::default(), is_of_one_commit: false }
    }

    /// Returns the run with a check. If the sources have changed since the program's start, the run
    /// fails instead of storing a turn. So a complete run belongs to one commit.
    pub fn of_one_commit(self) -> Self {
        Self { is_of_one_commit: true, ..self }
    }

    /// Runs the turns that each row still lacks. Rows with a slow disk, with a standby or without
    /// fsync have a separate server. So no other row runs on a server with a preloaded library, or
    /// waits for a standby.
    pub async fn turns(&mut self, plans: &[Plan], wanted: &Wanted, keep_databases: bool) -> Result<(), Failure> {
        for (slow_disk, standby, no_fsync) in SERVERS {
            let is_on = |plan: &&Plan| {
                (plan.told.fsync_ms.is_some(), plan.told.standby, plan.told.fsync == "off")
                    == (slow_disk, standby, no_fsync)
            };
            let of: Vec<Plan> = plans.iter().filter(is_on).cloned().collect();
            let mut wanted = Wanted { slow_disk, standby, ..wanted.clone() };
            if no_fsync && wanted.url.is_none() {
                wanted.settings.push("fsync=off".to_owned());
            }
            self.turns_on(&of, &wanted, keep_databases).await?;
        }
        Ok(())
    }

    async fn turns_on(&mut self, plans: &[Plan], wanted: &Wanted, keep_databases: bool) -> Result<(), Failure> {
        let left = |plan: &Plan| plan.rounds.saturating_sub(self.done(plan));
        let turns: u32 = plans.iter().map(left).sum();
        if turns == 0 {
            return Ok(());
        }
        let mut ground = Ground::start(wanted).await?;
        self.check_server(plans, &ground)?;
        let bar = bar(turns.into());
        for plan in plans {
            bar.set_message(format!("building {}", plan.contender.name));
            let _ = self.programs.of(plan, LAYERS)?;
        }
        let disk = match ground.server.fsync.as_str() {
            "off" => "commits do not wait for the disk".to_owned(),
            _ => ground.test_fsync().unwrap_or_else(|| "pg_test_fsync is not here".to_owned()),
        };
        say(&bar, &greeting(&ground, &disk));
        let most = plans.iter().map(|plan| plan.rounds).max().unwrap_or(0);
        // The rows of a case are adjacent, and every row has had a turn before any row has its next
        // turn. So a change of the machine affects all rows alike.
        for turn in 1..=most {
            for plan in plans {
                if turn > plan.rounds || turn <= self.done(plan) {
                    continue;
                }
                bar.set_message(name(plan));
                let outcome = self.turned(&mut ground, plan, keep_databases, &bar).await?;
                let mut row = self.row(plan).cloned().unwrap_or_else(|| self.empty(plan, &ground, &disk));
                match outcome {
                    Ok((ready, round)) => {
                        say(&bar, &show::round(plan, turn, &round));
                        (row.version, row.runtime, row.settings) = (ready.version, ready.runtime, ready.settings);
                        row.rounds.push(round);
                    }
                    Err(outcome) => {
                        row.outcome = outcome;
                        say(&bar, &show::row(&row));
                    }
                }
                row.measured_at = tree::now();
                bar.inc(1);
                self.keep(row)?;
            }
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Fails if the previous rows were measured on another server, because they would not be
    /// comparable with the next rows.
    fn check_server(&self, plans: &[Plan], ground: &Ground) -> Result<(), Failure> {
        let is_here = |row: &Row| plans.iter().any(|plan| name(plan) == row.name());
        let differences = other_server(&self.results.rows, &ground.server, is_here);
        if differences.is_empty() {
            return Ok(());
        }
        let part = self.file.file_stem().unwrap_or_default().display();
        Err(format!(
            "what {} has was measured on another server: {}; finish it on that server, or begin again with `--restart {part}`",
            self.file.display(),
            differences.join("; ")
        )
        .into())
    }

    fn row(&self, plan: &Plan) -> Option<&Row> {
        let name = name(plan);
        self.results.rows.iter().find(|row| row.name() == name)
    }

    /// Returns the number of turns that a row has had. A row that could not be measured counts as
    /// complete.
    fn done(&self, plan: &Plan) -> u32 {
        match self.row(plan) {
            Some(row) if row.outcome != Outcome::Measured => plan.rounds,
            Some(row) => row.rounds.len() as u32,
            None => 0,
        }
    }

    fn empty(&self, plan: &Plan, ground: &Ground, disk: &str) -> Row {
        let run = self.results.run().cloned().unwrap_or_default();
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
            run: run.id,
            made: run.made,
            major: plan.major,
            planned_rounds: plan.rounds,
            outcome: Outcome::Measured,
            rounds: Vec::new(),
        }
    }

    /// Adds or replaces the row, and writes all rows to disk. The file is replaced as a whole.
    fn keep(&mut self, row: Row) -> Result<(), Failure> {
        if self.is_of_one_commit {
            tree::unchanged()?;
        }
        let name = row.name();
        match self.results.rows.iter_mut().find(|kept| kept.name() == name) {
            Some(kept) => *kept = row,
            None => self.results.rows.push(row),
        }
        self.write()
    }

    pub fn write(&mut self) -> Result<(), Failure> {
        if let Some((_, to)) = self.results.runs.iter_mut().find_map(|run| run.sittings.last_mut()) {
            *to = tree::now();
        }
        if let Some(folder) = self.file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let whole = self.file.with_extension("new");
        std::fs::write(&whole, report::json(&self.results)?)?;
        Ok(std::fs::rename(whole, &self.file)?)
    }

    /// Runs one turn of a row. If the row counts allocations, the counting program also runs a turn
    /// after the first one. Only the allocations of that turn are kept.
    async fn turned(
        &mut self,
        ground: &mut Ground,
        plan: &Plan,
        keep: bool,
        bar: &ProgressBar,
    ) -> Result<Turn, Failure> {
        let told = |Progress { sent, received }: Progress| {
            bar.set_message(format!("{}: {sent} sent, {received} received", name(plan)));
        };
        if let (Some(_), Err(why)) = (plan.told.fsync_ms, &ground.disk) {
            return Ok(Err(Outcome::Missing(why.clone())));
        }
        if !plan.told.fsync.is_empty() && ground.server.fsync != plan.told.fsync {
            return Ok(Err(Outcome::Missing(format!("this server has fsync {}", ground.server.fsync))));
        }
        if let (true, Err(why)) = (plan.told.standby, &ground.standby) {
            return Ok(Err(Outcome::Missing(why.clone())));
        }
        let program = match self.programs.of(plan, LAYERS)? {
            Ok(program) => program,
            Err(Unfit::Missing(why)) => return Ok(Err(Outcome::Missing(why))),
            Err(Unfit::Failed(why)) => return Ok(Err(Outcome::Failed(why))),
        };
        let mut turn = match round::round(ground, plan, &program, silence(), keep, told).await? {
            Ok(turn) => turn,
            Err(ended) => return Ok(Err(outcome(ended))),
        };
        // The counts differ little from turn to turn, so one short turn is enough.
        if plan.allocations && self.done(plan) == 0 {
            let mut short = plan.clone();
            if short.told.messages == 0 {
                short.told.seconds = short.told.seconds.min(1.0); // with a number of messages, the time is only a limit
            }
            let counting = match self.programs.of(plan, COUNTED)? {
                Ok(program) => round::round(ground, &short, &program, silence(), keep, told).await?,
                Err(unfit) => Err(Ended::Failed(unfit.to_string())),
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
}

type Turn = Result<(Ready, Round), Outcome>;

fn greeting(ground: &Ground, disk: &str) -> String {
    let server = &ground.server;
    format!(
        "PostgreSQL {}, fsync {}, synchronous_commit {}, wal_level {}, commit_delay {}; {} processors; {}; {disk}",
        server.version,
        server.fsync,
        server.synchronous_commit,
        server.wal_level,
        server.commit_delay,
        server.processors,
        machine::described()
    )
}

/// Returns how long a contender may be silent. Tests with a stalling contender shorten this time.
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

/// The programs that were built in this run. A program that could not be built has the reason
/// instead.
#[derive(Default)]
struct Programs(HashMap<(&'static str, bool, &'static str), Result<Program, Unfit>>);

impl Programs {
    /// Returns the program, and builds it first if necessary. Fails if the sources have changed
    /// since this program's start.
    fn of(&mut self, plan: &Plan, own: &'static str) -> Result<Result<Program, Unfit>, Failure> {
        let many = plan.told.batch > 1;
        Ok(match self.0.entry((plan.contender.name, many, own)) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(place) => {
                tree::unchanged()?;
                place.insert(prepare(&plan.contender, many, own)).clone()
            }
        })
    }
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
    bar.suspend(|| trunkline_programs::say(line));
}
