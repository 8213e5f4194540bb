//! The benchmark suite: Trunkline's layers and its peers, side by side, in one run.

mod results;
mod contenders;
mod prepare;
mod machine;
mod ground;
mod suites;
mod choose;
mod drivers;
mod contend;
mod round;
mod show;
mod run;
mod report;

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand};

/// Whatever goes wrong: it is printed, and ends the run.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Trunkline's layers and its peers, side by side, in one run.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List the rows: suite/case/contender, and `drivers`, which is a verb of its own
    List(Choice),
    /// Run rows, and keep what came out in bench/results/results.json
    Run(Box<Run>),
    /// Write tables and figures of what is kept into bench/results
    Report,
    /// Ways of driving Postgres, side by side: builds bench/peers/drivers and hands it these words
    Drivers {
        /// See `drivers --help`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

/// Which rows.
#[derive(Args, Clone)]
struct Choice {
    /// Only rows whose suite/case/contender has this in it; * stands for anything; may be repeated
    #[arg(short, long = "pattern", value_name = "PATTERN")]
    patterns: Vec<String>,
    /// Shorter: 1 to 5 seconds a row instead of 10, a snapshot held for 60 seconds instead of 30 minutes
    #[arg(long)]
    quick: bool,
    /// How many messages a call are tried in `send`, `read` and `ack`
    #[arg(long, env = "BENCH_BATCH_SIZES", value_name = "N,N", value_delimiter = ',', default_values_t = [1, 10, 50, 100])]
    batch_sizes: Vec<usize>,
    /// The backlog of a drain, for peers; Trunkline's is ten times as long
    #[arg(long, env = "BENCH_MESSAGE_COUNT", value_name = "N", default_value_t = 100_000)]
    messages: usize,
    /// Whether to time reads that wait for messages
    #[arg(long, env = "BENCH_ENABLE_POLL", value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    poll: bool,
    /// Whether to run the suite `throughput`
    #[arg(long, env = "BENCH_ENABLE_THROUGHPUT", value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    throughput: bool,
}

#[derive(Args)]
struct Run {
    #[command(flatten)]
    choice: Choice,
    /// Measure this server, as a superuser, instead of a private cluster
    #[arg(long, env = "PG_CONNECTION_STRING", value_name = "URL")]
    database_url: Option<String>,
    /// Turns of each row [default: the suite's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Seconds a turn [default: the suite's]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// A setting of the private cluster, as in `fsync=off` or `commit_delay=100`; may be repeated
    #[arg(long = "setting", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Where to keep what comes out
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/results/results.json"))]
    results: PathBuf,
    /// Write this run's rows as CSV, too
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Leave the databases of the run where they are
    #[arg(long, env = "BENCH_SKIP_CLEANUP", value_name = "BOOL", default_value_t = false, default_missing_value = "true",
          num_args = 0..=1, action = clap::ArgAction::Set)]
    skip_cleanup: bool,
}

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match Command::parse().verb {
        Verb::List(choice) => {
            show::list(&choice);
            Ok(())
        }
        Verb::Run(run) => runtime.block_on(run::run(&run)),
        Verb::Report => report::kept(),
        Verb::Drivers { words } => drivers::run(&words),
    }
}
