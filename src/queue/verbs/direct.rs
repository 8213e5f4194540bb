//! Direct delivery: a notification carries the message to a waiting at-most-once consumer. Nothing
//! is stored or flushed to disk.

mod letter;

use std::{collections::VecDeque, iter, sync::Arc, time::Duration};

use bytes::BytesMut;
use tokio::{
    runtime::Handle,
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tracing::warn;

use crate::{
    error::{Error, Result},
    postgres::{
        db::{Class, Subscription},
        wire::only,
    },
    queue::{
        handle::{Queue, Shared},
        message::{
            draft::{Draft, IntoDraft},
            payload::Payload,
            trace,
            unique::Enqueued,
        },
    },
};

pub(crate) use self::letter::Letter;

/// The maximum time that a notification takes to arrive after its transaction has ended.
const ON_ITS_WAY: Duration = Duration::from_secs(5);
/// The first pause before a dropped consumer tries again to leave the list, while a transaction
/// that sends a message to it stays open. Each pause is twice as long as the one before.
const OPEN_SENDER: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(64);

impl std::fmt::Debug for Mailbox {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Mailbox").field("entered", &self.entered.is_some()).finish_non_exhaustive()
    }
}

impl<T: Payload> Queue<T> {
    /// Sends a message to one consumer that waits in
    /// [`Consumer::receive_direct`](crate::Consumer::receive_direct), inside the notification that
    /// wakes it. Nothing is written to disk, so the message is lost if that consumer crashes.
    ///
    /// The message is enqueued instead if no consumer waits, if it takes more than about 5,900
    /// bytes with its metadata, or if the queue is paused or has limits. A
    /// [`Draft`](crate::Draft) that is due later, or that has a key, a unique key, a priority or
    /// column values, is always enqueued.
    pub async fn send_direct(&self, message: impl IntoDraft<T>) -> Result<Enqueued> {
        // Enqueues messages with options that a notification cannot carry.
        let is_more = message.key().is_some()
            || message.priority() != 0
            || message.unique().is_some()
            || message.columns().is_some();
        if is_more || message.due().number()? != 0.0 {
            return self.enqueue(message).await;
        }
        let mut element = BytesMut::new();
        self.shared.column.encode(message.payload(), &mut element)?;
        let sql = self.shared.db.statement("send_direct", include_str!("../../../sql/statements/send_direct.sql"));
        let trace = trace::for_message(message.metadata());
        let metadata = trace::stamped(message.metadata(), trace.as_ref()).into_owned();
        let beside = Some(&metadata).filter(|metadata| !metadata.is_empty());
        let rows = self.shared.db.query(Class::Store, &sql, &[&self.shared.name(), &&element[4..], &beside]).await;
        let rows = rows.map_err(|error| error.or_no_queue(self.shared.name()))?;
        if let Some(id) = only(&rows)?.read(0)? {
            self.shared.metrics.receive_direct();
            return Ok(Enqueued::New(id));
        }
        self.enqueue(Draft::new(message.payload()).metadata(metadata)).await
    }
}

/// A consumer's entry in the list of consumers that wait for a direct message.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about a message on its way")]
pub(crate) struct Mailbox {
    shared: Arc<Shared>,
    name: String,
    subscription: Subscription,
    letters: mpsc::UnboundedReceiver<String>,
    /// The lock of the session that listened when the consumer entered the list. `Some` while that
    /// session may receive a message for this consumer.
    entered: Option<i64>,
    /// True while another session sends a message to the consumer in a transaction that is still
    /// open. The consumer can then neither leave the list nor enter it.
    is_promised: bool,
    /// True if a message did not arrive in time. The next one may then be that message, or one for
    /// a later entry, so the consumer asks the server whether it is still listed.
    is_owed: bool,
    /// True if the reply to a statement that changes the list was lost. If the consumer is not
    /// listed then, it may have left the list itself, or never have entered it, so that no message
    /// is being sent to it.
    is_unsure: bool,
    /// True if a message arrived after the last entry.
    has_received: bool,
    /// The task that adds the consumer to the list. If a call is dropped while it waits for this
    /// task, the next call waits for it before it leaves the list.
    entering: Option<JoinHandle<Result<()>>>,
    /// The task that removes the consumer from the list. If a call is dropped while it waits for
    /// this task, the next call needs the task's answer.
    leaving: Option<JoinHandle<Result<bool>>>,
    /// The runtime in which a dropped consumer leaves the list, even if it is dropped outside.
    runtime: Option<Handle>,
}

