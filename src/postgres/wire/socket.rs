//! Direct writes to the socket of an idle connection, without waking the driver.

use bytes::BytesMut;

use super::stream::Stream;

/// A second handle to the socket of a connection. If the connection is idle, the caller writes to
/// the socket directly. This saves a task switch, and often the wake-up of another thread.
#[derive(Debug)]
pub(super) enum Socket {
    #[cfg(unix)]
    Tcp(std::net::TcpStream),
    #[cfg(unix)]
    Unix(std::sync::Arc<std::os::unix::net::UnixStream>),
}

impl Socket {
    /// Returns a second handle. Returns `None` if the stream is encrypted, or if the system cannot
    /// provide a handle.
    #[cfg(unix)]
    pub fn of(stream: &Stream) -> Option<Self> {
        use std::os::fd::AsFd;
        match stream {
            Stream::Tcp(stream) => Some(Self::Tcp(stream.as_fd().try_clone_to_owned().ok()?.into())),
            Stream::Unix(stream) => Some(Self::Unix(stream.second().clone())),
            Stream::Tls(_) => None,
        }
    }

    #[cfg(not(unix))]
    pub fn of(_: &Stream) -> Option<Self> {
        None
    }

    /// Writes the bytes that the socket accepts immediately, and removes them from `bytes`. An
    /// error is ignored, because the driver will receive the same error.
    #[cfg(unix)]
    pub fn write(&mut self, bytes: &mut BytesMut) {
        use std::io::Write;

        use bytes::Buf;

        let written = match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.as_ref().write(bytes),
        };
        bytes.advance(written.unwrap_or(0));
    }

    #[cfg(not(unix))]
    pub fn write(&mut self, _: &mut BytesMut) {}
}
