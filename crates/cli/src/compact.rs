//! `trunkline compact`

use std::time::Duration;

use trunkline::{Db, postgres::Statement};

use crate::{
    any::AnyQueue,
    database::Database,
    deed,
    error::{Error, Result, lacks_right},
    number, print,
    text::Unread,
    time,
};

/// The arguments of `trunkline compact`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Deleted rows occupy disk space until vacuum removes them, which it cannot do while an older transaction
is open. This command copies the messages, which are few then, into an empty file. Programs that consume
with the library do so by themselves, for tables of 32 MB or more. If all consumers use SQL, run this
command with --if-held from a cron job. If a session is in the way, the command frees 0 bytes, and writes
the reason to standard error. It writes no reason if messages occupy more than a tenth of the space, or
if they have more than 50 MB or 100,000 rows for each second of --max-pause. The role needs the rights
of a consumer.

Example:
  trunkline compact emails")]
pub struct Args {
    /// The queue
    queue: String,
    /// The minimum number of bytes to free
    #[arg(long, value_name = "BYTES", default_value = "33554432", value_parser = number::count::<i64>)]
    at_least: i64,
    /// The longest time for which producers and consumers may have to wait
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time::more_than_zero)]
    max_pause: Duration,
    /// Do nothing while vacuum can remove the rows
    #[arg(long)]
    if_held: bool,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let how = (args.at_least, args.max_pause.as_secs_f64(), args.if_held);
    let queue = match database.is_sharded() {
        true => Some(database.queue_unread(&args.queue).await?),
        false => None,
    };
    let compacted = if let Some(all @ AnyQueue::Sharded { queue, .. }) = &queue {
        let parts = async {
            let on = |part: trunkline::Queue<Unread>| compact(part.db().clone(), part.description().name.clone(), how);
            let parts = queue.on_each(on).await;
            parts.into_iter().map(|part| part.of).collect::<trunkline::Result<Vec<Compacted>>>()
        };
        all.change(parts).await
    } else {
        // Neither opens nor describes an existing queue, because both may wait for a session that
        // has locked its table.
        let db = database.connect().await?;
        if db.list_queues().await?.iter().all(|queue| queue.name != args.queue) {
            db.describe_queue(&args.queue).await?; // an error with advice
        }
        deed::on(&db, compact(db.clone(), args.queue.clone(), how)).await.map(|one| vec![one])
    };
    let compacted: Vec<Compacted> = compacted.map_err(|error| match error {
        Error::Database(error) if lacks_right(&error) => Error::new(format!(
            "permission denied for the tables of queue {0:?}. To compact a queue, a role needs the rights of a consumer; \
             run `trunkline grant {0} --consumer ROLE`",
            args.queue
        )),
        error => error,
    })?;
    for refused in compacted.iter().filter_map(|(_, refused)| refused.as_deref()) {
        print::note(format!("warning: queue {:?} was not compacted: {refused}", args.queue));
    }
    let printed = print::done([compacted.iter().map(|(freed, _)| freed).sum::<i64>()].iter());
    match queue {
        Some(queue) => queue.complete(printed),
        None => printed,
    }
}

/// The number of freed bytes, and the reason if there are none.
type Compacted = (i64, Option<String>);

/// Returns the number of freed bytes. If deleted rows occupy space but no byte was freed, also
/// returns the reason.
async fn compact(
    db: Db,
    queue: String,
    (at_least, max_pause, if_held): (i64, f64, bool),
) -> trunkline::Result<Compacted> {
    let schema = db.schema_name().replace('"', "\"\"");
    let text = format!(
        "select freed, refused from \"{schema}\".compact($1, $2, pg_catalog.make_interval(secs => $3), $4) c(freed, refused)"
    );
    let statement: Statement<(&str, i64, f64, bool), Compacted> = Statement::of(text);
    db.run(&statement, (&*queue, at_least, max_pause, if_held)).await
}
