use std::{path::PathBuf, time::Duration};

use clap::{Parser, Subcommand};
use trunkline_programs::named_by_environment;

use crate::{
    Failure, Person,
    driver::Way,
    proxy::{self, Far},
    queue,
    report::{self, Made, Report},
    server::Server,
    turns::{Open, Patience, turns},
    workloads::{WORKLOADS, Workload},
};

/// Ways of driving Postgres, side by side, in turns.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Measure on this server instead of a private one, in a database of its own [default: the
    /// server that PGHOST, PGPORT, PGUSER and PGPASSWORD name, if PGHOST or PGPORT is set]
    #[arg(long, env = "PG_CONNECTION_STRING", value_name = "URL")]
    database_url: Option<String>,
    /// Milliseconds of network, each way; 0 is the server as it is
    #[arg(long, value_name = "MS,MS", value_delimiter = ',', default_values_t = [0.0, 1.0, 5.0])]
    delays: Vec<f64>,
    /// Turns of each way at each workload
    #[arg(long, value_name = "N", default_value_t = 31)]
    rounds: usize,
    /// Stop giving a way turns at a workload once it has had five and has spent this many seconds
    /// there
    #[arg(long, value_name = "SECONDS", default_value_t = 4.0)]
    seconds: f64,
    /// Run only the workloads whose names contain this text; may be repeated
    #[arg(short, long = "pattern", value_name = "PATTERN")]
    patterns: Vec<String>,
    /// Run only the ways whose names contain this text; may be repeated
    #[arg(short, long = "way", value_name = "WAY")]
    ways: Vec<String>,
    /// The number of the runtime's threads; with 1, the runtime runs on the main thread
    #[arg(long, value_name = "N", default_value_t = 2)]
    threads: usize,
    /// Write every turn as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write a page with bars for each workload of hasql's benchmark, as HTML into this folder
    #[arg(long, value_name = "FOLDER")]
    html: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Verb {
    /// Start a proxy to this server on a free port, which delays all bytes, until the input ends
    #[command(name = proxy::VERB, hide = true)]
    Delay { upstream: String, microseconds: u64 },
}

/// The name by which `--pattern` selects the queue's own verbs.
const QUEUE: &str = "queue";

/// Runs the program with these ways.
pub fn main(ways: Vec<Way>) -> Result<(), Failure> {
    let arguments = Arguments::parse();
    if let Some(Verb::Delay { upstream, microseconds }) = &arguments.verb {
        return proxy::serve(upstream, Duration::from_micros(*microseconds));
    }
    let mut runtime = match arguments.threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.worker_threads(arguments.threads.max(1)).enable_all().build()?;
    // The work is a task on a thread of the runtime. A thread outside the runtime would have to be
    // woken for every answer.
    runtime.block_on(async { tokio::spawn(run(arguments, ways)).await? })
}

/// Returns the arguments that the report shows. They contain no path of this machine.
fn made(arguments: &Arguments) -> Made {
    let mut words: Vec<String> = vec![
        format!("--delays {}", arguments.delays.iter().map(f64::to_string).collect::<Vec<_>>().join(",")),
        format!("--rounds {} --seconds {} --threads {}", arguments.rounds, arguments.seconds, arguments.threads),
    ];
    words.extend(arguments.patterns.iter().map(|pattern| format!("-p '{pattern}'")));
    words.extend(arguments.ways.iter().map(|way| format!("-w '{way}'")));
    let commit = std::env::var("BENCH_COMMIT").unwrap_or_default();
    Made { arguments: words.join(" "), commit, rounds: arguments.rounds, seconds: arguments.seconds }
}

async fn run(arguments: Arguments, ways: Vec<Way>) -> Result<(), Failure> {
    let url = match &arguments.database_url {
        Some(url) => Some(url.clone()),
        None => named_by_environment(|name| std::env::var(name).ok())?,
    };
    let mut server = Server::start(url.as_deref()).await?;
    let made = made(&arguments);
    let mut report = Report { machine: server.described().await?, made, measured: Vec::new(), verbs: Vec::new() };
    println!("{}", report.machine);
    let people = Person::all(1000);
    let patience = Patience { rounds: arguments.rounds, enough: Duration::try_from_secs_f64(arguments.seconds)? };
    let has = |patterns: &[String], name: &str| patterns.is_empty() || patterns.iter().any(|p| name.contains(&**p));
    let asked = |name: &str| has(&arguments.patterns, name);
    if asked(QUEUE) {
        queue::migrate(&server.place).await?;
    }
    for milliseconds in &arguments.delays {
        let delay = Duration::try_from_secs_f64(milliseconds / 1e3)?;
        let far = (!delay.is_zero()).then(|| Far::start(&server.place, delay)).transpose()?;
        let place = far.as_ref().map_or(&server.place, |far| &far.place).clone();
        for durable in [true, false] {
            let is_asked = |workload: &&Workload| {
                workload.durable == durable && (delay.is_zero() || workload.far) && asked(workload.name)
            };
            let workloads: Vec<&Workload> = WORKLOADS.iter().filter(is_asked).collect();
            if workloads.is_empty() {
                continue;
            }
            server.wait_for_disk(durable).await?;
            let mut open = Vec::new();
            for way in ways.iter().filter(|way| has(&arguments.ways, way.name)) {
                open.push(Open { way: *way, driver: (way.open)(place.clone()).await? });
            }
            for workload in workloads {
                eprintln!("{}, {delay:?} each way", workload.name);
                report.measured.extend(turns(&mut server, &open, (workload, delay), &people, patience).await?);
            }
        }
        server.wait_for_disk(true).await?;
        if asked(QUEUE) {
            eprintln!("{QUEUE}, {delay:?} each way");
            report.verbs.extend(queue::verbs(&place, delay, patience).await?);
        }
    }
    let text = report.markdown();
    println!("\n{text}");
    if let Some(file) = &arguments.markdown {
        std::fs::write(file, &text)?;
    }
    if let Some(file) = &arguments.csv {
        std::fs::write(file, report::csv(&report))?;
    }
    if let Some(folder) = &arguments.html {
        std::fs::create_dir_all(folder)?;
        for (name, page) in report::pages(&report) {
            std::fs::write(folder.join(name), page)?;
        }
    }
    server.end().await
}
