//! A consumer, which waits until a message is due.

use std::{sync::Arc, time::Duration};

use pyo3::{IntoPyObjectExt, prelude::*};
use tokio::{sync::Mutex, time::timeout};
use trunkline::Dequeue;

use crate::{
    draft::seconds,
    offer::{Dequeued, Offer},
    raw::Raw,
    reply::{Answered, Loop, none, reply, reply_or_leave},
    runtime::Owner,
};

/// The maximum time for which a consumer that is closed waits until it has left the list of
/// consumers that wait for direct messages.
const LONGEST: Duration = Duration::from_secs(5);
/// The time that a call has to end after its caller has left.
const LEFT: Duration = Duration::from_secs(1);

#[pyclass(frozen, module = "trunkline._trunkline")]
pub struct Consumer {
    consumer: Option<Arc<Mutex<trunkline::Consumer<Raw>>>>,
    queue: trunkline::Queue<Raw>,
    owner: Owner,
}

impl Consumer {
    pub fn new(consumer: trunkline::Consumer<Raw>, queue: trunkline::Queue<Raw>, owner: Owner) -> Self {
        Self { consumer: Some(Arc::new(Mutex::new(consumer))), queue, owner }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.owner.drop_within(self.consumer.take());
    }
}

#[pymethods]
impl Consumer {
    /// Waits for messages, for at most `longest` seconds. Leases them for `lease` seconds, or for
    /// the queue's lease time.
    #[pyo3(signature = (bridge, n, takes, longest=None, lease=None))]
    fn next(
        &self,
        py: Python<'_>,
        bridge: Loop<'_>,
        n: usize,
        takes: bool,
        longest: Option<f64>,
        lease: Option<f64>,
    ) -> Answered {
        self.owner.check()?;
        let (consumer, queue) = (self.consumer.clone(), self.queue.clone());
        let mut request = Dequeue::up_to(n);
        if let Some(longest) = longest {
            request = request.within(seconds(longest)?);
        }
        // Requests the lease time explicitly, because the queue's own may be shorter by now.
        let lease = lease.map_or_else(|| Ok(queue.description().lease), seconds)?;
        if !takes {
            request = request.lease_for(lease);
        }
        let work = async move {
            let Some(consumer) = consumer else { std::future::pending().await };
            let mut consumer = consumer.lock().await;
            if takes {
                return consumer.offer_take(request).await.map(Dequeued::taken);
            }
            let offer = consumer.offer_lease(request).await?;
            Ok(Dequeued::leased(offer, queue, lease))
        };
        reply_or_leave(py, bridge.as_deref(), work, |py, dequeued| Offer::new(dequeued).into_py_any(py))
    }

    /// Waits for one message, which may arrive inside a notification.
    #[pyo3(signature = (bridge))]
    fn receive_direct(&self, py: Python<'_>, bridge: Loop<'_>) -> Answered {
        self.owner.check()?;
        let consumer = self.consumer.clone();
        let work = async move {
            let Some(consumer) = consumer else { std::future::pending().await };
            consumer.lock().await.offer_receive_direct().await.map(Dequeued::taken)
        };
        reply_or_leave(py, bridge.as_deref(), work, |py, dequeued| Offer::new(dequeued).into_py_any(py))
    }

    /// Stops waiting for direct messages, and waits until a message that is on its way is enqueued.
    /// Does nothing if another call still waits.
    #[pyo3(signature = (bridge))]
    fn close_direct(&self, py: Python<'_>, bridge: Loop<'_>) -> PyResult<Py<PyAny>> {
        self.owner.check()?;
        let consumer = self.consumer.clone();
        let work = async move {
            let Some(consumer) = consumer else { return Ok(()) };
            let Ok(mut consumer) = timeout(LEFT, consumer.lock()).await else { return Ok(()) };
            let _ = timeout(LONGEST, consumer.close_direct()).await; // the rest happens in the background
            Ok(())
        };
        reply(py, bridge.as_deref(), work, none)
    }
}
