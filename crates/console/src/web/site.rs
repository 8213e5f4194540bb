//! The state that all pages share.

use std::sync::Arc;

use tokio::sync::Semaphore;
use trunkline::Db;

use super::{
    access::{Guard, Role, Visitor},
    checkup::Checkup,
    gate::Gate,
    health::Health,
    pulse::Pulse,
    shared::Shared,
    statement,
    workings::Workings,
};
use crate::metrics::Metrics;

#[derive(Debug)]
pub struct Site {
    pub db: Db,
    pub guard: Guard,
    pub pulse: Pulse,
    pub metrics: Metrics,
    pub read_only: bool,
    /// The name of the database, for visitors with several databases.
    pub title: String,
    /// True if the console serves TLS.
    pub is_secure: bool,
    /// Limits the number of passwords that are checked at the same time.
    pub logins: Arc<Semaphore>,
    /// Limits the number of pages with live numbers.
    pub live: Arc<Semaphore>,
    /// Limits the number of pages that query the database.
    pub gate: Gate,
    pub health: Health,
    pub checkup: Arc<Checkup>,
    /// The pages about how a queue works, by the queue's name.
    pub workings: Shared<Workings>,
    /// The prefix of all paths, such as `/ops/queues`, or empty.
    pub base: String,
}

impl Site {
    /// Returns a path with the prefix, as the browser sees it.
    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Fails with the reason if the visitor may not act.
    pub async fn may_act(&self, visitor: &Visitor) -> Result<(), &'static str> {
        if self.read_only {
            return Err("the console was started with --read-only");
        }
        if visitor.role < Role::Operator {
            return Err("you are a viewer");
        }
        match statement::may_act(&self.db).await {
            Ok((_, true)) => Err("the server is a standby: make changes on the primary"),
            Ok((true, _)) => Ok(()),
            Ok((false, _)) => {
                Err("the console's Postgres role may not write trunkline.audit: grant it the rights of an operator")
            }
            Err(error) if error.is_closed() => Err("the database does not answer"),
            Err(_) => Err("the console cannot read the rights of its Postgres role"),
        }
    }
}
