//! Direct delivery: messages that arrive inside notifications, one at a time.

use std::{pin::pin, time::Duration};

use tokio::time::timeout;
use trunkline::Message;

use super::{ANSWER, Delivery, gone};
use crate::{
    any::Id,
    error::{Error, Result},
    text::Text,
};

/// The time limit for storing messages that were sent to this program and not printed.
const LEFT: Duration = Duration::from_secs(5);

impl Delivery {
    /// Prints each message as soon as it arrives. A message that has arrived but cannot be written
    /// is lost.
    pub async fn direct(mut self) -> Result<()> {
        let outcome = self.receive_and_print().await;
        let _ = timeout(LEFT, self.consumer.close_direct()).await; // a server that is away stores nothing
        outcome
    }

    async fn receive_and_print(&mut self) -> Result<()> {
        while self.left > 0 {
            let message = match self.receive().await? {
                None => break,
                Some(Ok(message)) => message,
                Some(Err(error)) => {
                    self.wait_for_database(error.into()).await?;
                    continue;
                }
            };
            self.outage.over();
            self.left -= 1;
            let chunk = self.chunk(&[message], |_, _| {});
            self.outlet.send(chunk);
            if !self.print_taken(&[self.outlet.sent()]).await? {
                break;
            }
        }
        Ok(())
    }

    /// Waits for a message. Returns `None` after a signal, and an error when the reader goes away.
    /// In both cases, a message that the server is about to return comes first.
    async fn receive(&mut self) -> Result<Option<trunkline::Result<(Id, Message<Text>)>>> {
        let Self { consumer, stop, outlet, .. } = self;
        let mut receiving = pin!(consumer.receive_direct());
        tokio::select! {
            received = &mut receiving => return Ok(Some(received)),
            () = stop.asked() => {}
            () = gone(outlet) => {}
        }
        match timeout(ANSWER, receiving).await {
            Ok(received) => Ok(Some(received)),
            Err(_) if outlet.is_closed() => Err(Error::OutputClosed),
            Err(_) => Ok(None),
        }
    }
}
