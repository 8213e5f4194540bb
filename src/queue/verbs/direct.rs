//! Direct delivery: a notification carries the message to a waiting at-most-once consumer. Nothing
//! is stored or flushed to disk.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::BytesMut;
use tokio::{
    runtime::Handle,
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tracing::{debug, warn};

use crate::{
    error::{Error, Result},
    postgres::{
        array::Received,
        db::{Class, Subscription},
        time::Time,
        wire::only,
    },
    queue::{
        batch::unclaimed::{Unclaimed, Unreadable, metadata_of},
        handle::{Queue, Shared},
        message::{
            Message,
            draft::{Draft, IntoDraft},
            metadata::Metadata,
            payload::{Payload, refused},
            trace,
            unique::Enqueued,
        },
        verbs::dequeue::{Read, accepted},
    },
};

/// The maximum time that a notification takes to arrive after its transaction has ended.
const ON_ITS_WAY: Duration = Duration::from_secs(5);
/// The pause before a dropped consumer tries again to leave the list, while a transaction that
/// sends a message to it stays open.
const OPEN_SENDER: Duration = Duration::from_secs(1);

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
    /// The task that removes the consumer from the list. If a call is dropped while it waits for
    /// this task, the next call needs the task's answer.
    leaving: Option<JoinHandle<Result<bool>>>,
}

impl Mailbox {
    pub fn new(shared: &Arc<Shared>) -> Self {
        let name = format!("trunkline {}", uuid::Uuid::new_v4().simple());
        let (subscription, letters) = shared.db.subscribe_texts(&name);
        Self { shared: shared.clone(), name, subscription, letters, entered: None, is_promised: false, leaving: None }
    }

    /// Adds the consumer to the list, if notifications reach this process.
    pub async fn enter(&mut self) -> Result<()> {
        if self.is_promised {
            return Ok(()); // the insert would wait for that transaction; if it is rolled back, the consumer is still listed
        }
        let Some(alive) = self.subscription.heard.borrow_and_update().alive else { return Ok(()) };
        self.entered = Some(alive); // set first: the statement may succeed even if its reply is lost
        let sql = self.shared.db.statement("wait_for", include_str!("../../../sql/statements/wait_for.sql"));
        self.shared.query(&sql, &[&self.name, &self.shared.name(), &alive]).await.map(drop)
    }

