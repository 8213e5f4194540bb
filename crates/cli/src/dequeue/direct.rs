//! Direct delivery: messages that arrive inside notifications, one at a time.

use super::{Delivery, gone};
use crate::error::{Error, Result};

impl Delivery {
    /// Prints each message as soon as it arrives. A message that has arrived but cannot be written
    /// is lost.
    pub async fn direct(mut self) -> Result<()> {
        while self.left > 0 {
            let received = tokio::select! {
                received = self.consumer.receive_direct() => received,
                () = self.stop.asked() => return Ok(()),
                () = gone(&self.outlet) => return Err(Error::OutputClosed),
            };
            let message = match received {
                Ok(message) => message,
                Err(error) => {
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
}
