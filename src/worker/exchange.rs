//! A settlement with the next lease, which goes on if the runner no longer waits for it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

use crate::{
    error::Result,
    queue::{
        batch::unclaimed::Unreadable,
        message::{Lease, Message, payload::Payload},
        verbs::dequeue::Dequeued,
        wait::linger::Linger,
    },
    worker::{groups::ToSettle, station::Station},
};

/// The leased messages, the time of the reply to the lease, and the outcome.
type Exchanged<T> = (Dequeued<T>, Instant, Result<()>);

/// A call of [`Station::settle_and_lease`]. If the runner drops it, as at the limit of a shutdown,
/// a task awaits the reply. Otherwise the runner would settle the same results again, and count
/// those that the first statement settles as lost. Messages that the reply leases are given back.
pub(super) struct StepExchange<T: Payload> {
    station: Arc<Station<T>>,
    underway: Option<BoxFuture<'static, Exchanged<T>>>,
}

impl<T: Payload> StepExchange<T> {
    pub fn new(station: &Arc<Station<T>>, settling: ToSettle, n: usize, linger: Option<Linger>) -> Self {
        let station = station.clone();
        let settles = station.clone();
        let underway = Box::pin(async move { settles.settle_and_lease(settling, n, linger).await });
        Self { station, underway: Some(underway) }
    }
}

impl<T: Payload> Future for StepExchange<T> {
    type Output = Exchanged<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(underway) = &mut self.underway else { return Poll::Pending };
        let exchanged = ready!(underway.as_mut().poll(context));
        self.underway = None;
        Poll::Ready(exchanged)
    }
}

impl<T: Payload> Drop for StepExchange<T> {
    fn drop(&mut self) {
        let (Some(underway), Ok(runtime)) = (self.underway.take(), Handle::try_current()) else { return };
        let station = self.station.clone();
        runtime.spawn(async move {
            let (dequeued, ..) = underway.await;
            let unreadable = dequeued.unreadable.iter().flat_map(Unreadable::leases);
            let leases: Vec<Lease> = dequeued.messages.iter().map(Message::lease).chain(unreadable).collect();
            station.changed.notify_one();
            station.release(&leases).await;
        });
    }
}
