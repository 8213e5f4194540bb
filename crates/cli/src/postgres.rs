//! `trunkline postgres status|stop|url`: the private PostgreSQL.

use trunkline_embedded::{Cluster, Stop};

use crate::{
    database,
    error::{Error, Result},
    print,
};

/// The verbs of `trunkline postgres`.
#[derive(Debug, Clone, Copy, clap::Subcommand)]
pub enum Verb {
    /// Show whether it is running, and where; exit code 1 if it is not running
    #[command(after_help = "\
Example:
  trunkline postgres status")]
    Status,
    /// Stop it; its data stays, and it is started again when needed
    #[command(after_help = "\
Example:
  trunkline postgres stop")]
    Stop,
    /// Print its connection string, for psql and programs, and start it if it is not running
    #[command(after_help = "\
Example:
  psql \"$(trunkline postgres url)\"")]
    Url,
}

pub async fn run(verb: Verb) -> Result<()> {
    crate::blocking(move || match verb {
        Verb::Status => status(),
        Verb::Stop => stop(),
        Verb::Url => print::line(database::kept()?.0),
    })
    .await
}

fn status() -> Result<()> {
    let folder = Cluster::usual_place()?;
    match Cluster::status(&folder) {
        Some(running) => {
            let place = folder.display();
            print::if_open(print::line(format!("running as process {} in {place}", running.pid())))
        }
        None => Err(Error::new(format!("no private PostgreSQL is running in {}", folder.display()))
            .hint("it starts when it is first needed, or with `trunkline postgres url`")),
    }
}

fn stop() -> Result<()> {
    match Cluster::attach(Cluster::usual_place()?)? {
        Some(cluster) => {
            cluster.stop(Stop::Fast)?;
            print::after_change(print::line("stopped"))
        }
        None => print::if_open(print::line("it was not running")),
    }
}
