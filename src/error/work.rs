//! The error that a consumer's work returned.

use std::{error::Error as StdError, sync::Arc};

use super::{Error, Kind};

impl Error {
    /// Creates the error for work that failed, and whose message became a dead letter.
    pub(crate) fn of_work(
        queue: &str,
        id: i64,
        reason: String,
        cause: Option<Arc<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self::new(Kind::Work { queue: queue.to_owned(), id, reason, cause })
    }

    /// Returns true if the work of [`Consumer::take_with`](crate::Consumer::take_with) failed and
    /// its message is now a dead letter. [`Error::downcast_ref`] returns the error of the work.
    #[must_use]
    pub fn is_work_failed(&self) -> bool {
        self.is_or_has(|kind| matches!(kind, Kind::Work { .. }))
    }

    /// Returns the first error of type `E` among the sources of this error. One such source is the
    /// error of the work in [`Consumer::take_with`](crate::Consumer::take_with). If the error comes
    /// from several shards, the sources of all of them are searched.
    #[must_use]
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        let own = StdError::source(self).and_then(first_of);
        own.or_else(|| self.shards().iter().find_map(|(_, error)| error.downcast_ref()))
    }
}

/// Returns the first error of type `E` in an error and its sources.
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
