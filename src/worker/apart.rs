//! What the server refuses of several messages together, it is asked for each of them alone: a
//! trigger that errs at one message must not keep the others from their ends.

use std::collections::HashSet;

use futures_util::future::join_all;
use tracing::warn;

use crate::{
    error::{Error, Result},
    queue::message::{Lease, payload::Payload},
    worker::{groups::Finished, station::Station},
};

/// The ends of leases that were asked for one by one.
#[derive(Default)]
pub(super) struct Apart {
    /// They ended.
    pub ended: Vec<Lease>,
    /// They were lost before.
    pub lost: Vec<Lease>,
    /// They have not ended, and why.
    pub failed: Vec<(Lease, Error)>,
}

impl Apart {
    /// Ends leases by `end`, which is given one of them at a time. Calls at the same time share
    /// statements, and those that are refused come apart.
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

/// A message's own trouble: the server answers, and refuses to end this lease whenever it is asked.
pub(super) fn is_of_message(error: &Error) -> bool {
    error.is_refusal() && !error.is_of_the_server()
}

impl<T: Payload> Station<T> {
    /// Acknowledges messages one by one. Returns the number of those that are gone, and of those
    /// that are lost; `done` keeps what may still be acknowledged. A message whose acknowledgement
    /// the server refuses for its own sake comes back when its lease ends.
    ///
    /// # Errors
    /// The last error, where nothing was acknowledged.
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

    /// Logs why the end of a lease is given up.
    pub fn refused(&self, Lease { id, attempt }: Lease, error: &Error) {
        warn!(
            queue = self.name(),
            id,
            attempt,
            %error,
            "the server refuses to end the lease of a message; it comes back when the lease ends by itself"
        );
    }
}
