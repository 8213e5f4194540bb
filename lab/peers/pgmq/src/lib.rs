//! What both programs do alike with pgmq.

use std::error::Error;

use pgmq::{PGMQueueExt, PgmqError};
use serde::Serialize;

/// An error that ends a program.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Installs the SQL that comes with the client, and creates the queues. Returns the versions.
///
/// # Errors
/// The server refuses it, or does not say which version it has.
pub async fn install(pgmq: &PGMQueueExt, queues: &[&str]) -> Result<String, Failure> {
    pgmq.install_sql_from_embedded().await?;
    let version = pgmq.installed_version().await?.ok_or("pgmq does not say its version")?;
    for queue in queues {
        pgmq.create(queue).await?;
    }
    Ok(format!("pgmq {version}, crate pgmq 0.33.7"))
}

/// Sends by one call, for one or for many. Returns the ids.
///
/// # Errors
/// The call fails.
pub async fn send<T: Serialize>(pgmq: &PGMQueueExt, queue: &str, payloads: &[T]) -> Result<Vec<i64>, PgmqError> {
    match payloads {
        [payload] => pgmq.send(queue, payload).await.map(|id| vec![id]),
        payloads => pgmq.send_batch(queue, payloads).await,
    }
}
