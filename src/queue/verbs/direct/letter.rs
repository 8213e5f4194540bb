//! A direct message that is being passed to a caller.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use tokio::runtime::Handle;
use tracing::warn;

use crate::{
    error::{Error, Result},
    postgres::time::Time,
    queue::{
        batch::unclaimed::{Unclaimed, Unreadable},
        handle::Shared,
        message::{
            Message,
            metadata::Metadata,
            payload::{Payload, refused},
        },
        verbs::dequeue::{Read, accepted},
    },
};

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
    pub(super) fn parse(shared: &Arc<Shared>, text: &str) -> Result<Self> {
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

    /// Returns the message, which the caller then puts back.
    pub fn into_unclaimed(mut self) -> Unclaimed {
        self.has_arrived = true;
        self.unclaimed()
    }

    fn unclaimed(&self) -> Unclaimed {
        let message = (self.id, (0, 0), Time::of_unix(self.enqueued_us));
        let element = (self.shared.column.element(), Some(&self.element[..]));
        Unclaimed::Direct(Unreadable::of_message(message, element, self.metadata.as_deref(), String::new()))
    }
}

impl Drop for Letter {
    fn drop(&mut self) {
        if self.has_arrived {
            return;
        }
        let _runtime = self.runtime.as_ref().map(Handle::enter);
        self.shared.send_back([self.unclaimed()].into());
    }
}
