//! The error of a consumer's work, as a value.

use std::{error::Error as StdError, sync::Arc};

use super::{Error, Kind};

impl Error {
    /// Creates the error of a call whose work failed so that its message is a dead letter.
    pub(crate) fn of_work(
        queue: &str,
        id: i64,
        reason: String,
        cause: Option<Arc<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self::new(Kind::Work { queue: queue.to_owned(), id, reason, cause })
    }

    /// Returns true if the work of [`Consumer::take_with`](crate::Consumer::take_with) failed, and
    /// its message is now a dead letter. [`Error::downcast_ref`] returns the work's error.
    #[must_use]
    pub fn is_work_failed(&self) -> bool {
        self.is_or_has(|kind| matches!(kind, Kind::Work { .. }))
    }

    /// Searches the sources of this error, for example the work's error in
    /// [`Consumer::take_with`](crate::Consumer::take_with), and returns the first `E`. For several
    /// shards, searches all of them.
    #[must_use]
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        let own = StdError::source(self).and_then(first_of);
        own.or_else(|| self.shards().iter().find_map(|(_, error)| error.downcast_ref()))
    }
}

/// Searches an error and its sources, and returns the first `E`.
pub(crate) fn first_of<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
