use std::sync::Arc;

use tokio::task::JoinSet;
use trunkline::{
    Message, Queue, Result,
    postgres::{Statement, Transaction},
};
use trunkline_contender::{Failure, Settings, Tally};

use crate::{open::wait, payload::Text};

static RECORD: Statement<(Vec<i64>, Vec<String>), u64> =
    Statement::new("insert into ledger select id, body::jsonb from unnest($1::int8[], $2::text[]) as new (id, body)");

/// Takes each batch and writes it to the ledger in the same transaction. A message counts once the
/// transaction is committed.
pub async fn record<T: Text>(queue: Queue<T>, told: &Settings, tally: &Arc<Tally>) -> Result<(), Failure> {
    let mut consumers = JoinSet::new();
    for _ in 0..told.consumers_or(1) {
        let (mut consumer, n, tally) = (queue.consumer(wait(told)), told.fetched(), tally.clone());
        consumers.spawn(async move {
            let over = tally.over();
            tokio::pin!(over);
            loop {
                let written = consumer.take_with(n, |transaction, messages| Box::pin(write(transaction, messages)));
                tokio::select! {
                    () = &mut over => return Ok::<_, Failure>(()),
                    written = written => tally.received_many(written?),
                }
            }
        });
    }
    while let Some(ended) = consumers.join_next().await {
        ended??;
    }
    Ok(())
}

async fn write<T: Text>(transaction: &Transaction, messages: Vec<Message<T>>) -> Result<Vec<String>> {
    let text = |message: &Message<T>| String::from_utf8_lossy(message.payload.bytes()).into_owned();
    let texts: Vec<String> = messages.iter().map(text).collect();
    let ids = messages.iter().map(|message| message.id).collect();
    drop(transaction.send(&RECORD, (ids, texts.clone())).await?);
    Ok(texts)
}
