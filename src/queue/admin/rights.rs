//! Rights of roles on queues.

use crate::{
    error::{Error, Kind, Result},
    postgres::db::{Class, Db},
};

/// A role's part in a queue, which comes with the least rights for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Right {
    /// Enqueues. Reads no payload.
    Producer,
    /// Takes and leases, and ends leases; finds, cancels and reschedules. Enqueues nothing.
    Consumer,
    /// As a consumer; and reads, replays, discards, purges and prunes.
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
    /// Gives roles the least rights for what they do, in one queue, or in all, those that are
    /// created later among them. They last through migrations. All roles or none.
    ///
    /// # Errors
    /// A role or the queue does not exist, or this is not the role that the schema belongs to.
    pub async fn grant(&self, rights: &[(Right, &str)], queue: Option<&str>) -> Result<()> {
        let (kinds, roles): (Vec<&str>, Vec<&str>) = rights.iter().map(|(right, role)| (right.kind(), *role)).unzip();
        self.exist(&roles, queue).await?;
        let sql = self.statement("grant", include_str!("../../../sql/statements/grant.sql"));
        self.query(Class::Main, &sql, &[&roles, &kinds, &queue]).await.map(drop)
    }

    /// Takes all from roles that [`Db::grant`] gave them, in one queue or everywhere. All roles or
    /// none.
    ///
    /// # Errors
    /// As with [`Db::grant`]; or a role has rights in every queue, of which one cannot be taken.
    pub async fn revoke(&self, roles: &[&str], queue: Option<&str>) -> Result<()> {
        self.exist(roles, queue).await?;
        let sql = self.statement("revoke", include_str!("../../../sql/statements/revoke.sql"));
        self.query(Class::Main, &sql, &[&roles, &queue]).await.map(drop)
    }

    async fn exist(&self, roles: &[&str], queue: Option<&str>) -> Result<()> {
        match queue {
            Some(queue) => drop(self.describe_queue(queue).await?),
            None => self.check_schema().await?,
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
