//! A client, which has one connection with its own session.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use postgres_types::Type;

use super::{
    cancel::CancelToken,
    failure::Error,
    session::ClientSession,
    statement::{Statement, sealed::Form},
};
use crate::postgres::wire::{CachedStatement, Group, Prepared, Signature, WireError};

impl ClientSession {
    /// Returns the statement, and prepares it if necessary.
    pub async fn statement(self: &Arc<Self>, form: Form<'_>) -> Result<Statement, WireError> {
        match form {
            Form::Prepared(statement) => Ok(statement.clone()),
            Form::Text(text) => self.connection.prepare(text).await.map(Statement::kept),
        }
    }

    async fn prepare(self: &Arc<Self>, text: &str, types: &[Type]) -> Result<Statement, WireError> {
        // Uses no name behind a pooler in transaction mode, where another program's statement may
        // have the same name.
        let keeps = self.connection.keeps_statements();
        let name = if keeps { Self::name('c') } else { String::new() };
        let group = Group::prepare(&name, text, types)?;
        self.connection.room().await;
        let reply = self.connection.send(group).await?;
        let columns = Arc::new(self.connection.typed(&Signature::read(reply.chunks())?).await?);
        if !keeps {
            return Ok(Statement::kept(Prepared { text: text.into(), named: None, columns }));
        }
        let named = Arc::new(CachedStatement::new(name, text.into()));
        let named_columns: &OnceLock<_> = &named.typed;
        let columns = named_columns.get_or_init(|| columns).clone();
        let prepared = Prepared { text: named.text.clone(), named: Some(named), columns };
        Ok(Statement::owned(prepared, self))
    }
}

/// A connection to a database, with the methods of `tokio_postgres::Client`.
///
/// Concurrent calls are pipelined. A statement that is given as text is prepared once and cached.
/// The cache contains at most 1,000 texts.
pub struct Client {
    pub(super) inner: Arc<ClientSession>,
}

impl Client {
    /// Prepares a statement.
    ///
    /// # Errors
    /// The server rejects the statement, or the connection broke. All methods return these errors.
    pub async fn prepare(&self, query: &str) -> Result<Statement, Error> {
        self.prepare_typed(query, &[]).await
    }

    /// Prepares a statement, and specifies the types of its first parameters.
    ///
    /// # Errors
    /// The errors of [`Client::prepare`].
    pub async fn prepare_typed(&self, query: &str, parameter_types: &[Type]) -> Result<Statement, Error> {
        Ok(self.inner.prepare(query, parameter_types).await?)
    }

    /// Returns a token that can cancel the running statement.
    #[must_use]
    pub fn cancel_token(&self) -> CancelToken {
        self.inner.cancel.clone()
    }

    /// Does nothing. This client looks up types with each statement that it prepares.
    pub fn clear_type_cache(&self) {}

    /// Returns true if the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.inner.connection.is_closed()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client").finish_non_exhaustive()
    }
}
