//! Requests to cancel the statement that a session is running.

use std::{io, time::Duration};

use bytes::{Bytes, BytesMut};
use postgres_protocol::message::frontend;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

use super::{
    connect::{Connected, Peer, reopen},
    stream::Stream,
};
use crate::{
    error::{Error, Kind, Result},
    postgres::target::Target,
};

/// The maximum time to wait until the server closes the connection of a request.
const CLOSES: Duration = Duration::from_secs(5);

/// The address of a server, and the names with which it accepts cancel requests for a session.
#[derive(Clone, Default)]
pub(crate) struct CancelKey {
    /// `None` if the address is unknown.
    pub peer: Option<Peer>,
    pub process_id: i32,
    pub key: Bytes,
}

impl CancelKey {
    pub fn of(connected: &Connected) -> Self {
        Self { peer: Peer::of(&connected.stream), process_id: connected.process_id, key: connected.key.clone() }
    }

    /// Requests over another connection that the server cancel the session's statement. The server
    /// does not report whether a statement was running.
    pub async fn request(&self, target: &Target) -> Result<()> {
        let stream = self.open(target).await?;
        self.send(stream).await.map_err(|error| Error::new(Kind::Unreachable(error)))
    }

    /// Opens a stream to the server, for [`CancelKey::send`].
    pub async fn open(&self, target: &Target) -> Result<Stream> {
        let peer = self.peer.as_ref().ok_or_else(|| Error::invalid("the address of the server is not known"))?;
        reopen(peer, target).await
    }

    /// Sends the request over a stream to the server, on which no session has begun.
    pub async fn send(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let Some(key) = self.key.first_chunk::<4>().filter(|_| self.key.len() == 4) else {
            let text = "the server has sent a key for cancel requests of an unknown form";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        };
        let mut message = BytesMut::new();
        frontend::cancel_request(self.process_id, i32::from_be_bytes(*key), &mut message);
        stream.write_all(&message).await?;
        stream.flush().await?;
        // Waits until the server has signalled the process, and then closes the connection. A
        // server or a pooler that hangs does not close it.
        let mut rest = [0; 16];
        let closed = async { while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {} };
        let _ = timeout(CLOSES, closed).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn request_to_a_server_that_never_closes_ends() {
        let cancel = CancelKey { peer: None, process_id: 1, key: Bytes::from_static(b"key.") };
        let (ours, mut server) = tokio::io::duplex(1 << 10);
        timeout(CLOSES * 2, cancel.send(ours)).await.expect("in time").expect("sent");
        let mut sent = [0; 16];
        server.read_exact(&mut sent).await.expect("sent");
        assert_eq!(&sent[12..], b"key.");
    }
}
