//! At least once: a message is leased, written, and acknowledged after its delivery.

use std::{pin::pin, time::Duration};

use tokio::time::{Instant, sleep, sleep_until};

use super::{Delivery, gone, held::Held, size::CHUNK, unless_stopped};
use crate::{
    error::{Error, Result},
    print::{self, thousands},
};

/// The time limit for the last acknowledgements if the database is unavailable.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time at the end after which the program says that it waits for its reader.
const SILENT: Duration = Duration::from_secs(5);

impl Delivery {
    /// Leases, prints and acknowledges messages until the requested number is reached.
    pub async fn at_least_once(mut self) -> Result<()> {
        let mut held = Held::new(self.archive);
        let mut outcome = self.lease_and_print(&mut held).await;
        if outcome.is_ok() {
            outcome = self.until_read(&mut held).await;
        }
        // Acknowledges messages that were read and gives all others back, even after an error.
        let delivered = self.outlet.end(self.stop.is_asked()).await;
        let settled = self.settle(&mut held, delivered).await;
        held.warn();
        self.complete(match outcome {
            Err(Error::OutputClosed) => settled.and(outcome), // a reader that is gone is no error, so it hides none
            outcome => outcome.and(settled),
        })
    }

    async fn lease_and_print(&mut self, held: &mut Held) -> Result<()> {
        while self.left > 0 && !self.stop.is_asked() {
            match self.lease_and_print_once(held).await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => self.wait_for_database(error).await?,
            }
        }
        Ok(())
    }

    /// Returns true if the caller should call again. The caller may also call again after an error,
    /// because it keeps extending the leases until they are settled.
    async fn lease_and_print_once(&mut self, held: &mut Held) -> Result<bool> {
        if self.outage.lasted().is_some() {
            held.acknowledge(&self.queue, self.outlet.taken()).await?; // settles leases that the outage interrupted
        }
        if !held.is_empty() && Instant::now() >= held.extends_at(self.lease()) {
            held.keep(&self.queue, self.outlet.taken(), true).await?;
        }
        let n = self.size.messages(CHUNK).min(self.left) as usize;
        // A signal does not cancel a lease in progress, because only the server's answer lists the
        // leases to settle.
        let leasing = unless_stopped(self.stop.clone(), self.consumer.lease(n, self.lease()));
        let Some(messages) = leasing.await else { return Ok(false) };
        let messages = messages?;
        self.outage.over();
        if messages.is_empty() {
            if !self.follow {
                return Ok(false);
            }
            self.wait_and_keep(held).await?;
            return Ok(true);
        }
        self.was_ready = false;
        self.left -= messages.len() as u64;
        let before = self.outlet.sent();
        let chunk = self.chunk(&messages, |lease, end| held.add(lease, before + end));
        drop(messages);
        self.outlet.send(chunk);
        self.print(held).await?;
        held.acknowledge(&self.queue, self.outlet.taken()).await?;
        Ok(true)
    }

    /// Waits until the chunk is written or cannot be written, or until a signal arrives. Meanwhile
    /// extends the leases.
    async fn print(&mut self, held: &mut Held) -> Result<()> {
        let lease = self.lease();
        loop {
            tokio::select! {
                written = self.outlet.written() => return written,
                () = self.stop.asked() => return Ok(()),
                () = sleep_until(held.extends_at(lease)) => match held.keep(&self.queue, self.outlet.taken(), true).await {
                    Ok(()) => self.outage.over(),
                    Err(error) => self.wait_for_database(error).await?,
                },
            }
        }
    }

    /// Waits until a message is due, a signal arrives, or the reader goes away. In the meantime,
    /// acknowledges what the reader reads, and extends the leases of the rest.
    async fn wait_and_keep(&mut self, held: &mut Held) -> Result<()> {
        let lease = self.lease();
        self.pause_if_held().await;
        let Self { consumer, queue, outlet, stop, .. } = self;
        let mut ready = pin!(consumer.ready());
        loop {
            let extends = tokio::select! {
                ready = &mut ready => return Ok(ready?),
                () = stop.asked() => return Ok(()),
                () = gone(outlet) => return Err(Error::OutputClosed),
                _ = outlet.some_read(), if !held.is_empty() => false,
                () = sleep_until(held.extends_at(lease)), if !held.is_empty() => true,
            };
            held.keep(queue, outlet.taken(), extends).await?;
        }
    }

    /// Waits at the end until the reader has read everything or has gone away, or until a signal
    /// arrives. Keeps the leases while it waits, however slowly the reader reads.
    async fn until_read(&mut self, held: &mut Held) -> Result<()> {
        let (lease, note_at, mut is_noted) = (self.lease(), Instant::now() + SILENT, false);
        loop {
            let (is_read, extends) = tokio::select! {
                is_all = self.outlet.some_read() => (is_all, false),
                () = sleep_until(held.extends_at(lease)) => (false, true),
                () = self.stop.asked() => return Ok(()),
                () = sleep_until(note_at), if !is_noted => {
                    is_noted = true;
                    print::note(format!(
                        "waiting for the reader of standard output, which has not read {} bytes; SIGINT and SIGTERM \
                         end the program",
                        thousands(self.outlet.unread())
                    ));
                    continue;
                }
            };
            match held.keep(&self.queue, self.outlet.taken(), extends).await {
                Ok(()) if is_read => return Ok(()),
                Ok(()) => self.outage.over(),
                Err(error) if self.outage.lasted().is_some_and(|lasted| lasted > PATIENCE) => return Err(error),
                Err(error) => {
                    let pause = self.outage.pause(error)?;
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = self.stop.asked() => return Ok(()),
                    }
                }
            }
        }
    }

    /// Returns the time of the leases, which are extended by the same time. The queue's own lease
    /// time may have changed since this program opened the queue.
    fn lease(&self) -> Duration {
        self.queue.description().lease
    }

    /// Ends all leases. If the database is unavailable, waits for it up to [`PATIENCE`].
    async fn settle(&mut self, held: &mut Held, delivered: u64) -> Result<()> {
        loop {
            let settled = match held.acknowledge(&self.queue, delivered).await {
                Ok(()) => held.give_back(&self.queue).await,
                Err(error) => Err(error),
            };
            let Err(error) = settled else { return Ok(()) };
            if self.outage.lasted().is_some_and(|lasted| lasted > PATIENCE) {
                return Err(error);
            }
            sleep(self.outage.pause(error)?).await;
        }
    }
}