    /// Waits for a message. Returns `None` if the listener has changed. The consumer must then
    /// leave the list and enter it again.
    pub async fn letter(&mut self) -> Result<Option<Letter>> {
        tokio::select! {
            biased;
            Some(letter) = self.letters.recv() => {
                (self.entered, self.is_promised) = (None, false);
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
    /// because a message has been sent to it. Fails with a lock error if a message is being sent in
    /// a transaction that stays open.
    async fn remove(&mut self) -> Result<bool> {
        let leaving = self.leaving.get_or_insert_with(|| {
            let (shared, name) = (self.shared.clone(), self.name.clone());
            tokio::spawn(async move {
                let sql = shared.db.statement("wait_no_more", include_str!("../../../sql/statements/wait_no_more.sql"));
                Ok(!shared.query_again(&sql, &[&name]).await?.is_empty())
            })
        });
        let outcome = leaving.await.unwrap_or_else(|_| Err(Error::ended("wait_no_more", true)));
        self.leaving = None;
        self.is_promised = outcome.as_ref().is_err_and(Error::is_of_a_lock);
        outcome
    }

    async fn leave_list(&mut self) -> Result<Option<String>> {
        let entered = self.entered;
        let was_listed = self.remove().await?;
        let letter = match was_listed {
            true => self.letters.try_recv().ok(),
            false => timeout(ON_ITS_WAY, self.arriving()).await.ok().flatten(),
        };
        self.entered = None;
        let is_lost = !was_listed && letter.is_none();
        if is_lost && self.subscription.heard.borrow().alive == entered {
            warn!(queue = self.shared.name(), "a message that was sent directly did not arrive");
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

/// A direct message that is being passed to a caller. No other copy exists, so dropping this value
/// enqueues the message.
pub(crate) struct Letter {
    shared: Arc<Shared>,
    id: i64,
    /// The time of the enqueue, in microseconds since 1970.
    enqueued_us: u64,
    element: Vec<u8>,
    /// A `jsonb` in the wire format.
    metadata: Option<Vec<u8>>,
    has_arrived: bool,
    /// The runtime that puts the message back if it is dropped, even outside the runtime.
    runtime: Option<Handle>,
}

impl std::fmt::Debug for Letter {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Letter").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Letter {
    fn parse(shared: &Arc<Shared>, text: &str) -> Result<Self> {
        let mut words = text.split(' ');
        let mut next = || words.next().unwrap_or_default();
        let parts =
            (next().parse().ok(), next().parse().ok(), STANDARD.decode(next()).ok(), STANDARD.decode(next()).ok());
        let (Some(id), Some(enqueued_us), Some(element), Some(metadata)) = parts else {
            return Err(Error::invalid("a notification on a channel of Trunkline was not sent by Trunkline"));
        };
        let metadata = Some(metadata).filter(|json| !json.is_empty()).map(|json| Metadata::raw(&json));
        let runtime = Handle::try_current().ok();
        Ok(Self { shared: shared.clone(), id, enqueued_us, element, metadata, has_arrived: false, runtime })
    }

    /// Decodes the message, and converts its payload with `read`.
    ///
    /// # Errors
    /// The reason why the message is unreadable.
    pub fn open<T: Payload, U>(&self, read: impl FnOnce(T) -> Read<U>) -> Result<Message<U>> {
        let (shared, id) = (&self.shared, self.id);
        let payload: T = shared.column.decode_one(shared.name(), id, &self.element)?;
        Ok(Message {
            id,
            attempt: 0,
            enqueued_at: SystemTime::UNIX_EPOCH + Duration::from_micros(self.enqueued_us),
            payload: accepted(|| read(payload)).map_err(|cause| refused(shared.name(), id, cause))?,
            metadata: self.metadata.as_deref().map(Metadata::read).unwrap_or_default(),
            key: None,
            rate: None,
            ran_out: false,
            released: 0,
        })
    }

    /// Records that the caller has received the message, or the error for an unreadable one. An
    /// unreadable message is enqueued with a counted attempt, and can become a dead letter like any
    /// other.
    pub fn arrived(mut self, unreadable: Option<&Error>) {
        self.has_arrived = true;
        let (shared, id) = (&self.shared, self.id);
        let Some(error) = unreadable else { return };
        warn!(queue = shared.name(), id, %error, "message payload cannot be decoded");
        let message = (id, (0, 0), Time::of_unix(self.enqueued_us));
        let element = (shared.column.element(), Some(&self.element[..]));
        let unreadable = Unreadable::of_message(message, element, self.metadata.as_deref(), error.to_string());
        shared.send_back([Unclaimed::Unreadable(unreadable)].into());
    }
}

impl Drop for Letter {
    fn drop(&mut self) {
        if self.has_arrived {
            return;
        }
        let Some(runtime) = self.runtime.take() else { return };
        let (shared, id, metadata) = (self.shared.clone(), self.id, self.metadata.take());
        let enqueued_at = Time::of_unix(self.enqueued_us);
        let mut elements = BytesMut::new();
        elements.extend_from_slice(&(self.element.len() as i32).to_be_bytes()); // it fitted in a notification, so its length fits
        elements.extend_from_slice(&self.element);
        runtime.spawn(async move {
            if let Err(error) = shared.put_back_letter(id, enqueued_at, &elements, metadata.as_deref()).await {
                debug!(%error, "a message that was sent directly may be lost: its receiver was dropped, and enqueuing it failed");
            }
        });
    }
}

impl Mailbox {
    /// Removes a dropped consumer from the list. A message that still arrives for it is enqueued.
    pub fn abandon(mut self) {
        if self.entered.is_none() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            let put_back = async {
                let mut letter = loop {
                    match self.leave_list().await {
                        Err(error) if error.is_of_a_lock() => sleep(OPEN_SENDER).await,
                        outcome => break outcome?,
                    }
                };
                while let Some(text) = letter {
                    drop(Letter::parse(&self.shared, &text)?); // the drop puts it back
                    letter = self.letters.try_recv().ok();
                }
                Ok::<_, Error>(())
            };
            if let Err(error) = put_back.await {
                debug!(%error, "a message that was sent directly to a consumer that has since been dropped may be lost");
            }
        });
    }
}

impl Shared {
    async fn put_back_letter(
        &self,
        id: i64,
        enqueued_at: Time,
        elements: &[u8],
        metadata: Option<&[u8]>,
    ) -> Result<()> {
        let metadata = metadata.map(metadata_of);
        let metadata = metadata.as_deref().map(Received::of);
        let payload = self.column.array(1, elements);
        // Passes no columns. The message was never in the table, so the user's own columns receive
        // their defaults.
        let row: [&(dyn tokio_postgres::types::ToSql + Sync); 9] =
            [&id, &enqueued_at, &0_i32, &0_i32, &None::<&str>, &1_i32, &payload, &metadata, &None::<&str>];
        self.query(&self.sql.put_back, &row).await?;
        self.db.wake(&self.channel);
        Ok(())
    }
}
