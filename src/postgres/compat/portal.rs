//! Portals, which return the rows of a statement in parts.

use std::sync::{Arc, Weak};

use postgres_types::{BorrowToSql, ToSql};

use super::{
    failure::Error,
    messages::ReplyMessages,
    query::{self, RowStream},
    row::Row,
    session::ClientSession,
    statement::{Statement, ToStatement},
    transaction::Transaction,
};
use crate::postgres::wire::{self, Group, ReplyMode};

/// A statement with its parameters. A portal is closed when it is dropped or its transaction ends.
pub struct Portal {
    name: String,
    statement: Statement,
    client: Weak<ClientSession>,
}

impl Drop for Portal {
    fn drop(&mut self) {
        let Some(client) = self.client.upgrade() else { return };
        let mut group = Group::new();
        if group.close(&self.name).is_ok() {
            drop(client.connection.send(group));
        }
    }
}

impl Transaction<'_> {
    /// Binds parameters to a statement without running the statement.
    ///
    /// # Errors
    /// The errors of [`Client::query`](super::Client::query).
    pub async fn bind<T: ?Sized + ToStatement>(
        &self,
        statement: &T,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Portal, Error> {
        let statement = self.inner.statement(statement.form()).await?;
        open(&self.inner, statement, params).await
    }

    /// Binds parameters like [`Transaction::bind`]. The parameters come from an iterator of values
    /// or references.
    ///
    /// # Errors
    /// The errors of [`Client::query`](super::Client::query).
    pub async fn bind_raw<P, T, I>(&self, statement: &T, params: I) -> Result<Portal, Error>
    where
        T: ?Sized + ToStatement,
        P: BorrowToSql,
        I: IntoIterator<Item = P>,
        I::IntoIter: ExactSizeIterator,
    {
        let statement = self.inner.statement(statement.form()).await?;
        open(&self.inner, statement, &params.into_iter().collect::<Vec<P>>()).await
    }

    /// Returns at most `max_rows` more rows of a portal. If `max_rows` is 0 or less, returns all
    /// remaining rows.
    ///
    /// # Errors
    /// The errors of [`Client::query`](super::Client::query).
    pub async fn query_portal(&self, portal: &Portal, max_rows: i32) -> Result<Vec<Row>, Error> {
        self.inner.connection.room().await;
        let reply = self.inner.connection.send(more(portal, max_rows)?).await?;
        Ok(query::read(&portal.statement, &reply, 0))
    }

    /// Returns more rows of a portal like [`Transaction::query_portal`], as a stream.
    ///
    /// # Errors
    /// The errors of [`Client::query`](super::Client::query).
    pub async fn query_portal_raw(&self, portal: &Portal, max_rows: i32) -> Result<RowStream, Error> {
        let mut group = more(portal, max_rows)?;
        group.mode = ReplyMode::Streamed;
        self.inner.connection.room().await;
        let messages = ReplyMessages::new(self.inner.clone(), self.inner.connection.send(group));
        Ok(RowStream::new(portal.statement.clone(), messages))
    }
}

fn open<'a, P: BorrowToSql>(
    client: &'a Arc<ClientSession>,
    statement: Statement,
    params: &[P],
) -> impl Future<Output = Result<Portal, Error>> + 'a + use<'a, P> {
    let name = ClientSession::name('p');
    let mut group = Group::new();
    let expected = statement.params().len();
    let opened = match params.len() == expected {
        true => {
            let opened = group.open_portal(&name, statement.prepared(), params);
            opened.inspect_err(|failure| statement.prepared().columns.doubt_after(failure)).map_err(Error::from)
        }
        false => Err(Error::parameters(params.len(), expected)),
    };
    async move {
        opened?;
        let reply = query::send(client, group).await.inspect_err(|failure| {
            // The group counts no statement, so its failure has no text.
            client.connection.forget_outdated(&failure.clone().of_statement(0, &statement.prepared().text));
        })?;
        let changed = statement.prepared().columns.changed_in(reply.chunks());
        let statement = changed.map_or(statement.clone(), |columns| statement.with_columns(columns));
        Ok(Portal { name, statement, client: Arc::downgrade(client) })
    }
}

fn more(portal: &Portal, most: i32) -> Result<Group, Error> {
    let mut group = Group::new();
    let portal_rows = wire::Portal { name: &portal.name, most: most.max(0) };
    group.push_more(&portal.statement.prepared().text, portal_rows)?;
    Ok(group)
}

impl std::fmt::Debug for Portal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Portal").field("name", &self.name).finish_non_exhaustive()
    }
}
