//! The exchange of messages during a login.

use std::{io, sync::Arc};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tracing::debug;

use crate::{
    error::{Error, Kind, Result, server::ServerError},
    postgres::{target::explained, wire::stream::Stream},
};

/// The maximum length in bytes of a message during the login. No server needs longer messages.
const LONGEST: usize = 64 << 10;
const NOTICES: usize = 16;

/// The exchange of messages with the server until the login is complete.
pub(super) struct Exchange {
    pub stream: Stream,
    /// The bytes that have been received but not returned.
    pub read: BytesMut,
    pub write: BytesMut,
    pub notices: Vec<Bytes>,
}

impl Exchange {
    pub fn new(stream: Stream) -> Self {
        Self { stream, read: BytesMut::with_capacity(8 << 10), write: BytesMut::new(), notices: Vec::new() }
    }

    pub async fn send(&mut self) -> Result<()> {
        self.stream.write_all_buf(&mut self.write).await.map_err(|error| broken(&error))?;
        self.stream.flush().await.map_err(|error| broken(&error))
    }

    /// Returns the type and the body of the next message. Returns an error message as an error, and
    /// collects notices instead of returning them.
    pub async fn next(&mut self) -> Result<(u8, Bytes)> {
        loop {
            match self.message().await? {
                (b'E', body) => return Err(Error::new(Kind::Refused(Arc::new(ServerError::parse(&body))))),
                (b'N', body) => {
                    debug!(notice = %ServerError::parse(&body), "the server's notice");
                    if self.notices.len() < NOTICES {
                        self.notices.push(body);
                    }
                }
                // Ignores the list of protocol options that the server does not support, because
                // the client requests none.
                (b'v', _) => {}
                message => return Ok(message),
            }
        }
    }

    /// Returns the code and the rest of the next authentication message. The message requests an
    /// authentication method or accepts the login.
    pub async fn authentication(&mut self) -> Result<(u32, Bytes)> {
        let (kind, mut body) = self.next().await?;
        match body.first_chunk() {
            Some(code) if kind == b'R' => Ok((u32::from_be_bytes(*code), body.split_off(4))),
            _ => Err(unexpected(kind)),
        }
    }

    async fn message(&mut self) -> Result<(u8, Bytes)> {
        loop {
            if let Some([kind, length @ ..]) = self.read.first_chunk::<5>() {
                let (kind, length) = (*kind, u32::from_be_bytes(*length) as usize);
                if !(4..=LONGEST).contains(&length) {
                    return Err(self.garbage());
                }
                if self.read.len() > length {
                    return Ok((kind, self.read.split_to(length + 1).freeze().split_off(5)));
                }
            }
            if self.stream.read_buf(&mut self.read).await.map_err(|error| broken(&error))? == 0 {
                return Err(failed(io::ErrorKind::UnexpectedEof, "the server closed the connection during the login"));
            }
        }
    }

    /// Creates the error for a reply that is not a valid message. A server that cannot start a
    /// process sends an `E` and a plain text.
    fn garbage(&self) -> Error {
        match self.read.split_first() {
            Some((b'E', text)) => {
                let text = text.split(|byte| matches!(byte, 0 | b'\n')).next().unwrap_or_default();
                failed(io::ErrorKind::ConnectionRefused, String::from_utf8_lossy(text))
            }
            _ => failed(io::ErrorKind::InvalidData, "the server is not PostgreSQL"),
        }
    }
}

fn broken(error: &io::Error) -> Error {
    // Explains a refused certificate: with TLS 1.3, a server rejects the client's certificate only
    // after the handshake.
    let text = explained(error).unwrap_or_else(|| error.to_string());
    failed(error.kind(), format!("the connection broke during the login: {text}"))
}

pub(super) fn unexpected(kind: u8) -> Error {
    let text = format!("the server sent a message of kind {:?}, which has no place in a login", char::from(kind));
    failed(io::ErrorKind::InvalidData, text)
}

pub(super) fn failed(kind: io::ErrorKind, text: impl Into<String>) -> Error {
    Error::new(Kind::Unreachable(io::Error::new(kind, text.into())))
}
