//! Runs a cluster that fails over (etcd, Patroni, three PostgreSQL servers), clients that never
//! stop, and faults. Then checks the answers that the clients received.

mod trace;
mod process;
mod proxy;
mod http;
mod programs;
mod node;
mod cluster;
mod history;
mod clients;
mod watch;
mod fault;
mod check;
mod outcome;
mod report;
mod run;

use std::{
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
    time::{SystemTime, UNIX_EPOCH},
};

use clap::{Parser, ValueEnum};

use self::{cluster::Cluster, fault::Fault, programs::Programs};

/// An error. The program prints it and exits.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The exit code if nothing ran because a program is missing.
const SKIPPED: u8 = 77;

/// Fail over again and again, and check the answers that clients received. The report goes to
/// standard output.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Words {
    /// Number of failovers
    #[arg(long, default_value_t = 50)]
    failovers: usize,
    /// Seed of the order of the faults [default: drawn from the clock]
    #[arg(long)]
    seed: Option<u64>,
    /// Use only this fault; may be repeated
    #[arg(long = "fault")]
    faults: Vec<Fault>,
    /// Patroni may give up synchronous replication while there is no standby
    #[arg(long)]
    loose: bool,
    /// Options of the clients' connection strings, beyond the hosts
    #[arg(long, default_value = "connect_timeout=1 answer_timeout=3")]
    options: String,
    /// Print what the library says of its connections
    #[arg(long)]
    verbose: bool,
    /// Leave the folder of the cluster, with its logs
    #[arg(long)]
    keep: bool,
}

fn main() -> ExitCode {
    let words = Words::parse();
    let programs = match Programs::found() {
        Ok(programs) => programs,
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            return ExitCode::from(SKIPPED);
        }
    };
    let ended = as_another(&programs).and_then(|()| run(&words, programs));
    ended.unwrap_or_else(|why| {
        eprintln!("trunkline-cluster: {why}");
        ExitCode::FAILURE
    })
}

#[tokio::main]
async fn run(words: &Words, programs: Programs) -> Result<ExitCode, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let faults = if words.faults.is_empty() { Fault::value_variants().to_vec() } else { words.faults.clone() };
    let plan = outcome::Plan {
        failovers: words.failovers,
        seed: words.seed.unwrap_or(now),
        faults,
        options: words.options.clone(),
    };
    eprintln!("seed {}", plan.seed);
    if words.verbose {
        trace::Lines::start()?;
    }
    let mut cluster = Cluster::start(programs, !words.loose, words.keep).await?;
    eprintln!("a cluster runs in {}", cluster.folder.display());
    let outcome = run::run(&mut cluster, &plan).await?;
    print!("{}", report::markdown(&outcome, &plan, &cluster.versions(), !words.loose));
    Ok(if outcome.verdict.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs this program again under another account if it runs as root, because PostgreSQL refuses to
/// run as root.
fn as_another(programs: &Programs) -> Result<(), Failure> {
    let id = |words: &[&str]| -> Option<u32> {
        let output = Command::new("id").args(words).output().ok()?;
        String::from_utf8_lossy(&output.stdout).trim().parse().ok()
    };
    if id(&["-u"]) != Some(0) {
        return Ok(());
    }
    let account = ["postgres", "nobody"].iter().find_map(|name| Some((id(&["-u", name])?, id(&["-g", name])?)));
    let (user, group) =
        account.ok_or("run this as a user other than root: there is no account `postgres` or `nobody`")?;
    let mut itself = Command::new(std::env::current_exe()?);
    itself.args(std::env::args_os().skip(1)).envs(programs.variables()).uid(user).gid(group).current_dir("/");
    Err(itself.exec().into())
}
