//! Finds the error that made a transaction fail. A rollback to a savepoint undoes earlier errors.

use std::sync::Arc;

use super::{Pipeline, PipelineState};
use crate::{
    error::Error,
    postgres::{
        transaction::sent::Sent,
        wire::{WireError, returns_to_savepoint},
    },
};

impl Pipeline {
    /// Returns the error of the first statement that failed. The errors of later statements only
    /// report that the transaction has failed.
    pub fn first_error(&self) -> Option<Error> {
        let state = self.state();
        let first = |groups: &[Arc<Sent>]| {
            groups.iter().find_map(|sent| match &*sent.seen()? {
                Err(failure) if !failure.only_follows() => Some(self.error(sent, failure)),
                _ => None,
            })
        };
        let (undone, later) = state.sent.split_at(state.undone());
        // The rollback to the savepoint may have failed: then the transaction still has its first
        // error.
        let follows = |sent: &Arc<Sent>| sent.seen().is_some_and(|outcome| outcome.is_err());
        let of_before = || if later.iter().any(follows) { first(undone) } else { None };
        first(later).or_else(of_before).or_else(|| state.unprepared.clone())
    }

    /// Returns the error of a failed statement. If that error is only a consequence of an earlier
    /// error, returns the earlier one.
    pub fn cause(&self, sent: &Sent, failure: &WireError) -> Error {
        let first = if failure.only_follows() { self.first_error() } else { None };
        first.unwrap_or_else(|| self.error(sent, failure))
    }
}

impl PipelineState {
    /// Notes a rollback to a savepoint, which was added to the group of queued statements.
    pub(super) fn note_way_back(&mut self, text: &str) {
        if returns_to_savepoint(text) {
            self.back = Some(self.opened.clone());
            self.unprepared = None;
        }
    }

    /// Returns the number of groups that were sent before the last rollback to a savepoint.
    fn undone(&self) -> usize {
        match &self.back {
            Some(back) if Arc::ptr_eq(back, &self.opened) => self.sent.len(),
            Some(back) => self.sent.iter().position(|sent| Arc::ptr_eq(sent, back)).unwrap_or(0),
            None => 0,
        }
    }
}
