//! Makes a run, from its start to the verdict.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use clap::ValueEnum;
use trunkline_programs::say;

use crate::{
    check,
    crew::{Crew, Launch},
    faults::{Fault, LAST_MS, Scene, left_out, schedule, without_time},
    folder::{About, Folder},
    ground::Ground,
    history::now,
    mutants::{self, Defect, Mutant},
    report,
    roles::Role,
    tables::Tables,
};

const CREW: [Role; 12] = [
    Role::Producer,
    Role::Producer,
    Role::Taker,
    Role::Leaser,
    Role::Leaser,
    Role::Ledger,
    Role::Worker,
    Role::Worker,
    Role::Sql,
    Role::Watcher,
    Role::Ticker,
    Role::Ticker,
];
/// The time limit for emptying the queues at the end.
const DRAIN: Duration = Duration::from_secs(90);

#[derive(Debug, Clone, clap::Args)]
pub struct Run {
    /// The length of the run in minutes, without the time to start and to check.
    #[arg(long, default_value_t = 10.0)]
    pub minutes: f64,
    /// Faults and operations are drawn from this number, by default the time in seconds.
    #[arg(long)]
    pub seed: Option<u64>,
    /// The faults, with commas between; all if not given, `none` for none.
    #[arg(long, value_delimiter = ',')]
    pub fault: Vec<String>,
    /// A seeded defect, by its name; see `mutants`.
    #[arg(long)]
    pub mutant: Option<String>,
    /// The folder of histories and report.
    #[arg(long, default_value = "target/torture")]
    pub folder: PathBuf,
    /// Fail if a fault does not happen, instead of omitting the fault: the run is too short for it,
    /// this machine cannot produce it, or is so slow that the run would take twice its time.
    #[arg(long)]
    pub require_all: bool,
}

impl Run {
    fn seconds(&self) -> u64 {
        (self.minutes * 60.0) as u64
    }

    fn faults(&self) -> Result<Vec<Fault>, String> {
        match &*self.fault {
            [] => Ok(Fault::value_variants().to_vec()),
            [none] if none == "none" => Ok(Vec::new()),
            names => names
                .iter()
                .map(|name| Fault::from_str(name, true).map_err(|_| format!("there is no fault {name:?}; see --help")))
                .collect(),
        }
    }
}

