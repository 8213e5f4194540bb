//! Requests to cancel the statement that is running on a connection.

use tokio::io::{AsyncRead, AsyncWrite};

use super::{encryption::Encryption, failure::Error};
use crate::postgres::{target::Target, wire::CancelKey};

/// A token that can cancel the statement that a client is running. It uses a separate connection.
#[derive(Clone)]
pub struct CancelToken {
    pub(super) target: Target,
    pub(super) cancel: CancelKey,
}

impl CancelToken {
    /// Requests that the server cancel the running statement. The server does not report whether a
    /// statement was running.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn cancel_query<T: Encryption>(&self, tls: T) -> Result<(), Error> {
        let target = tls.applied(&self.target)?;
        let stream = self.cancel.open(&target).await.map_err(Error::connect)?;
        self.cancel.send(stream).await.map_err(Error::other)
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
        self.cancel.send(stream).await.map_err(Error::other)
    }
}

impl std::fmt::Debug for CancelToken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("CancelToken").field("process_id", &self.cancel.process_id).finish_non_exhaustive()
    }
}
