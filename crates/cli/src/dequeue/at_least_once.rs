//! At least once: a message is leased, written, and acknowledged after its delivery.

use std::time::Duration;

use tokio::time::{Interval, interval};

use super::{Delivery, held::Held, size::CHUNK, unless_stopped};
use crate::error::Result;

/// The time limit for the last acknowledgements if the database is unavailable.
const PATIENCE: Duration = Duration::from_secs(30);

impl Delivery {
    /// Leases, prints and acknowledges messages until the requested number is reached.
    pub async fn at_least_once(mut self) -> Result<()> {
        let mut held = Held::new(self.archive);
        let outcome = self.lease_and_print(&mut held).await;
        if outcome.is_ok() {
            let _ = self.until_read(&mut held).await; // if the database fails, `settle` waits for it
        }
        // Even after an error, delivered messages are acknowledged, and all other messages are
        // given back.
        let delivered = self.outlet.end().await;
        let settled = self.settle(&mut held, delivered).await;
        held.warn();
        outcome.and(settled)
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

    /// Returns true if the caller should continue. The caller may also continue after an error,
    /// because leases are kept until they are settled.
    async fn lease_and_print_once(&mut self, held: &mut Held) -> Result<bool> {
        if self.outage.lasted().is_some() {
            held.acknowledge(&self.queue, self.outlet.taken()).await?; // settles leases that the outage interrupted
        }
        let n = self.size.messages(CHUNK).min(self.left) as usize;
        // A signal does not cancel a lease in progress, because only the server's answer lists the
        // leases to settle.
        let leasing = unless_stopped(self.stop.clone(), self.consumer.lease(n));
        let Some(messages) = leasing.await else { return Ok(false) };
        let messages = messages?;
        self.outage.over();
        if messages.is_empty() {
            if !self.follow {
                return Ok(false);
            }
            self.until_read(held).await?;
            self.wait().await?;
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

    /// Waits until the chunk is written or cannot be written, or until a signal arrives. Keeps the
    /// leases while it waits.
    async fn print(&mut self, held: &mut Held) -> Result<()> {
        let mut soon = self.ticks().await;
        loop {
            tokio::select! {
                written = self.outlet.written() => return written,
                () = self.stop.asked() => return Ok(()),
                _ = soon.tick() => self.keep(held, true).await?,
            }
        }
    }

    /// Waits until the reader has read everything or has gone away, or until a signal arrives.
    /// Keeps the leases while it waits, however slowly the reader reads.
    async fn until_read(&mut self, held: &mut Held) -> Result<()> {
        let mut soon = self.ticks().await;
        loop {
            let is_read = tokio::select! {
                is_all = self.outlet.some_read() => is_all,
                () = self.stop.asked() => return Ok(()),
                _ = soon.tick() => {
                    self.keep(held, true).await?;
                    continue;
                }
            };
            self.keep(held, false).await?;
            if is_read && self.outage.lasted().is_none() {
                return Ok(());
            }
        }
    }

    /// Returns a timer that ticks three times in a lease.
    async fn ticks(&self) -> Interval {
        let mut soon = interval(self.queue.description().lease / 3);
        soon.tick().await; // the first tick is immediate
        soon
    }

    /// Acknowledges the messages that the reader has read. Extends the leases of all others if
    /// `extends`. If the database is unavailable, waits for a moment.
    async fn keep(&mut self, held: &mut Held, extends: bool) -> Result<()> {
        let kept = match held.acknowledge(&self.queue, self.outlet.taken()).await {
            Ok(()) if extends => held.extend(&self.queue, self.queue.description().lease).await,
            acknowledged => acknowledged,
        };
        match kept {
            Ok(()) => self.outage.over(),
            Err(error) => self.wait_for_database(error).await?,
        }
        Ok(())
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
            tokio::time::sleep(self.outage.pause(error)?).await;
        }
    }
}
