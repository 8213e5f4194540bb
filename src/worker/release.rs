//! Releases messages that the worker does not start, or whose handlers it has dropped.

use std::{sync::Arc, time::Instant};

use tokio::time::sleep;
use tracing::warn;

use crate::{
    error::{Error, Result},
    queue::{
        message::{Lease, Ranges, payload::Payload},
        observe::metric::End,
    },
    worker::{apart::Apart, outage::Outage, settle::lost_of, station::Station},
};

/// Leases that were not released, each with the reason.
type NotReleased = Vec<(Lease, Error)>;

impl<T: Payload> Station<T> {
    /// Releases messages that are counted as being given back: see [`Station::release`]. The runner
    /// does not end before that. Dropping the future ends the count, also before its first poll.
    pub fn release_counted(self: Arc<Self>, leases: Vec<Lease>) -> impl Future<Output = ()> + Send {
        GivingBack { station: self, leases }.release()
    }

    /// Releases messages without counting the attempts. If the connection is lost, repeats the
    /// release until it succeeds or the leases have ended. Messages that the server refuses to
    /// release are due again when their leases end.
    pub async fn release(&self, leases: &[Lease]) {
        let (began, mut outage, mut may_be_done) = (Instant::now(), Outage::default(), false);
        let mut cut_off = self.try_release(leases, may_be_done).await;
        while let Some((_, error)) = cut_off.first() {
            if began.elapsed() > self.lease {
                return self.not_released(&cut_off);
            }
            sleep(outage.pause(self.name(), error)).await;
            may_be_done |= cut_off.iter().any(|(_, error)| error.is_outcome_unknown());
            let leases: Vec<Lease> = cut_off.iter().map(|(lease, _)| *lease).collect();
            cut_off = self.try_release(&leases, may_be_done).await;
        }
        outage.over(self.name());
    }

    /// Releases messages. Returns the leases for which the connection was lost.
    async fn try_release(&self, leases: &[Lease], may_be_done: bool) -> NotReleased {
        if leases.is_empty() {
            return Vec::new();
        }
        let failed: NotReleased = match lost_of(self.send_release(leases, may_be_done).await) {
            Ok(lost) => {
                self.released(leases, leases.len() - lost.len());
                return Vec::new();
            }
            Err(error) if error.is_refusal() && leases.len() > 1 => {
                let alone = |lease: Lease| async move { self.send_release(&[lease], may_be_done).await };
                let apart = Apart::of(leases, alone).await;
                self.released(&[&apart.ended[..], &apart.lost].concat(), apart.ended.len());
                apart.failed
            }
            Err(error) => leases.iter().map(|lease| (*lease, error.clone())).collect(),
        };
        let (cut_off, refused): (NotReleased, NotReleased) =
            failed.into_iter().partition(|(_, error)| is_cut_off(error));
        self.not_released(&refused);
        cut_off
    }

    /// Sends a release. If an earlier one may have taken effect, no lease counts as lost.
    async fn send_release(&self, leases: &[Lease], may_be_done: bool) -> Result<()> {
        if !may_be_done {
            return self.queue.release(leases).await;
        }
        let (shared, mut leases) = (&self.queue.shared, leases.to_vec());
        leases.sort_unstable();
        shared.release_ranges(&Ranges::of(&leases, |_, _| true), may_be_done).await?;
        shared.db.wake(&shared.channel);
        Ok(())
    }

    fn released(&self, leases: &[Lease], count: usize) {
        self.held().confirm(leases.iter().copied());
        self.tally.add(End::Released, count);
    }

    fn not_released(&self, failed: &[(Lease, Error)]) {
        let Some((_, error)) = failed.first() else { return };
        let leases: Vec<Lease> = failed.iter().map(|(lease, _)| *lease).collect();
        self.held().give_back_again(&leases);
        warn!(queue = self.name(), messages = leases.len(), %error, "messages not released; they are due again when their leases end");
    }
}

/// Messages that are being given back. Dropping this value ends their count.
struct GivingBack<T: Payload> {
    station: Arc<Station<T>>,
    leases: Vec<Lease>,
}

impl<T: Payload> GivingBack<T> {
    async fn release(self) {
        self.station.release(&self.leases).await;
    }
}

impl<T: Payload> Drop for GivingBack<T> {
    fn drop(&mut self) {
        self.station.held().end_giving_back(self.leases.len());
        self.station.changed.notify_one();
    }
}

/// A runner that has not begun to close. Dropping this value releases the messages that no handler
/// has started, in a separate task: a caller may drop the worker instead of shutting it down.
pub(super) struct Unclosed<T: Payload>(Option<Arc<Station<T>>>);

impl<T: Payload> Unclosed<T> {
    pub fn of(station: &Arc<Station<T>>) -> Self {
        Self(Some(station.clone()))
    }

    /// Leaves the messages to [`Station::close`].
    pub fn close(mut self) {
        self.0 = None;
    }
}

impl<T: Payload> Drop for Unclosed<T> {
    fn drop(&mut self) {
        let Some(station) = self.0.take() else { return };
        let leases = station.held().give_up_waiting();
        station.queue.shared.send_leases_back(leases);
    }
}

/// Returns true if the connection was lost, or could not be made, and the next one may work.
fn is_cut_off(error: &Error) -> bool {
    (error.is_closed() || error.is_outcome_unknown()) && !error.is_final()
}
