//! The messages that a server sends outside of replies: notifications, notices and parameters.

use std::{future::poll_fn, io, pin::pin, sync::Arc};

use bytes::Bytes;

use super::{Connection, frame::texts, queued::Link};
use crate::error::server::ServerError;

impl Connection {
    /// Starts to collect asynchronous messages. The first of them are the notices from the login.
    pub fn keep_asides(&self, notices: Vec<Bytes>) -> Asides {
        self.shared.lock().asides = Some(notices.into_iter().map(|notice| (b'N', notice)).collect());
        Asides(self.shared.clone())
    }
}

/// The asynchronous messages of a connection, and the error that ended the connection.
pub(crate) struct Asides(Arc<Link>);

impl Asides {
    /// Returns the type and the body of the next asynchronous message.
    pub fn next(&self) -> Option<(u8, Bytes)> {
        self.0.lock().asides.as_mut()?.pop_front()
    }

    /// Returns the error with which the server ended the connection, if there was one.
    pub fn last_error(&self) -> Option<Arc<ServerError>> {
        self.0.lock().ended.as_ref()?.0.clone()
    }

    /// Drives the connection until it ends. Passes the channel and the payload of each notification
    /// to `notified`, and ignores other asynchronous messages.
    pub async fn drive(
        self,
        driver: impl Future<Output = io::Result<()>>,
        mut notified: impl FnMut(&str, &str),
    ) -> io::Result<()> {
        let mut driver = pin!(driver);
        poll_fn(|context| {
            let ended = driver.as_mut().poll(context);
            while let Some((kind, body)) = self.next() {
                if kind == b'A'
                    && let Some((_, channel, payload)) = notification(&body)
                {
                    notified(&channel, &payload);
                }
            }
            ended
        })
        .await
    }
}

/// Parses the body of a notification: the process that sent it, the channel and the payload.
pub(crate) fn notification(body: &[u8]) -> Option<(i32, String, String)> {
    let (process_id, rest) = body.split_first_chunk::<4>()?;
    let (channel, payload) = texts(rest)?;
    Some((i32::from_be_bytes(*process_id), channel, payload))
}
