//! `trunkline schedule set|list|pause|resume|now|drop|run`

mod list;
mod set;

use crate::{database::Database, deed, error::Result, print, stop::Stop};

/// The verbs of `trunkline schedule`.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Create or change a schedule; prints its next ticks
    Set(set::Args),
    /// List all schedules, sorted by name
    #[command(after_help = "\
Examples:
  trunkline schedule list
  trunkline schedule list --json | jq -r 'select(.problem) | .name'")]
    List {
        /// Print a line of JSON for each schedule, with the whole payload
        #[arg(long)]
        json: bool,
    },
    /// Stop making ticks until the schedule is resumed
    #[command(after_help = "\
Example:
  trunkline schedule pause nightly")]
    Pause {
        /// The schedule
        name: String,
    },
    /// Continue with the next tick; ticks missed during the pause are not made up for
    #[command(after_help = "\
Example:
  trunkline schedule resume nightly")]
    Resume {
        /// The schedule
        name: String,
    },
    /// Enqueue its message now, in addition to its ticks; prints the message's id
    #[command(after_help = "\
Example:
  trunkline schedule now nightly")]
    Now {
        /// The schedule
        name: String,
    },
    /// Drop a schedule; messages that it has enqueued stay
    #[command(after_help = "\
Example:
  trunkline schedule drop nightly")]
    Drop {
        /// The schedule
        name: String,
    },
    /// Make the ticks of all schedules, and do nothing else, until a signal arrives
    #[command(after_help = "\
`trunkline work` and every program with a worker make the ticks, too. Any number of them may run: each
tick is made once. The role must be the one that created the schema, or an operator of all queues
(trunkline grant --all --operator ROLE).

Example:
  trunkline schedule run")]
    Run,
}

pub async fn run(verb: Verb, database: &Database) -> Result<()> {
    match verb {
        Verb::Set(args) => set::run(args, database).await,
        Verb::List { json } => list::run(json, database).await,
        Verb::Pause { name } => {
            let db = database.connect().await?;
            deed::on(&db, db.pause_schedule(&name)).await
        }
        Verb::Resume { name } => {
            let db = database.connect().await?;
            deed::on(&db, db.resume_schedule(&name)).await
        }
        Verb::Now { name } => {
            let db = database.connect().await?;
            print::done([deed::on(&db, db.fire_schedule(&name)).await?].iter())
        }
        Verb::Drop { name } => {
            let db = database.connect().await?;
            deed::on(&db, db.drop_schedule(&name)).await
        }
        Verb::Run => {
            let mut stop = Stop::on_signals()?;
            match stop.or_connected(database.connect()).await? {
                Some(db) => Ok(db.run_schedules(stop.asked()).await?),
                None => Ok(()),
            }
        }
    }
}
