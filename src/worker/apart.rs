//! Ends leases one by one after the server has refused to end them in one statement. A trigger that
//! fails for one message then does not block the other messages.

use std::collections::HashSet;

use futures_util::future::join_all;
use tracing::warn;

use crate::{
    error::{Error, Result},
    queue::message::{Lease, payload::Payload},
    worker::{groups::Finished, station::Station},
};

/// The results of ending leases one by one.
#[derive(Default)]
pub(super) struct Apart {
    pub ended: Vec<Lease>,
    /// Leases that were already lost.
    pub lost: Vec<Lease>,
    /// Leases that could not be ended, each with the reason.
    pub failed: Vec<(Lease, Error)>,
}

impl Apart {
    /// Calls `end` for each lease. Concurrent calls share statements; a refused statement is split.
    pub async fn of<F: Future<Output = Result<()>>>(leases: &[Lease], end: impl Fn(Lease) -> F) -> Self {
        let outcomes = join_all(leases.iter().map(|lease| end(*lease))).await;
        let mut apart = Self::default();
        for (lease, outcome) in leases.iter().zip(outcomes) {
            match outcome {
                Ok(()) => apart.ended.push(*lease),
                Err(error) if error.is_lease_lost() => apart.lost.push(*lease),
                Err(error) => apart.failed.push((*lease, error)),
            }
        }
        apart
    }
}

/// Returns true if the server will refuse every attempt to end the lease.
pub(super) fn is_of_message(error: &Error) -> bool {
    error.is_refusal() && !error.is_of_the_server()
}

impl<T: Payload> Station<T> {
    /// Acknowledges messages one by one. Returns the numbers of acknowledged messages and of lost
    /// leases. Messages that can be tried again stay in `done`. If the server refuses a message
    /// because of the message itself, that message is delivered again when its lease ends.
    ///
    /// # Errors
    /// The last error, if no message was acknowledged.
    pub async fn ack_apart(&self, done: &mut Vec<Finished<()>>) -> Result<(usize, usize)> {
        let leases: Vec<Lease> = done.iter().map(|done| done.lease).collect();
        let Apart { ended, mut lost, failed } = Apart::of(&leases, |lease| self.queue.ack([lease])).await;
        let (mut again, mut last) = (HashSet::new(), None);
        for (lease, error) in failed {
            if is_of_message(&error) {
                self.refused(lease, &error);
                lost.push(lease);
            } else {
                again.insert(lease);
                last = Some(error);
            }
        }
        done.retain(|done| again.contains(&done.lease));
        match last {
            Some(error) if ended.is_empty() && lost.is_empty() => Err(error),
            _ => Ok((ended.len(), lost.len())),
        }
    }

    /// Reports a lease that the server refuses to end. The metric counts it as lost here, because
    /// refused statements count nothing; the caller counts it for the summary.
    pub fn refused(&self, Lease { id, attempt }: Lease, error: &Error) {
        self.queue.shared.metrics.lost(1);
        warn!(
            queue = self.name(),
            id,
            attempt,
            %error,
            "the server refuses to end the lease of a message; the message is delivered again when its lease expires"
        );
    }
}
