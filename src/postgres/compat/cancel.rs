//! Requests to cancel the statement that is running on a connection.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use postgres_protocol::message::frontend;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

use super::{encryption::Encryption, failure::Error};
use crate::postgres::{
    target::Target,
    wire::{Peer, reopen},
};

/// The maximum time to wait until the server closes the connection of a request.
const CLOSES: Duration = Duration::from_secs(5);

/// A token that can cancel the statement that a client is running. It uses a separate connection.
#[derive(Clone)]
pub struct CancelToken {
    pub(super) target: Target,
    pub(super) peer: Option<Peer>,
    pub(super) process_id: i32,
    pub(super) key: Bytes,
}

impl CancelToken {
    /// Requests that the server cancel the running statement. The server does not report whether a
    /// statement was running.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn cancel_query<T: Encryption>(&self, tls: T) -> Result<(), Error> {
        let peer = self.peer.as_ref().ok_or_else(|| Error::other("the address of the server is not known"))?;
        let target = tls.applied(&self.target)?;
        let stream = reopen(peer, &target).await.map_err(Error::connect)?;
        self.request(stream).await
    }

    /// Requests the cancellation over a stream to the server that the caller has opened.
    ///
    /// # Errors
    /// The stream broke.
    pub async fn cancel_query_raw<S, T>(&self, stream: S, _tls: T) -> Result<(), Error>
    where
        S: AsyncRead + AsyncWrite + Unpin,
        T: Encryption,
    {
        self.request(stream).await
    }

    async fn request(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<(), Error> {
        let mut message = BytesMut::new();
        match self.key.first_chunk::<4>().filter(|_| self.key.len() == 4) {
            Some(key) => frontend::cancel_request(self.process_id, i32::from_be_bytes(*key), &mut message),
            None => return Err(Error::other("the server has sent a key for cancel requests of an unknown form")),
        }
        stream.write_all(&message).await.map_err(Error::other)?;
        stream.flush().await.map_err(Error::other)?;
        // Waits until the server has signalled the process, and then closes the connection. A
        // server or a pooler that hangs does not close it.
        let mut rest = [0; 16];
        let closed = async { while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {} };
        let _ = timeout(CLOSES, closed).await;
        Ok(())
    }
}

impl std::fmt::Debug for CancelToken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("CancelToken").field("process_id", &self.process_id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_postgres::NoTls;

    #[tokio::test(start_paused = true)]
    async fn request_to_a_server_that_never_closes_ends() {
        let target = Target::parse_in("host=h", |_| None).expect("a valid string");
        let token = CancelToken { target, peer: None, process_id: 1, key: Bytes::from_static(b"key.") };
        let (ours, mut server) = tokio::io::duplex(1 << 10);
        timeout(CLOSES * 2, token.cancel_query_raw(ours, NoTls)).await.expect("in time").expect("sent");
        let mut sent = [0; 16];
        server.read_exact(&mut sent).await.expect("sent");
        assert_eq!(&sent[12..], b"key.");
    }
}
