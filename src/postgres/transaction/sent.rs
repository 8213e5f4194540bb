use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use crate::{
    error::Error,
    postgres::{
        db::told_to_user,
        wire::{Incoming, Reply, WaitingPlace, WireError},
    },
};

/// The answer to a group, for all whose statements are in it.
pub(super) type GroupReply = Arc<Result<Reply, WireError>>;

/// A group that was sent, or will be.
#[derive(Default)]
pub(super) struct Sent {
    stage: Mutex<Stage>,
    /// Statements of the transaction before it.
    before: usize,
    /// Its first place is `begin`.
    begins: bool,
}

#[derive(Default)]
enum Stage {
    #[default]
    Gathering,
    Sent(Incoming),
    Answered(GroupReply),
}

impl Sent {
    pub fn new(before: usize, begins: bool) -> Self {
        Self { stage: Mutex::default(), before, begins }
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Each group is sent once.
    pub fn set(&self, reply: Incoming) {
        *self.stage() = Stage::Sent(reply);
    }

    pub fn is_sent(&self) -> bool {
        !matches!(&*self.stage(), Stage::Gathering)
    }

    /// Waits for the answer of a group that was sent, as one of several.
    pub fn poll(&self, place: &mut WaitingPlace, context: &Context<'_>) -> Poll<GroupReply> {
        let mut stage = self.stage();
        let reply = match &mut *stage {
            Stage::Gathering => Err(WireError::Lost(None)),
            Stage::Sent(incoming) => ready!(incoming.poll_whole(place, context)),
            Stage::Answered(reply) => return Poll::Ready(reply.clone()),
        };
        Poll::Ready(stage.answered(reply))
    }

    /// The answer.
    pub async fn answer(&self) -> GroupReply {
        let mut place = None;
        std::future::poll_fn(|context| self.poll(&mut place, context)).await
    }

    /// The answer, if it has come.
    pub fn seen(&self) -> Option<GroupReply> {
        let mut stage = self.stage();
        let reply = match &mut *stage {
            Stage::Gathering => return None,
            Stage::Sent(incoming) => incoming.come()?,
            Stage::Answered(reply) => return Some(reply.clone()),
        };
        Some(stage.answered(reply))
    }

    /// The error, with the statement's number in the transaction.
    pub fn error(&self, failure: &WireError) -> Error {
        let failure = match failure.clone() {
            WireError::Server { statement, text, error } if self.begins => {
                WireError::Server { statement: statement.saturating_sub(1), text, error }
            }
            failure => failure,
        };
        told_to_user(self.before, "the transaction", failure)
    }
}

impl Stage {
    fn answered(&mut self, reply: Result<Reply, WireError>) -> GroupReply {
        let reply = Arc::new(reply);
        *self = Self::Answered(reply.clone());
        reply
    }
}
