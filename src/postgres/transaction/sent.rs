//! A group of statements that was sent, and its reply.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use crate::{
    error::Error,
    postgres::{
        db::told_to_user,
        wire::{Arrived, Incoming, Reply, RowMessages, WaitingPlace, WireError},
    },
};

/// The reply to a group. All statements of the group share it.
pub(crate) type GroupReply = Arc<Result<Reply, WireError>>;

#[derive(Default)]
pub(crate) struct Sent {
    stage: Mutex<Stage>,
    before: usize,
    /// True if the first statement of the group is `begin`.
    begins: bool,
}

#[derive(Default)]
enum Stage {
    #[default]
    Gathering,
    Sent(Incoming),
    /// The reply, and the messages that the reader of a stream has not received yet.
    Answered(GroupReply, RowMessages),
}

impl std::fmt::Debug for Sent {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Sent").finish_non_exhaustive()
    }
}

impl Sent {
    pub fn new(before: usize, begins: bool) -> Self {
        Self { stage: Mutex::default(), before, begins }
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, reply: Incoming) {
        *self.stage() = Stage::Sent(reply);
    }

    pub fn is_sent(&self) -> bool {
        !matches!(&*self.stage(), Stage::Gathering)
    }

    /// Waits for the reply. Several callers may wait at the same time.
    pub fn poll(&self, place: &mut WaitingPlace, context: &Context<'_>) -> Poll<GroupReply> {
        let mut stage = self.stage();
        let reply = match &mut *stage {
            Stage::Gathering => Err(WireError::Lost(None)),
            Stage::Sent(incoming) => ready!(incoming.poll_whole(place, context)),
            Stage::Answered(reply, _) => return Poll::Ready(reply.clone()),
        };
        Poll::Ready(stage.answered(reply, RowMessages::default()))
    }

    /// Waits for rows of a streamed reply, or for its end. Returns the messages that no earlier
    /// call has returned.
    pub fn poll_rows(
        &self,
        place: &mut WaitingPlace,
        context: &Context<'_>,
    ) -> Poll<(RowMessages, Option<GroupReply>)> {
        let mut stage = self.stage();
        let Arrived { messages, end } = match &mut *stage {
            Stage::Gathering => Arrived { messages: RowMessages::default(), end: Some(Err(WireError::Lost(None))) },
            Stage::Sent(incoming) => ready!(incoming.poll_rows(place, context)),
            Stage::Answered(reply, unread) => return Poll::Ready((std::mem::take(unread), Some(reply.clone()))),
        };
        Poll::Ready((messages, end.map(|reply| stage.answered(reply, RowMessages::default()))))
    }

    pub fn skip_rows(&self) {
        if let Stage::Sent(incoming) = &*self.stage() {
            incoming.skip_rows();
        }
    }

    pub async fn answer(&self) -> GroupReply {
        let mut place = None;
        std::future::poll_fn(|context| self.poll(&mut place, context)).await
    }

    pub fn seen(&self) -> Option<GroupReply> {
        let mut stage = self.stage();
        let (reply, unread) = match &mut *stage {
            Stage::Gathering => return None,
            Stage::Sent(incoming) => incoming.come()?,
            Stage::Answered(reply, _) => return Some(reply.clone()),
        };
        Some(stage.answered(reply, unread))
    }

    /// Returns true if the group begins the transaction and its reply has not arrived.
    pub fn awaits_begin(&self) -> bool {
        self.begins && self.seen().is_none()
    }

    /// Returns the error of `begin`, if `begin` is known to have failed.
    pub fn begin_error(&self) -> Option<Error> {
        match &*self.begins.then(|| self.seen()).flatten()? {
            Err(failure @ WireError::Server { statement: 0, .. }) => Some(self.error(failure)),
            _ => None,
        }
    }

    /// Returns the error, with the index of the failed statement in the transaction.
    pub fn error(&self, failure: &WireError) -> Error {
        let failure = match failure.clone() {
            WireError::Server { statement, text, error, before_bind } if self.begins => {
                WireError::Server { statement: statement.saturating_sub(1), text, error, before_bind }
            }
            failure => failure,
        };
        told_to_user(self.before, "the transaction", failure)
    }
}

impl Stage {
    fn answered(&mut self, reply: Result<Reply, WireError>, unread: RowMessages) -> GroupReply {
        let reply = Arc::new(reply);
        *self = Self::Answered(reply.clone(), unread);
        reply
    }
}
