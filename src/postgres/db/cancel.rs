//! Requests to cancel the statements of a handle.

use std::sync::{Arc, PoisonError, Weak};

use futures_util::future::join_all;
use tracing::debug;

use super::{Db, Session};

impl Db {
    pub(super) fn note_opened(&self, session: &Arc<Session>) {
        let mut opened = self.0.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|session| session.strong_count() > 0);
        opened.push(Arc::downgrade(session));
    }

    /// Requests that the server cancel the statements that run on the connections of this handle
    /// and its clones. A call whose statement is cancelled returns the server's error 57014, and
    /// the statement has had no effect. A statement that has ended stays in effect, and its call
    /// returns its result.
    ///
    /// A request between two statements of a call has no effect. So repeat this call until the
    /// other one returns.
    #[doc(hidden)]
    pub async fn cancel_running(&self) {
        let sessions: Vec<Arc<Session>> = {
            let opened = self.0.opened.lock().unwrap_or_else(PoisonError::into_inner);
            opened.iter().filter_map(Weak::upgrade).collect()
        };
        let requests = sessions.iter().map(|session| session.connection().cancel(&self.0.target));
        for error in join_all(requests).await.into_iter().filter_map(Result::err) {
            debug!(%error, "cannot request the cancellation of a statement");
        }
    }
}
