//! `trunkline grant` and `trunkline revoke`: what a role may do with queues.

use trunkline::{Db, Statement};

use crate::{
    database::Database,
    error::{Error, Result},
};

/// The arguments of `trunkline grant`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "trunkline grant [OPTIONS] <QUEUE|--all> <--producer|--consumer|--operator> <ROLE> ...",
    group = clap::ArgGroup::new("rights").args(["producer", "consumer", "operator"]).multiple(true).required(true),
    after_help = "\
The role must exist, and be told apart from the one that migrates the schema. What it had before it keeps.

Examples:
  trunkline grant emails --producer web --consumer mailer
  trunkline grant --all --operator admin"
)]
pub struct Grant {
    #[command(flatten)]
    which: Which,
    /// A role that may enqueue
    #[arg(long, value_name = "ROLE")]
    producer: Vec<String>,
    /// A role that may dequeue, and end leases
    #[arg(long, value_name = "ROLE")]
    consumer: Vec<String>,
    /// A role that may dequeue, and look after queues: read, replay, discard, purge, prune
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
    which: Which,
    /// The role that may do nothing with them any more
    #[arg(long, value_name = "ROLE", required = true)]
    from: Vec<String>,
}

/// One queue or all of them.
#[derive(Debug, clap::Args)]
struct Which {
    /// The queue
    #[arg(required_unless_present = "all")]
    queue: Option<String>,
    /// All queues, those that are created later included
    #[arg(long, conflicts_with = "queue")]
    all: bool,
}

impl Which {
    /// Connects, and sees whether the queue is there.
    async fn connect(&self, database: &Database) -> Result<Db> {
        let db = database.connect().await?;
        match &self.queue {
            Some(queue) => drop(db.describe_queue(queue).await?),
            None => drop(db.list_queues().await?),
        }
        Ok(db)
    }
}

type GrantRights = Statement<(String, &'static str, Option<String>), u64>;
type RevokeRights = Statement<(String, Option<String>), u64>;

static GRANT: GrantRights =
    Statement::new("select trunkline.grant_rights(quote_ident($1::text)::regrole, $2::text, $3::text)");
static REVOKE: RevokeRights =
    Statement::new("select trunkline.revoke_rights(quote_ident($1::text)::regrole, $2::text)");

pub async fn grant(args: Grant, database: &Database) -> Result<()> {
    let db = args.which.connect(database).await?;
    let roles = [("producer", args.producer), ("consumer", args.consumer), ("operator", args.operator)];
    let roles: Vec<(&str, String)> =
        roles.into_iter().flat_map(|(what, roles)| roles.into_iter().map(move |role| (what, role))).collect();
    let queue = args.which.queue;
    let many = roles.iter().map(|(what, role)| (role.clone(), *what, queue.clone()));
    // All of them or none.
    db.run_many(&GRANT, many).await.map_err(|error| refused(error, roles.iter().map(|(_, role)| role)))?;
    Ok(())
}

pub async fn revoke(args: Revoke, database: &Database) -> Result<()> {
    let db = args.which.connect(database).await?;
    let (roles, queue) = (args.from, args.which.queue);
    let many = roles.iter().map(|role| (role.clone(), queue.clone()));
    db.run_many(&REVOKE, many).await.map_err(|error| refused(error, roles.iter()))?;
    Ok(())
}

/// In the words of this program: it was no statement of the user's.
fn refused<'a>(error: trunkline::Error, mut roles: impl Iterator<Item = &'a String>) -> Error {
    let role = error.failed_statement().and_then(|place| roles.nth(place));
    match (error.sqlstate().map(tokio_postgres::error::SqlState::code), role) {
        (Some("42704"), Some(role)) => Error::new(format!("there is no role {role:?}; nothing was changed"))
            .hint("`create role NAME login` in psql creates one"),
        (Some("42501"), _) => {
            Error::from(error).hint("the role that created the schema with `trunkline migrate` may do this")
        }
        // The statement is ours, and says nothing to the user.
        _ => match std::error::Error::source(&error) {
            Some(cause) if error.failed_statement().is_some() => Error::new(cause.to_string()),
            _ => error.into(),
        },
    }
}