impl Mailbox {
    pub fn new(shared: &Arc<Shared>) -> Self {
        let name = format!("trunkline {}", uuid::Uuid::new_v4().simple());
        let (subscription, letters) = shared.db.subscribe_texts(&name);
        Self {
            shared: shared.clone(),
            name,
            subscription,
            letters,
            entered: None,
            is_promised: false,
            is_owed: false,
            is_unsure: false,
            has_received: false,
            entering: None,
            leaving: None,
            runtime: Handle::try_current().ok(),
        }
    }

    /// Adds the consumer to the list, if notifications reach this process.
    pub async fn enter(&mut self) -> Result<()> {
        if self.is_promised {
            return Ok(()); // the insert would wait for that transaction; if it is rolled back, the consumer is still listed
        }
        let Some(alive) = self.subscription.heard.borrow_and_update().alive else { return Ok(()) };
        self.entered = Some(alive); // set first: the statement may succeed even if its reply is lost
        self.has_received = false;
        let (shared, name) = (self.shared.clone(), self.name.clone());
        self.entering = Some(tokio::spawn(async move {
            let sql = shared.db.statement("wait_for", include_str!("../../../sql/statements/wait_for.sql"));
            shared.query(&sql, &[&name, &shared.name(), &alive]).await.map(drop)
        }));
        self.until_entered().await
    }

    /// Waits until the statement that adds the consumer to the list has ended.
    async fn until_entered(&mut self) -> Result<()> {
        let Some(entering) = &mut self.entering else { return Ok(()) };
        let outcome = entering.await.unwrap_or_else(|_| Err(Error::ended("wait_for", true)));
        self.entering = None;
        match &outcome {
            Err(error) if error.is_outcome_unknown() => self.is_unsure = true,
            Err(_) => self.entered = None,
            Ok(()) => {}
        }
        outcome
    }

    /// Waits for a message. Returns `None` if the listener has changed. The consumer must then
    /// leave the list and enter it again.
    pub async fn letter(&mut self) -> Result<Option<Letter>> {
        tokio::select! {
            biased;
            Some(letter) = self.letters.recv() => {
                (self.has_received, self.is_promised, self.is_unsure) = (true, false, false);
                if !self.is_owed {
                    self.entered = None;
                }
                Letter::parse(&self.shared, &letter).map(Some)
            }
            _ = self.subscription.heard.changed() => Ok(None),
        }
    }

    /// Leaves the list. If a message is already being sent to the consumer, waits for it, unless
    /// its transaction stays open.
    pub async fn leave(&mut self) -> Result<Option<Letter>> {
        if self.entered.is_none() {
            return Ok(None);
        }
        match self.leave_list().await {
            Err(error) if error.is_of_a_lock() => Ok(None),
            outcome => outcome?.map(|letter| Letter::parse(&self.shared, &letter)).transpose(),
        }
    }

    /// Leaves the list without waiting for a message that is already being sent. The next call
    /// receives such a message.
    pub async fn withdraw(&mut self) -> Result<()> {
        if self.entered.is_none() {
            return Ok(());
        }
        match self.remove().await {
            Ok(true) => self.entered = None,
            Err(error) if !error.is_of_a_lock() => return Err(error),
            Ok(false) | Err(_) => {} // the next call receives the message
        }
        Ok(())
    }

    /// Removes the consumer from the list. Returns false if the consumer was no longer in the list,
    /// because a message has been sent to it, unless `is_unsure` is set. Fails with a lock error if
    /// a message is being sent in a transaction that stays open.
    async fn remove(&mut self) -> Result<bool> {
        let _ = self.until_entered().await; // the consumer may be listed even if that failed
        if self.entered.is_none() {
            return Ok(true); // it has not entered the list
        }
        let outcome = match self.try_to_remove().await {
            // The next try does not show whether this one or a sender has removed the consumer.
            Err(error) if error.is_outcome_unknown() => {
                self.is_unsure = true;
                self.try_to_remove().await
            }
            outcome => outcome,
        };
        self.is_promised = outcome.as_ref().is_err_and(Error::is_of_a_lock);
        if let Ok(true) = outcome {
            // The consumer was still listed, so a message that it has received was the late one.
            (self.is_unsure, self.is_owed) = (false, self.is_owed && !self.has_received);
        }
        outcome
    }

