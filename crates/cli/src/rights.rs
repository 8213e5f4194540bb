//! `trunkline grant` and `trunkline revoke`: what a role may do with queues.

use trunkline::Right;

use crate::{
    database::Database,
    deed,
    error::{Error, Result, lacks_right},
};

/// The arguments of `trunkline grant`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "trunkline grant [OPTIONS] <QUEUE|--all> <--producer|--consumer|--operator> <ROLE> ...",
    group = clap::ArgGroup::new("rights").args(["producer", "consumer", "operator"]).multiple(true).required(true),
    after_help = "\
The role must exist, and must not be the owner of the schema. It keeps the rights that it
already has.

Examples:
  trunkline grant emails --producer web --consumer mailer
  trunkline grant --all --operator admin"
)]
pub struct Grant {
    #[command(flatten)]
    which: QueueOrAll,
    /// A role that may enqueue
    #[arg(long, value_name = "ROLE")]
    producer: Vec<String>,
    /// A role that may dequeue, end leases, and list, cancel, reschedule and purge messages
    #[arg(long, value_name = "ROLE")]
    consumer: Vec<String>,
    /// A role that may enqueue, dequeue and operate queues: replay, discard, prune
    #[arg(long, value_name = "ROLE")]
    operator: Vec<String>,
}

/// The arguments of `trunkline revoke`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "trunkline revoke [OPTIONS] <QUEUE|--all> --from <ROLE> ...",
    after_help = "\
Examples:
  trunkline revoke emails --from web
  trunkline revoke --all --from admin"
)]
pub struct Revoke {
    #[command(flatten)]
    which: QueueOrAll,
    /// A role that loses all its rights on the queue or queues
    #[arg(long, value_name = "ROLE", required = true)]
    from: Vec<String>,
}

/// A queue, or all of them.
#[derive(Debug, clap::Args)]
struct QueueOrAll {
    /// The queue
    #[arg(required_unless_present = "all")]
    queue: Option<String>,
    /// All queues, including those created later
    #[arg(long, conflicts_with = "queue")]
    all: bool,
}

pub async fn grant(args: Grant, database: &Database) -> Result<()> {
    let roles =
        [(Right::Producer, &args.producer), (Right::Consumer, &args.consumer), (Right::Operator, &args.operator)];
    let rights: Vec<(Right, &str)> =
        roles.into_iter().flat_map(|(right, roles)| roles.iter().map(move |role| (right, &**role))).collect();
    for (place, db) in database.connect_each().await? {
        told(&place, deed::on(&db, db.grant(&rights, args.which.queue.as_deref())).await)?;
    }
    Ok(())
}

pub async fn revoke(args: Revoke, database: &Database) -> Result<()> {
    let roles: Vec<&str> = args.from.iter().map(String::as_str).collect();
    for (place, db) in database.connect_each().await? {
        told(&place, deed::on(&db, db.revoke(&roles, args.which.queue.as_deref())).await)?;
    }
    Ok(())
}

fn told(place: &str, outcome: Result<()>) -> Result<()> {
    let outcome = outcome.map_err(|error| match error {
        Error::Database(error) if lacks_right(&error) => {
            Error::from(error).hint("the role that created the schema with `trunkline migrate` may do this")
        }
        error => error,
    });
    outcome.map_err(|error| error.at(place))
}
