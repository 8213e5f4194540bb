//! `trunkline demo`: sends a million messages through a temporary PostgreSQL.

mod load;
mod report;
mod server;
mod stamp;
mod tally;

use trunkline::Settings;
use trunkline_embedded::Cluster;

use self::{
    load::Load,
    report::Report,
    server::{Disk, Server},
};
use crate::{database::connect_to_private, error::Result, print, progress};

/// The arguments of `trunkline demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The exit code is 1 if a message was lost or delivered twice.

Examples:
  trunkline demo
  trunkline demo --messages 100000 --callers 64 --json")]
pub struct Args {
    /// Messages to send
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000_000))]
    messages: u64,
    /// Concurrent callers; each sends its next message when the previous one is safe on disk
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    callers: u64,
    /// Size of a message
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u64).range(stamp::LEAST as u64..=trunkline::MAX_PAYLOAD as u64))]
    payload: u64,
    /// One line of JSON instead of the report
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args) -> Result<()> {
    // Runs this part as blocking work, because starting a server and testing a disk block the
    // thread.
    let cluster = crate::blocking(|| Ok(Cluster::temporary().progress(progress::download()).start()?)).await?;
    let url = cluster.url("postgres");
    let outcome = on(&cluster, &url, &args).await;
    crate::blocking(move || {
        drop(cluster);
        Ok(())
    })
    .await?;
    outcome
}

async fn on(cluster: &Cluster, url: &str, args: &Args) -> Result<()> {
    let db = connect_to_private(url).await?;
    db.migrate().await?;
    db.create_queue("demo", &Settings::new("bytea")).await?;
    let data = cluster.data_dir();
    let disk = crate::blocking(move || Disk::measure(&data)).await?;
    let server = Server::ask(url).await?;

    let load = Load::new(db.queue("demo").await?, args.messages, args.payload as usize);
    let took = load.run(args.callers).await?;

    let report = Report::new(args, &load, &took, server, disk);
    let written = print::text(if args.json { report.json() } else { report.text() });
    // reports a failed verdict even if the output could not be written
    load.tally.verdict(load.left().await?).and(written)
}
