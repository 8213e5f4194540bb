//! At most once: messages are taken no faster than the program can write them.

use std::time::Duration;

use trunkline::Message;

use super::{Delivery, size::CHUNK, unless_stopped};
use crate::{
    any::Id,
    error::{Error, Result},
    outlet::PIPE,
    print,
    text::Text,
};

impl Delivery {
    /// Takes and prints messages. Takes only as many messages at a time as it can write without
    /// blocking.
    pub async fn at_most_once(mut self) -> Result<()> {
        while self.left > 0 && !self.stop.is_asked() {
            if self.outlet.is_closed() {
                return Err(Error::OutputClosed);
            }
            let room = self.outlet.room().min(CHUNK);
            if room < CHUNK.min(PIPE) / 2 {
                // Waits for the slow reader, because messages that are taken now would have to wait
                // in this program.
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(2)) => continue,
                    () = self.stop.asked() => break,
                }
            }
            let n = self.size.messages(room).min(self.left) as usize;
            let messages = match self.take(n).await {
                Ok(Some(messages)) => messages,
                Ok(None) => break,
                Err(error) => {
                    self.wait_for_database(error).await?;
                    continue;
                }
            };
            if messages.is_empty() {
                continue; // tries again, because a message may be due by now
            }
            self.was_ready = false;
            self.left -= messages.len() as u64;
            let mut ends = Vec::with_capacity(messages.len());
            let before = self.outlet.sent();
            let chunk = self.chunk(&messages, |_, end| ends.push(before + end));
            self.outlet.send(chunk);
            if !self.print_taken(&ends).await? {
                break;
            }
        }
        self.complete(Ok(()))
    }

    /// Waits until the messages that end at these bytes are written. After a signal, waits at most
    /// a second and warns about messages that are lost. Returns false after a signal.
    pub(super) async fn print_taken(&mut self, ends: &[u64]) -> Result<bool> {
        let outcome = tokio::select! {
            written = self.outlet.written() => written,
            () = self.stop.asked() => Ok(()),
        };
        if outcome.is_ok() && !self.stop.is_asked() {
            return Ok(true);
        }
        let patient = tokio::time::timeout(Duration::from_secs(1), self.outlet.written()).await;
        let delivered = self.outlet.end(true).await;
        let lost = ends.iter().filter(|end| **end > delivered).count();
        if lost > 0 {
            print::note(format!("warning: {lost} messages were taken from the queue and could not be written"));
        }
        outcome.and(patient.unwrap_or(Ok(()))).map(|()| false)
    }

    /// Takes messages, or waits until some are due. Returns `None` if the program should stop
    /// waiting.
    async fn take(&mut self, n: usize) -> Result<Option<Vec<(Id, Message<Text>)>>> {
        let taking = unless_stopped(self.stop.clone(), self.consumer.take(n));
        let Some(messages) = taking.await else { return Ok(None) };
        let messages = messages?;
        self.outage.over();
        if messages.is_empty() {
            if !self.follow {
                return Ok(None);
            }
            self.wait().await?;
        }
        Ok(Some(messages))
    }
}
