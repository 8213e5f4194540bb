//! Transactions and savepoints.

use std::ops::Deref;

use tokio_postgres::IsolationLevel;

use super::{client::Client, failure::Error, simple_query};
use crate::postgres::wire::Group;

impl Client {
    /// Begins a transaction. If the transaction is dropped, it is rolled back.
    ///
    /// # Errors
    /// The errors of [`Client::prepare`].
    pub async fn transaction(&mut self) -> Result<Transaction<'_>, Error> {
        self.build_transaction().start().await
    }

    /// Returns a builder for a transaction with an isolation level and other modes.
    pub fn build_transaction(&mut self) -> TransactionBuilder<'_> {
        TransactionBuilder::new(self)
    }
}

/// A transaction or a savepoint, with all methods of its [`Client`]. If it is dropped, it is rolled
/// back.
#[derive(Debug)]
pub struct Transaction<'a> {
    client: &'a Client,
    savepoint: Option<(String, u32)>,
    is_done: bool,
}

impl Deref for Transaction<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client
    }
}

impl<'a> Transaction<'a> {
    /// Commits the transaction, or releases the savepoint. If a statement of the transaction has
    /// failed, the server rolls back, and the call still succeeds, like that of tokio-postgres.
    ///
    /// # Errors
    /// The server rejects the commit, or the connection broke.
    pub async fn commit(mut self) -> Result<(), Error> {
        self.is_done = true;
        let text = self.savepoint.as_ref().map_or_else(|| "COMMIT".to_owned(), |(name, _)| format!("RELEASE {name}"));
        self.run(&text).await
    }

    /// Rolls back the transaction, or rolls back to the savepoint.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn rollback(mut self) -> Result<(), Error> {
        self.is_done = true;
        self.run(&self.back()).await
    }

    /// Sets a savepoint.
    ///
    /// # Errors
    /// The transaction has failed, or the connection broke.
    pub async fn transaction(&mut self) -> Result<Transaction<'_>, Error> {
        self.set_savepoint(None).await
    }

    /// Sets a savepoint with the given name.
    ///
    /// # Errors
    /// The transaction has failed, or the connection broke.
    pub async fn savepoint<I: Into<String>>(&mut self, name: I) -> Result<Transaction<'_>, Error> {
        self.set_savepoint(Some(name.into())).await
    }

    /// Returns the client of this transaction.
    #[must_use]
    pub fn client(&self) -> &Client {
        self.client
    }

    async fn set_savepoint(&mut self, name: Option<String>) -> Result<Transaction<'_>, Error> {
        let depth = self.savepoint.as_ref().map_or(0, |(_, depth)| *depth) + 1;
        let name = name.unwrap_or_else(|| format!("sp_{depth}"));
        // If this future is dropped, the savepoint may exist, so it is rolled back.
        let mut savepoint = Transaction { client: self.client, savepoint: Some((name.clone(), depth)), is_done: false };
        if let Err(error) = self.run(&format!("SAVEPOINT {name}")).await {
            savepoint.is_done = true; // there is nothing to roll back to
            return Err(error);
        }
        Ok(savepoint)
    }

    async fn run(&self, text: &str) -> Result<(), Error> {
        simple_query::run(&self.client.inner, text).await.map(drop)
    }

    fn back(&self) -> String {
        self.savepoint.as_ref().map_or_else(|| "ROLLBACK".to_owned(), |(name, _)| format!("ROLLBACK TO {name}"))
    }

    async fn begin(client: &'a Client, text: &str) -> Result<Self, Error> {
        let mut transaction = Self { client, savepoint: None, is_done: false }; // rolled back if this future is dropped
        match transaction.run(text).await {
            Ok(()) => Ok(transaction),
            Err(error) => {
                transaction.is_done = true;
                Err(error)
            }
        }
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut group = Group::new();
        if group.script(&self.back()).is_ok() {
            drop(self.client.inner.connection.send(group));
        }
    }
}

/// A builder for a transaction with an isolation level and other modes.
#[derive(Debug)]
#[must_use = "a builder does nothing until it is started"]
pub struct TransactionBuilder<'a> {
    client: &'a Client,
    isolation_level: Option<IsolationLevel>,
    read_only: Option<bool>,
    deferrable: Option<bool>,
}

impl<'a> TransactionBuilder<'a> {
    pub(super) fn new(client: &'a mut Client) -> Self {
        Self { client, isolation_level: None, read_only: None, deferrable: None }
    }

    /// Sets the isolation level.
    pub fn isolation_level(mut self, isolation_level: IsolationLevel) -> Self {
        self.isolation_level = Some(isolation_level);
        self
    }

    /// Sets whether the transaction is read-only.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = Some(read_only);
        self
    }

    /// Sets whether a serializable, read-only transaction waits for a safe snapshot.
    pub fn deferrable(mut self, deferrable: bool) -> Self {
        self.deferrable = Some(deferrable);
        self
    }

    /// Begins the transaction.
    ///
    /// # Errors
    /// The server rejects the modes, or the connection broke.
    pub async fn start(self) -> Result<Transaction<'a>, Error> {
        let mut modes = Vec::new();
        modes.extend(self.isolation_level.map(level));
        modes.extend(self.read_only.map(|only| if only { "READ ONLY" } else { "READ WRITE" }));
        modes.extend(self.deferrable.map(|defers| if defers { "DEFERRABLE" } else { "NOT DEFERRABLE" }));
        Transaction::begin(self.client, &format!("START TRANSACTION {}", modes.join(", "))).await
    }
}

fn level(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::ReadUncommitted => "ISOLATION LEVEL READ UNCOMMITTED",
        IsolationLevel::RepeatableRead => "ISOLATION LEVEL REPEATABLE READ",
        IsolationLevel::Serializable => "ISOLATION LEVEL SERIALIZABLE",
        _ => "ISOLATION LEVEL READ COMMITTED",
    }
}
