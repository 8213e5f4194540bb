//! `trunkline compact`

use std::time::Duration;

use trunkline::{Payload, Queue, postgres::Statement};

use crate::{
    any::AnyQueue,
    database::Database,
    error::{Error, Result, lacks_right},
    number, print, time,
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
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time::duration)]
    max_pause: Duration,
    /// Do nothing while vacuum can remove the rows
    #[arg(long)]
    if_held: bool,
}

pub async fn run(args: Args, database: &Database) -> Result<()> {
    let how = (args.at_least, args.max_pause.as_secs_f64(), args.if_held);
    let queue = database.queue_unread(&args.queue).await?;
    let compacted = match &queue {
        AnyQueue::One(queue) => compact(queue.clone(), how).await.map(|one| vec![one]),
        AnyQueue::Sharded { queue, .. } => {
            let parts = queue.on_each(|part| compact(part, how)).await;
            parts.into_iter().map(|part| part.of).collect::<trunkline::Result<_>>()
        }
    };
    let compacted: Vec<Compacted> = compacted.map_err(|error| match lacks_right(&error) {
        true => Error::new(format!(
            "permission denied for the tables of queue {0:?}. To compact a queue, a role needs the rights of a consumer; \
             run `trunkline grant {0} --consumer ROLE`",
            args.queue
        )),
        false => error.into(),
    })?;
    for refused in compacted.iter().filter_map(|(_, refused)| refused.as_deref()) {
        print::note(format!("warning: queue {:?} was not compacted: {refused}", args.queue));
    }
    queue.complete(print::done([compacted.iter().map(|(freed, _)| freed).sum::<i64>()].iter()))
}

/// The number of freed bytes, and the reason if there are none.
type Compacted = (i64, Option<String>);

/// Returns the number of freed bytes. If deleted rows occupy space but no byte was freed, also
/// returns the reason.
async fn compact<T: Payload>(
    queue: Queue<T>,
    (at_least, max_pause, if_held): (i64, f64, bool),
) -> trunkline::Result<Compacted> {
    let schema = queue.db().schema_name().replace('"', "\"\"");
    let text = format!(
        "select freed, refused from \"{schema}\".compact($1, $2, pg_catalog.make_interval(secs => $3), $4) c(freed, refused)"
    );
    let statement: Statement<(&str, i64, f64, bool), Compacted> = Statement::of(text);
    queue.db().run(&statement, (&*queue.description().name, at_least, max_pause, if_held)).await
}
