//! `trunkline queue create|alter|pause|resume|limit|list|describe|drop`

mod args;
mod page;

use trunkline::Settings;

use self::args::{Alter, Create, Limit};
use crate::{
    database::Database,
    deed,
    error::{Error, Result},
    print,
};

/// The verbs of `trunkline queue`.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Create a queue; does nothing if it already exists with the same settings
    Create(Create),
    /// Change settings of a queue; prints its new settings
    Alter(Alter),
    /// Stop handing out messages; messages can still be enqueued, and leased ones finished
    #[command(after_help = "\
Example:
  trunkline queue pause emails")]
    Pause {
        /// The queue
        name: String,
    },
    /// Hand out messages again after a pause
    #[command(after_help = "\
Example:
  trunkline queue resume emails")]
    Resume {
        /// The queue
        name: String,
    },
    /// Set the limits of a queue, for all processes together; a limit that is not named is removed
    Limit(Limit),
    /// List all queues, sorted by name
    #[command(after_help = "\
Examples:
  trunkline queue list
  trunkline queue list --json | jq -r .name")]
    List {
        /// Print a line of JSON for each queue
        #[arg(long)]
        json: bool,
    },
    /// Show one queue: its settings, its limits, its messages, its schedules, and the roles that
    /// may use it
    #[command(after_help = "\
Example:
  trunkline queue describe emails")]
    Describe {
        /// The queue
        name: String,
        /// Print one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Drop a queue and everything in it, including dead letters and the archive
    #[command(after_help = "\
Example:
  trunkline queue drop emails --yes")]
    Drop {
        /// The queue
        name: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

pub async fn run(verb: Verb, database: &Database) -> Result<()> {
    match verb {
        Verb::Create(create) => {
            let is_named = create.payload.is_some();
            let settings = Settings::new(create.payload.unwrap_or_else(|| args::PAYLOAD.to_owned()))
                .max_attempts(create.max_attempts);
            let settings = settings.lease(create.lease).max_batch(create.max_batch);
            let settings = settings.priorities(create.priorities).aging(create.aging);
            let settings = settings.uniqueness(create.uniqueness);
            let settings = settings.partitions(create.partitions).per_key(create.per_key);
            for (place, db) in database.connect_each().await? {
                let created = deed::on(&db, db.create_queue(&create.name, &settings)).await;
                created.map_err(|error| error.at(&place))?;
            }
            if !is_named && !database.quiet {
                print::note(
                    "its payloads are bytea, which holds any bytes; for payloads that psql shows as text, use --type text \
                     or --type jsonb",
                );
            }
            Ok(())
        }
        Verb::Alter(alter) => {
            let dbs = database.connect_each().await?;
            for (place, db) in &dbs {
                let altered = deed::on(db, db.alter_queue(&alter.name, &alter.changes())).await;
                altered.map_err(|error| error.at(place))?;
            }
            print::after_change(page::show(&dbs, &alter.name, alter.json).await)
        }
        Verb::Pause { name } => {
            for (place, db) in database.connect_each().await? {
                deed::on(&db, db.pause_queue(&name)).await.map_err(|error| error.at(&place))?;
            }
            Ok(())
        }
        Verb::Resume { name } => {
            for (place, db) in database.connect_each().await? {
                deed::on(&db, db.resume_queue(&name)).await.map_err(|error| error.at(&place))?;
            }
            Ok(())
        }
        // A limit needs a single server, because no server can enforce a limit for several servers
        // together.
        Verb::Limit(limit) => {
            let db = database.connect().await?;
            deed::on(&db, db.limit_queue(&limit.name, &limit.limits())).await
        }
        Verb::List { json } => {
            let mut all = Vec::new();
            for (place, db) in database.connect_each().await? {
                let queues = db.list_queues().await.map_err(|error| Error::from(error).at(&place))?;
                all.extend(queues.into_iter().map(|queue| (place.clone(), queue)));
            }
            all.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name)); // the sort is stable, so servers stay in order
            page::list(&all, json)
        }
        Verb::Describe { name, json } => page::show(&database.connect_each().await?, &name, json).await,
        Verb::Drop { name, yes } => {
            let place = database.place();
            crate::confirm(format!("drop queue {name:?} in {place}, with all that is in it"), yes).await?;
            // Ignores servers without the queue if it exists on another one: an earlier call may
            // have dropped the queue on some of the servers.
            let (mut is_dropped, mut missing) = (false, None);
            for (place, db) in database.connect_each().await? {
                match deed::on(&db, db.drop_queue(&name)).await {
                    Err(Error::Database(error)) if error.is_no_queue() => {
                        missing = Some(Error::from(error).at(&place));
                    }
                    dropped => {
                        dropped.map_err(|error| error.at(&place))?;
                        is_dropped = true;
                    }
                }
            }
            missing.filter(|_| !is_dropped).map_or(Ok(()), Err)
        }
    }
}
