//! A `tokio-postgres` connection that is reopened after it breaks.

use std::time::Duration;

use tokio_postgres::{Client, Error, NoTls, Row, types::ToSql};

use crate::{history::Said, roles::user::User};

pub struct Session {
    user: User,
    client: Option<Client>,
    /// Set while a transaction is open. The transaction cannot continue on another connection.
    is_open: bool,
}

impl Session {
    pub fn new(user: User) -> Self {
        Self { user, client: None, is_open: false }
    }

    /// Returns the rows of a statement, or the outcome of its operation if the statement fails.
    pub async fn rows(&mut self, text: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Said> {
        if !self.is_open && self.client.as_ref().is_none_or(Client::is_closed) {
            self.client = Some(self.connected().await?);
        }
        let Some(client) = &self.client else { return Err(Said::Failed("there is no connection".to_owned())) };
        let outcome = client.query(text, params).await;
        outcome.map_err(|error| {
            if is_broken(&error) {
                self.client = None;
            }
            said(&error)
        })
    }

    pub async fn begin(&mut self) -> Result<(), Said> {
        self.rows("begin", &[]).await?;
        self.is_open = true;
        Ok(())
    }

    /// Ends the transaction with `commit` or `rollback`.
    pub async fn end(&mut self, how: &str) -> Result<(), Said> {
        let ended = self.rows(how, &[]).await;
        self.is_open = false;
        ended.map(drop)
    }

    /// Closes the connection, which rolls back an open transaction.
    pub fn close(&mut self) {
        (self.client, self.is_open) = (None, false);
    }

    async fn connected(&mut self) -> Result<Client, Said> {
        let connected =
            tokio::time::timeout(Duration::from_secs(5), tokio_postgres::connect(self.user.url(), NoTls)).await;
        match connected {
            Ok(Ok((client, connection))) => {
                tokio::spawn(async move {
                    let _ = connection.await; // the client receives the error
                });
                Ok(client)
            }
            Ok(Err(error)) => {
                self.user.rest(Duration::from_millis(200)).await;
                Err(Said::Failed(format!("no connection: {error}")))
            }
            Err(_) => Err(Said::Failed("no connection in time".to_owned())),
        }
    }
}

/// Returns true if the connection broke or the server ended it, possibly after a commit.
fn is_broken(error: &Error) -> bool {
    error.code().is_none_or(|code| code.code().starts_with("57P0"))
}

fn said(error: &Error) -> Said {
    if is_broken(error) {
        return Said::Unknown(error.to_string());
    }
    let code = error.code().map_or("", |code| code.code());
    Said::Failed(format!(
        "{code}: {}",
        error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned())
    ))
}
