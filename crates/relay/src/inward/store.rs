//! The transaction that stores messages together with the position after them.

use bytes::Bytes;
use tokio::time::Instant;
use tracing::{Instrument, info, info_span, warn};
use trunkline::{Draft, postgres::Statement};

use super::{HOLD, Running, State};
use crate::{
    error::{Error, Result},
    header,
    outgoing::KEY,
    payload::Raw,
    source::{Incoming, Source},
};

/// The maximum number of bytes per transaction. The last message may exceed it. The limit bounds
/// the relay's memory, and the server accepts no request over one GiB.
const BYTES: usize = 16 << 20;
/// The maximum number of bytes of a key.
const LONGEST_KEY: usize = 1024;

impl Running {
    /// Stores the messages and the position in one transaction and one round trip.
    pub(super) async fn store(
        &mut self,
        source: &mut dyn Source,
        from: Option<String>,
        messages: Vec<Incoming>,
    ) -> Result<()> {
        let Some(to) = messages.last().map(|last| last.position.clone()) else { return Ok(()) };
        let span = info_span!("relay_store", relay = self.name, messages = messages.len());
        let refused = match self.unfit(&messages) {
            Some(why) => Some(why),
            None => match self.commit(from.clone(), &to, Ok(&messages)).instrument(span).await {
                Err(error) if is_refusal(&error) => Some(error.to_string()),
                outcome => {
                    outcome?;
                    None
                }
            },
        };
        match refused {
            Some(_) if messages.len() > 1 => {
                for message in messages {
                    let State::Holds(from) = &self.state else { return Ok(()) };
                    Box::pin(self.store(source, from.clone(), vec![message])).await?;
                }
                return Ok(());
            }
            Some(why) => self.pass_over(from, &to, &why).await?,
            None => {}
        }
        if matches!(&self.state, State::Holds(Some(at)) if *at == to) {
            source.committed(&to).await;
        }
        Ok(())
    }

    /// Returns the reason why the library refuses one of the messages before it sends anything. The
    /// library's error has neither a code nor a predicate, so the relay checks keys itself.
    fn unfit(&self, messages: &[Incoming]) -> Option<String> {
        let is_keyed = self.queue.description().partitions > 0;
        let of = |message: &Incoming| match message.key.as_deref().map(str::len) {
            _ if !is_keyed => None,
            Some(1..=LONGEST_KEY) => None,
            Some(bytes) => Some(format!("its key has {bytes} bytes; a key has 1 to {LONGEST_KEY}")),
            None => Some("it has no key, and the queue needs a key for each message".to_owned()),
        };
        messages.iter().find_map(of)
    }

    /// Moves the position to `to`. Enqueues the messages up to that position, or records why they
    /// are skipped.
    async fn commit(
        &mut self,
        from: Option<String>,
        to: &str,
        messages: std::result::Result<&[Incoming], &str>,
    ) -> Result<()> {
        let (messages, left_out) = messages.map_or_else(|why| (&[][..], Some(why.to_owned())), |all| (all, None));
        let drafts: Vec<_> = messages.iter().map(|message| self.draft(message)).collect();
        let transaction = self.db.begin().await?;
        let count = messages.len() as i64;
        let queue = self.queue.description().name.clone();
        let moved = (self.name.clone(), self.holder, from, to.to_owned(), HOLD, count, self.lag, left_out, queue);
        let ids =
            if drafts.is_empty() { None } else { Some(self.queue.send_enqueue_many(&transaction, drafts).await?) };
        // Until the server notices that this relay is gone, no other relay can claim the position,
        // because its row is locked. So the row is locked last, and the server waits briefly.
        let idle = Statement::<(), ()>::new("set local idle_in_transaction_session_timeout = '10s'");
        drop(transaction.send(&idle, ()).await?); // the next statement waits for this answer, too
        let moved = transaction.send(&self.moves, moved).await?;
        if moved.await? == 0 {
            transaction.rollback().await?;
            info!(relay = self.name, "another relay has taken over the position");
            self.state = State::Waits;
            return Ok(());
        }
        if let Some(ids) = ids {
            ids.await?;
        }
        transaction.commit().await?;
        self.state = State::Holds(Some(to.to_owned()));
        self.word = Instant::now();
        self.progress.confirm(messages.len() as u64);
        self.metrics.received.increment(messages.len() as u64);
        Ok(())
    }

    fn draft(&self, message: &Incoming) -> Draft<Raw> {
        let queue = self.queue.description();
        // A Kafka message without a value becomes `null` where the payload must be JSON.
        let is_json = matches!(&*queue.payload, "json" | "jsonb");
        let is_tombstone = message.body.is_empty() && message.metadata.get(header::TOMBSTONE).is_some();
        let body = if is_json && is_tombstone { Bytes::from_static(b"null") } else { message.body.clone() };
        let (draft, mut metadata) = (Draft::new(Raw(body)), message.metadata.clone());
        match &message.key {
            Some(key) if queue.partitions > 0 => return draft.metadata(metadata).key(&**key),
            Some(key) => metadata.insert(KEY, &**key),
            None => {}
        }
        draft.metadata(metadata)
    }

    /// Skips a message that the queue cannot store, or fails with the message's error.
    async fn pass_over(&mut self, from: Option<String>, to: &str, why: &str) -> Result<()> {
        let queue = &self.queue.description().name;
        let why = format!("the message at {to:?} of {} cannot be stored in queue {queue:?}: {why}", self.broker);
        if !self.passes_over {
            return Err(Error::stopped(format!(
                "{why}; fix the cause, or skip messages that cannot be stored (--pass-over)"
            )));
        }
        self.commit(from, to, Err(&why)).await?;
        if matches!(self.state, State::Holds(_)) {
            warn!(relay = self.name, why, "skipped");
            self.progress.refuse(&why);
            self.metrics.refused.increment(1);
        }
        Ok(())
    }
}

/// Splits messages into parts of a bounded number of bytes, in order.
pub(super) fn parts(messages: Vec<Incoming>) -> Vec<Vec<Incoming>> {
    let (mut parts, mut bytes) = (Vec::<Vec<Incoming>>::new(), 0);
    for message in messages {
        let size = message.size();
        match parts.last_mut() {
            Some(part) if bytes < BYTES => part.push(message),
            _ => {
                parts.push(vec![message]);
                bytes = 0;
            }
        }
        bytes += size;
    }
    parts
}

/// Returns true if PostgreSQL or the client library refused a message because of its content, and
/// not because of the server or the queue, which would refuse every message.
fn is_refusal(error: &Error) -> bool {
    error.database().is_some_and(|error| {
        error.is_bad_payload() && !error.sqlstate().is_some_and(|state| state.code().starts_with("TL"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_some_bytes_and_all_messages_in_order() {
        let sizes = [BYTES / 2, BYTES / 2 + 1, 3, BYTES * 3, 4, 5];
        let of = |(at, size): (usize, &usize)| Incoming {
            position: at.to_string(),
            body: vec![0; *size].into(),
            ..Incoming::default()
        };
        let parts = parts(sizes.iter().enumerate().map(of).collect());
        let places: Vec<Vec<_>> =
            parts.iter().map(|part| part.iter().map(|message| &*message.position).collect()).collect();
        assert_eq!(places, [vec!["0", "1"], vec!["2", "3"], vec!["4", "5"]]);
        assert!(super::parts(Vec::new()).is_empty());
    }
}