/// Runs and checks. Returns true if every promise was kept.
pub fn run(run: &Run) -> Result<bool, String> {
    let faults = run.faults()?;
    let mutant = run.mutant.as_deref().map(mutants::find).transpose()?;
    let seed = run.seed.unwrap_or_else(|| now() % 1_000_000);
    let missing = without_time(&schedule(seed, run.seconds(), &faults), &faults);
    if run.require_all && !missing.is_empty() {
        let (minutes, missing) = (run.minutes, missing.join(", "));
        return Err(format!("{minutes} minutes with seed {seed} have no time for what is required: {missing}"));
    }
    let folder = Folder::create(&std::path::absolute(&run.folder).map_err(|error| error.to_string())?)?;
    say(format_args!("seed {seed}, {} minutes, in {}", run.minutes, folder.path().display()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let left_out = runtime.block_on(act(run, &folder, seed, &faults, mutant))?;
    let is_kept = check(folder.path())?;
    if is_kept && run.require_all && !left_out.is_empty() {
        return Err(format!("did not happen, and required: {}", left_out.join("; ")));
    }
    Ok(is_kept)
}

/// Makes the run, and writes what the checker needs. Returns the faults that were left out.
async fn act(
    run: &Run,
    folder: &Folder,
    seed: u64,
    faults: &[Fault],
    mutant: Option<&Mutant>,
) -> Result<Vec<String>, String> {
    let seconds = run.seconds();
    let ground = Ground::start(faults).await?;
    let faults: Vec<Fault> =
        faults.iter().copied().filter(|fault| ground.skipped.iter().all(|(other, _)| other != fault)).collect();
    let faults = &*faults;
    let mut skipped: Vec<String> =
        ground.skipped.iter().map(|(fault, why)| format!("{}: {why}", fault.name())).collect();
    if run.require_all && !skipped.is_empty() {
        return Err(format!("not to be had here, and required: {}", skipped.join("; ")));
    }
    let server = ground.furnish().await?;
    let mut environment = vec![("RUST_BACKTRACE".to_owned(), "0".to_owned())];
    match mutant.map(|mutant| (mutant.name, mutant.defect)) {
        None => {}
        Some((_, Defect::Sql(template, texts))) => ground.replace(template, texts).await?,
        Some((_, Defect::Several(templates))) => {
            for (template, texts) in templates {
                ground.replace(template, texts).await?;
            }
        }
        Some((_, Defect::Shared(function, texts))) => ground.replace_shared(function, texts).await?,
        Some((name, Defect::Rust)) if cfg!(trunkline_mutant) => {
            environment.push(("TRUNKLINE_MUTANT".to_owned(), name.to_owned()));
        }
        Some((name, Defect::Rust)) => {
            return Err(format!("{name} is in the library: use the command `mutants`, which builds it so"));
        }
    }
    let mut crew = Crew::new(folder.clone(), launch(ground.url(), environment, seed));
    let began = now();
    for role in CREW {
        crew.add(&role.name())?;
    }
    let mut scene = Scene::new(ground, crew);
    let planned = schedule(seed, seconds, faults);
    // On a slow machine some faults take longer than planned. If all are required, the run goes on.
    let latest = if run.require_all { 2 * seconds } else { seconds };
    for next in &planned {
        if now() - began + next.after_ms * 1000 > latest * 1_000_000 {
            break;
        }
        scene.pass(next.after_ms).await?;
        scene.strike(next).await?;
    }
    let left_out = left_out(&planned, &scene.happened);
    skipped.extend(left_out.iter().cloned());
    let gone = now() - began;
    scene.pass((seconds * 1000).saturating_sub(gone / 1000).max(LAST_MS)).await?;
    let ended = now();
    scene.crew.end();
    scene.crew.run(&Role::Drain.name(), DRAIN)?;
    let tables = left(&mut scene).await?;
    scene.nothing_fell();
    let about = About {
        seed,
        seconds,
        faults: faults.iter().map(|fault| fault.name()).collect(),
        mutant: mutant.map(|mutant| mutant.name.to_owned()),
        server,
        began,
        ended,
        misbehaved: std::mem::take(&mut scene.crew.misbehaved),
        skipped,
    };
    let log = std::fs::read(scene.ground.cluster.log_file()).unwrap_or_default();
    folder.write("server.log", log)?;
    folder.keep("about.json", &about)?;
    folder.keep("faults.json", &scene.happened)?;
    folder.keep("samples.json", &scene.samples)?;
    folder.keep("tables.json", &tables)?;
    Ok(left_out)
}

/// Returns the launcher of processes. Each process runs this program again, in a role.
pub fn launch(url: String, environment: Vec<(String, String)>, seed: u64) -> Launch {
    Box::new(move |start| {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["role", start.part, "--nr", &start.nr.to_string(), "--seed", &seed.to_string(), "--url", &url]);
        command.arg("--history").arg(&start.history).envs(environment.iter().cloned());
        Ok(command)
    })
}

/// Reads the tables once the processes' connections are closed, or after five seconds.
async fn left(scene: &mut Scene) -> Result<Tables, String> {
    for _ in 0..100 {
        let tables = Tables::read(scene.client().await?).await?;
        if tables.connections == 0 {
            return Ok(tables);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Tables::read(scene.client().await?).await
}

/// Checks the files of an earlier run. Returns true if every promise was kept.
pub fn check(folder: &Path) -> Result<bool, String> {
    let folder = Folder::open(folder);
    let evidence = folder.read()?;
    let findings = check::check_run(&evidence);
    report::report(&folder, &evidence, &findings)?;
    Ok(findings.is_empty())
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    #[test]
    fn hosted_checks_strike_every_fault() {
        let stages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/run");
        let stages = std::fs::read_to_string(stages).expect("readable");
        let line = stages.lines().find_map(|line| line.split_once("/trunkline-torture\" ")).expect("a run").1;
        let parser = Run::augment_args(clap::Command::new("run"));
        let matches = parser.try_get_matches_from(line.split_whitespace()).expect("arguments of `run`");
        let run = Run::from_arg_matches(&matches).expect("a run");
        assert!(run.require_all);
        let planned = schedule(run.seed.expect("a seed"), run.seconds(), &run.faults().expect("faults"));
        assert_eq!(without_time(&planned, Fault::value_variants()), Vec::<String>::new());
    }
}
