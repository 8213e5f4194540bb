use trunkline::Queue;
use trunkline_contender::{Failure, Settings};

use crate::payload::{Text, all};

/// Enqueues a part of the backlog. In a suite that chooses the number of consumers, each row has as
/// many messages as a call of a producer: in a queue of single messages, a backlog has rows of one.
/// Elsewhere a row has as many messages as fit.
pub async fn seed<T: Text>(queue: &Queue<T>, told: &Settings, payloads: Vec<String>) -> Result<(), Failure> {
    let payloads = all::<T>(payloads)?;
    if told.consumers == 0 {
        queue.enqueue_many(&payloads).await?;
        return Ok(());
    }
    let transaction = queue.db().begin().await?;
    for call in payloads.chunks(told.batch) {
        // Ignores the reply, because the commit returns the error of a statement.
        drop(queue.send_enqueue_many(&transaction, call).await?);
    }
    transaction.commit().await?;
    Ok(())
}