    async fn try_to_remove(&mut self) -> Result<bool> {
        let leaving = self.leaving.get_or_insert_with(|| {
            let (shared, name) = (self.shared.clone(), self.name.clone());
            tokio::spawn(async move {
                let sql = shared.db.statement("wait_no_more", include_str!("../../../sql/statements/wait_no_more.sql"));
                Ok(!shared.query(&sql, &[&name]).await?.is_empty())
            })
        });
        let outcome = leaving.await.unwrap_or_else(|_| Err(Error::ended("wait_no_more", true)));
        self.leaving = None;
        outcome
    }

    async fn leave_list(&mut self) -> Result<Option<String>> {
        let entered = self.entered;
        let was_listed = self.remove().await?;
        let letter = match was_listed {
            true => self.letters.try_recv().ok(),
            // Perhaps no message is on its way. If one is, a later call receives it.
            false if self.is_unsure => self.letters.try_recv().ok(),
            // It arrived, or the late one did, and the next call receives the other.
            false if self.is_owed && self.has_received => self.letters.try_recv().ok(),
            false => timeout(ON_ITS_WAY, self.arriving()).await.ok().flatten(),
        };
        self.entered = None;
        let is_unsure = std::mem::take(&mut self.is_unsure);
        let is_late = !was_listed && letter.is_none() && !self.has_received;
        if is_late && self.subscription.heard.borrow().alive == entered {
            self.is_owed = true;
            if !is_unsure {
                warn!(queue = self.shared.name(), "a message that was sent directly did not arrive");
            }
        }
        Ok(letter)
    }

    /// Waits for a notification that is already being sent. Stops if the session that listened when
    /// the consumer entered the list is gone, because no notification can arrive then. After a
    /// crash of the server or a failover, the list is empty although no message was sent.
    async fn arriving(&mut self) -> Option<String> {
        while self.subscription.heard.borrow_and_update().alive == self.entered {
            tokio::select! {
                biased;
                letter = self.letters.recv() => return letter,
                _ = self.subscription.heard.changed() => {}
            }
        }
        self.letters.try_recv().ok()
    }
}

impl Mailbox {
    /// Removes a dropped consumer from the list. A message that still arrives for it is enqueued.
    /// Returns the task that does this, if a message may arrive.
    pub fn abandon(mut self) -> Option<JoinHandle<()>> {
        if self.entered.is_none() && !self.is_owed && self.letters.is_empty() {
            return None;
        }
        let runtime = Handle::try_current().ok().or(self.runtime.take())?;
        Some(runtime.spawn(async move {
            let shared = self.shared.clone();
            let may_be_lost = |error: Error| {
                warn!(queue = shared.name(), %error, "a message that was sent directly to a consumer that has since been dropped may be lost");
            };
            let mut left = VecDeque::new();
            let last = self.last_letter().await;
            let last = last.unwrap_or_else(|error| {
                may_be_lost(error);
                None
            });
            for text in last.into_iter().chain(iter::from_fn(|| self.letters.try_recv().ok())) {
                match Letter::parse(&shared, &text) {
                    Ok(letter) => left.push_back(letter.into_unclaimed()),
                    Err(error) => may_be_lost(error),
                }
            }
            shared.put_back(left).await;
        }))
    }

    /// Leaves the list for good, and waits for a message that is being sent. Tries again while a
    /// sender's transaction is open, or the database is out of reach.
    async fn last_letter(&mut self) -> Result<Option<String>> {
        let mut pause = OPEN_SENDER;
        while self.entered.is_some() {
            match self.leave_list().await {
                Ok(None) => {} // the consumer is not listed any more
                Err(error) if error.is_of_a_lock() || error.is_closed() && pause < LONGEST_PAUSE => {
                    sleep(pause).await;
                    pause = (2 * pause).min(LONGEST_PAUSE);
                }
                outcome => return outcome,
            }
        }
        let wait = if self.is_owed { ON_ITS_WAY } else { Duration::ZERO };
        Ok(timeout(wait, self.letters.recv()).await.ok().flatten())
    }
}
