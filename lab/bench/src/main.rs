//! The benchmark suite: Trunkline's layers and its peers, side by side, in one run.

// The program must not panic if the reader of its output goes away, as `head` does.
#![deny(clippy::print_stdout)]

mod results;
mod contenders;
mod prepare;
mod fsyncs;
mod machine;
mod wanted;
mod disk;
mod ground;
mod suites;
mod choose;
mod tree;
mod parts;
mod drivers;
mod contend;
mod watch;
mod round;
mod show;
mod report;
mod continued;
mod making;
mod run;
mod publication;
mod publish;
mod claims;
mod stated;

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser, Subcommand};

/// Any error. The program prints it and exits.
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
    /// Run rows, and keep the results in a separate folder below target/bench
    Run(Box<Run>),
    /// Write a run's tables and figures into its folder
    Report {
        /// The run's results.json [default: the last run's]
        file: Option<PathBuf>,
    },
    /// Measure the published parts, one after the other. A part is a suite on one version of
    /// PostgreSQL; `--plan` lists them. An interrupted run continues where it stopped
    Publication(Box<Publication>),
    /// Put the complete parts of a publication into lab/results, and write its tables and figures
    Publish(Publish),
    /// Measure claims about how to make queues on Postgres faster
    Claims(Claims),
    /// Find the row of every figure in these documents that names one
    Stated {
        /// Markdown, with <!-- row: suite/case/contender measure --> behind a figure
        #[arg(required = true)]
        documents: Vec<PathBuf>,
    },
    /// Compare ways of driving Postgres: builds lab/peers/drivers, and runs it with these arguments
    Drivers {
        /// See `drivers --help`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

/// The defaults of the options, which a whole run uses.
const BATCH_SIZES: [usize; 4] = [1, 10, 50, 100];
const DRAINED: usize = 100_000;
const BACKLOG: usize = 100_000;
const SETTLE: f64 = 5.0;

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("at least one".to_owned()),
        number => number.map_err(|wrong| wrong.to_string()),
    }
}

/// Selects rows.
#[derive(Args, Clone)]
struct Choice {
    /// Run only the rows whose suite/case/contender contains this pattern; * matches anything; may
    /// be repeated
    #[arg(short, long = "pattern", value_name = "PATTERN")]
    patterns: Vec<String>,
    /// Shorter: 1 to 5 seconds per row instead of 10, a snapshot held for 60 seconds instead of
    /// 30 minutes
    #[arg(long)]
    quick: bool,
    /// Numbers of messages per call in `send`, `read` and `ack`
    #[arg(long, env = "BENCH_BATCH_SIZES", value_name = "N,N", value_delimiter = ',', default_values_t = BATCH_SIZES)]
    batch_sizes: Vec<usize>,
    /// The number of messages in rows that end after a number of messages: those of `throughput`
    /// with `-n` in their names [default: 1000], and backlogs that are drained [default: 100000 or
    /// more]
    #[arg(long, env = "BENCH_MESSAGE_COUNT", value_name = "N", value_parser = at_least_one)]
    messages: Option<usize>,
    /// Time reads that wait for messages
    #[arg(long, env = "BENCH_ENABLE_POLL", value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    poll: bool,
    /// Run the suite `throughput`
    #[arg(long, env = "BENCH_ENABLE_THROUGHPUT", value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    throughput: bool,
    /// Callers at the same time that each await their message, instead of each contender's best: of
    /// `send` and `cycle` in `throughput`, of `layer-comparison` and of `fsync`
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = at_least_one)]
    callers: Vec<usize>,
    /// Numbers of producers in `grid`, instead of the suite's own pairs
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = at_least_one)]
    producers: Vec<usize>,
    /// Numbers of consumers in `grid`, instead of the suite's own pairs
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = at_least_one)]
    consumers: Vec<usize>,
    /// Messages that are there before a row of `grid` begins
    #[arg(long, value_name = "N", default_value_t = BACKLOG)]
    backlog: usize,
    /// Messages that a producer of `grid` sends at a time [default: 1 and 100]
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = at_least_one)]
    enqueue_batch: Vec<usize>,
    /// Messages that a consumer of `grid` fetches at a time [default: as many as are sent at a
    /// time]
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = at_least_one)]
    dequeue_batch: Vec<usize>,
    /// Threads of the contenders' runtimes, where that is configurable; 0 means their default
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Seconds for the consumers of `idle` to fall asleep, before the clock starts
    #[arg(long, value_name = "SECONDS", default_value_t = SETTLE)]
    settle: f64,
}

