use std::sync::{Arc, OnceLock};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};

use crate::{
    error::Error,
    postgres::{
        db::told_to_user,
        wire::{Reply, WireError},
    },
};

/// The answer to a group, for all whose statements are in it.
pub(super) type GroupReply = Arc<Result<Reply, WireError>>;

/// A group that was sent, or will be.
#[derive(Default)]
pub(super) struct Sent {
    answer: OnceLock<Shared<BoxFuture<'static, GroupReply>>>,
    /// Statements of the transaction before it.
    before: usize,
    /// Its first place is `begin`.
    begins: bool,
}

impl Sent {
    pub fn new(before: usize, begins: bool) -> Self {
        Self { answer: OnceLock::new(), before, begins }
    }

    pub fn set(&self, answer: impl Future<Output = Result<Reply, WireError>> + Send + 'static) {
        let _ = self.answer.set(answer.map(Arc::new).boxed().shared()); // each group is sent once
    }

    pub fn is_sent(&self) -> bool {
        self.answer.get().is_some()
    }

    /// The answer, of a group that was sent.
    pub fn answer(&self) -> Shared<BoxFuture<'static, GroupReply>> {
        let unsent = || async { Arc::new(Err(WireError::Lost(None))) }.boxed().shared();
        self.answer.get().cloned().unwrap_or_else(unsent)
    }

    /// The answer, if it has come.
    pub fn seen(&self) -> Option<GroupReply> {
        self.answer.get()?.clone().now_or_never()
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
