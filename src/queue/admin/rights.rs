//! The rights of roles on queues.

use crate::{
    error::{Error, Kind, Result},
    postgres::db::{Class, Db},
};

/// The tasks that a role can have in a queue. Each task comes with the minimum rights that it
/// needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Right {
    /// Enqueues messages. Cannot read payloads.
    Producer,
    /// Takes, leases and settles messages, finds, cancels and reschedules them, and purges the
    /// queue. Cannot enqueue.
    Consumer,
    /// Has the rights of a consumer and of a producer, and also replays, discards and prunes.
    Operator,
}

impl Right {
    fn kind(self) -> &'static str {
        match self {
            Self::Producer => "producer",
            Self::Consumer => "consumer",
            Self::Operator => "operator",
        }
    }
}

impl Db {
    /// Grants roles the minimum rights for their tasks, in one queue or in all queues. All queues
    /// include queues that are created later. Migrations keep these rights. Changes all roles or
    /// none.
    ///
    /// # Errors
    /// A role or the queue does not exist, or the current role does not own the schema.
    pub async fn grant(&self, rights: &[(Right, &str)], queue: Option<&str>) -> Result<()> {
        let (kinds, roles): (Vec<&str>, Vec<&str>) = rights.iter().map(|(right, role)| (right.kind(), *role)).unzip();
        self.exist(&roles, queue).await?;
        let sql = self.statement("grant", include_str!("../../../sql/statements/grant.sql"));
        self.query(Class::Main, &sql, &[&roles, &kinds, &queue]).await.map(drop)
    }

    /// Revokes all rights that [`Db::grant`] granted to these roles, in one queue or in all queues.
    /// Changes all roles or none.
    ///
    /// # Errors
    /// The errors of [`Db::grant`]. Or a role has rights in all queues, which cannot be revoked for
    /// a single queue.
    pub async fn revoke(&self, roles: &[&str], queue: Option<&str>) -> Result<()> {
        self.exist(roles, queue).await?;
        let sql = self.statement("revoke", include_str!("../../../sql/statements/revoke.sql"));
        self.query(Class::Main, &sql, &[&roles, &queue]).await.map(drop)
    }

    async fn exist(&self, roles: &[&str], queue: Option<&str>) -> Result<()> {
        match queue {
            Some(queue) => drop(self.describe_queue(queue).await?),
            None => self.check_schema("grant").await?,
        }
        let sql = self.statement("no_role", include_str!("../../../sql/statements/no_role.sql"));
        match self.query_again(Class::Main, &sql, &[&roles]).await?.first() {
            Some(row) => Err(Error::new(Kind::Invalid(format!(
                "there is no role {:?}; nothing was changed (`create role NAME login` creates one)",
                row.read::<String>(0)?
            )))),
            None => Ok(()),
        }
    }
}
