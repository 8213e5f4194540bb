//! The stream's answers to whole batches: one subscription, one slot per message, one wake-up per
//! batch.
//!
//! The client's own futures would cost a timer, a channel, a random subject and a map entry per
//! message.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_nats::{Client, Message, StatusCode, SubscribeError, Subscriber, jetstream};
use futures_util::StreamExt;
use serde::Deserialize;
use tokio::{sync::Notify, task::AbortHandle, time::timeout};

/// The outcome of a publish.
#[derive(Debug)]
pub(super) enum Answer {
    Stored,
    /// No subscriber listens to the subject.
    NoResponders,
    Refused(jetstream::Error),
    Unreadable(String),
}

pub(super) struct Acks {
    inbox: String,
    next: AtomicU64,
    batches: Arc<Batches>,
    reader: AbortHandle,
}

#[derive(Default)]
struct Batches(Mutex<HashMap<u64, Arc<AwaitedBatch>>>);

struct AwaitedBatch {
    answers: Mutex<Vec<Option<Answer>>>,
    missing: AtomicUsize,
    all: Notify,
}

/// A batch that waits for answers until it is dropped.
pub(super) struct Batch<'a> {
    acks: &'a Acks,
    nr: u64,
    waiting: Arc<AwaitedBatch>,
}

impl Acks {
    /// Subscribes to the answers.
    pub async fn start(client: &Client) -> Result<Self, SubscribeError> {
        let (inbox, batches) = (client.new_inbox(), Arc::<Batches>::default());
        let answers = client.subscribe(format!("{inbox}.*.*")).await?;
        let reader = tokio::spawn(read(answers, inbox.len(), batches.clone())).abort_handle();
        Ok(Self { inbox, next: AtomicU64::new(0), batches, reader })
    }

    /// Starts a batch of `size` messages.
    pub fn batch(&self, size: usize) -> Batch<'_> {
        let nr = self.next.fetch_add(1, Ordering::Relaxed);
        let answers = Mutex::new((0..size).map(|_| None).collect());
        let waiting = Arc::new(AwaitedBatch { answers, missing: AtomicUsize::new(size), all: Notify::new() });
        self.batches.all().insert(nr, waiting.clone());
        Batch { acks: self, nr, waiting }
    }
}

impl Drop for Acks {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Batch<'_> {
    pub fn reply(&self, at: usize) -> String {
        format!("{}.{}.{at}", self.acks.inbox, self.nr)
    }

    /// Records that a message was not sent, so the batch does not wait for its answer.
    pub fn unsent(&self) {
        self.waiting.one_less();
    }

    /// Waits until all answers have arrived, for at most `patience`. Returns the answers that have
    /// arrived.
    pub async fn answers(self, patience: Duration) -> Vec<Option<Answer>> {
        let _ = timeout(patience, self.waiting.all.notified()).await; // missing answers stay `None`
        std::mem::take(&mut *self.waiting.answers())
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.acks.batches.all().remove(&self.nr);
    }
}

impl Batches {
    fn all(&self) -> MutexGuard<'_, HashMap<u64, Arc<AwaitedBatch>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AwaitedBatch {
    fn answers(&self) -> MutexGuard<'_, Vec<Option<Answer>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, at: usize, answer: Answer) {
        if let Some(place @ None) = self.answers().get_mut(at) {
            *place = Some(answer);
        } else {
            return; // a second answer, or an answer after the batch's end
        }
        self.one_less();
    }

    fn one_less(&self) {
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.all.notify_one();
        }
    }
}

/// Distributes answers until the client is closed.
async fn read(mut answers: Subscriber, inbox: usize, batches: Arc<Batches>) {
    let mut last: Option<(u64, Arc<AwaitedBatch>)> = None;
    while let Some(message) = answers.next().await {
        let Some((nr, at)) = place(message.subject.as_str(), inbox) else { continue };
        if last.as_ref().is_none_or(|(of, _)| *of != nr) {
            last = batches.all().get(&nr).map(|waiting| (nr, waiting.clone()));
        }
        if let Some((_, waiting)) = &last {
            waiting.answer(at, answer(&message));
        }
    }
}

/// Parses the batch and the index from the part of a subject after the inbox.
fn place(subject: &str, inbox: usize) -> Option<(u64, usize)> {
    let (nr, at) = subject.get(inbox + 1..)?.split_once('.')?;
    Some((nr.parse().ok()?, at.parse().ok()?))
}

fn answer(message: &Message) -> Answer {
    if message.status == Some(StatusCode::NO_RESPONDERS) {
        return Answer::NoResponders;
    }
    said(&message.payload)
}

/// Parses a stream's answer. An answer from another service on the subject is not a confirmation.
fn said(payload: &[u8]) -> Answer {
    #[derive(Deserialize)]
    struct PublishReply {
        error: Option<jetstream::Error>,
        stream: Option<String>,
        seq: Option<u64>,
    }
    match serde_json::from_slice(payload) {
        Ok(PublishReply { error: Some(error), .. }) => Answer::Refused(error),
        Ok(PublishReply { stream: Some(_), seq: Some(_), .. }) => Answer::Stored,
        Ok(_) => Answer::Unreadable("it is not an acknowledgement of a stream".to_owned()),
        Err(cause) => Answer::Unreadable(cause.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_stream_confirms() {
        assert!(matches!(said(br#"{"stream":"s","seq":7}"#), Answer::Stored));
        assert!(matches!(said(br#"{"error":{"code":400,"err_code":10060,"description":"x"}}"#), Answer::Refused(_)));
        for other in ["{}", r#"{"success":true}"#, r#"{"stream":"s"}"#, "", "ok"] {
            assert!(matches!(said(other.as_bytes()), Answer::Unreadable(_)), "{other}");
        }
    }

    #[test]
    fn a_subject_tells_batch_and_place() {
        assert_eq!(place("_INBOX.abc.7.12", "_INBOX.abc".len()), Some((7, 12)));
        for none in ["_INBOX.abc", "_INBOX.abc.7", "_INBOX.abc.x.1", "_INBOX.abc.1.x"] {
            assert_eq!(place(none, "_INBOX.abc".len()), None, "{none}");
        }
    }
}