#[derive(Args)]
struct Run {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    server: ServerArgs,
    /// Turns of each row [default: the suite's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Seconds a turn [default: the suite's]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// The file for the results, outside of the source tree [default:
    /// target/bench/WHEN/results.json]
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// Fail if a row was skipped because this machine lacks a program that it needs
    #[arg(long)]
    require_all: bool,
    /// Write this run's rows as CSV, too
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// Selects the server.
#[derive(Args, Clone)]
struct ServerArgs {
    /// Measure this server, as a superuser, instead of a private cluster [default: the server that
    /// PGHOST, PGPORT, PGUSER and PGPASSWORD name, if PGHOST or PGPORT is set]
    #[arg(long, env = "PG_CONNECTION_STRING", value_name = "URL")]
    database_url: Option<String>,
    /// A setting of the private cluster, as in `fsync=off` or `commit_delay=100`; may be repeated
    #[arg(long = "setting", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// The folder with the private cluster's PostgreSQL programs, 14 to 18 [default: the first
    /// found]
    #[arg(long = "server-bin", value_name = "FOLDER")]
    programs: Option<PathBuf>,
    /// Go to the private cluster by TCP instead of its socket
    #[arg(long)]
    tcp: bool,
    /// Leave the databases of the run where they are
    #[arg(long, env = "BENCH_SKIP_CLEANUP", value_name = "BOOL", default_value_t = false, default_missing_value = "true",
          num_args = 0..=1, action = clap::ArgAction::Set)]
    skip_cleanup: bool,
}

#[derive(Args)]
struct Publication {
    /// Parts, as in `throughput`, `throughput-14`, `drivers`, `claims` [default: all]
    #[arg(value_name = "PART")]
    parts: Vec<String>,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    server: ServerArgs,
    /// Rename the results of these parts to PART.json.old, and measure the parts again
    #[arg(long)]
    restart: bool,
    /// Versions of PostgreSQL, whose folders `TRUNKLINE_PG_BINS` names; if empty, only the server's
    /// own
    #[arg(long, value_name = "N,N", default_value = "14,15,16,17,18")]
    majors: String,
    /// Turns of each row, for a trial: the resulting part is incomplete, and is not published
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Seconds per turn, for a trial: the resulting part is incomplete, and is not published
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// The folder of the publication, outside of the source tree [default:
    /// target/bench/publication]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Print the plan and its duration, and exit
    #[arg(long)]
    plan: bool,
}

#[derive(Args)]
struct Publish {
    /// The folder of a publication [default: target/bench/publication]
    folder: Option<PathBuf>,
    /// Write the tables and figures of what is published again, because the report has changed
    #[arg(long, conflicts_with = "folder")]
    again: bool,
}

#[derive(Args)]
struct Claims {
    #[command(flatten)]
    server: ServerArgs,
    /// Turns of each way
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Rows of a turn
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..))]
    rows: u32,
    /// Only claims whose name has this in it; may be repeated
    #[arg(short, long = "pattern", value_name = "PATTERN")]
    patterns: Vec<String>,
    /// The file for the page, outside of the source tree [default: target/bench/claims.md]
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut verb = Command::parse().verb;
    tree::commit(); // the sources may change while the program runs
    match &mut verb {
        Verb::Run(run) => run.server.obey_environment()?,
        Verb::Publication(publication) => publication.server.obey_environment()?,
        Verb::Claims(claims) => claims.server.obey_environment()?,
        Verb::List(_) | Verb::Report { .. } | Verb::Publish(_) | Verb::Stated { .. } | Verb::Drivers { .. } => {}
    }
    match verb {
        Verb::List(choice) => {
            show::list(&choice);
            Ok(())
        }
        Verb::Run(run) => runtime.block_on(run::run(&run)),
        Verb::Report { file } => publish::report(file),
        Verb::Publication(publication) => runtime.block_on(publication::run(&publication)),
        Verb::Publish(publish) => publish::publish(&publish),
        Verb::Claims(claims) => runtime.block_on(claims::run(&claims)),
        Verb::Stated { documents } => stated::run(&documents),
        Verb::Drivers { words } => drivers::run(&words),
    }
}
