//! The code that both programs use.

use std::error::Error;

use pgmq::{PGMQueueExt, PgmqError};
use serde::Serialize;

/// An error that ends a program.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Installs the SQL that the client contains, and creates the queues. Returns the versions.
///
/// # Errors
/// If the server refuses the installation, or does not report the installed version.
pub async fn install(pgmq: &PGMQueueExt, queues: &[&str]) -> Result<String, Failure> {
    pgmq.install_sql_from_embedded().await?;
    let version = pgmq.installed_version().await?.ok_or("pgmq does not say its version")?;
    for queue in queues {
        pgmq.create(queue).await?;
    }
    Ok(format!("pgmq {version}, crate pgmq 0.33.7"))
}

/// Sends one message or many in one call. Returns the ids.
///
/// # Errors
/// If the call fails.
pub async fn send<T: Serialize>(pgmq: &PGMQueueExt, queue: &str, payloads: &[T]) -> Result<Vec<i64>, PgmqError> {
    match payloads {
        [payload] => pgmq.send(queue, payload).await.map(|id| vec![id]),
        payloads => pgmq.send_batch(queue, payloads).await,
    }
}
