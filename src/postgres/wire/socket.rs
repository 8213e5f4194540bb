//! Writes to the socket of an idle connection without waking its driver.

use bytes::BytesMut;

use super::stream::Stream;

/// A second handle of a connection's socket. A caller that finds the connection idle writes
/// directly. This saves a task switch, and often the slow wake-up of another thread.
#[derive(Debug)]
pub(super) enum Socket {
    #[cfg(unix)]
    Tcp(std::net::TcpStream),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
}

impl Socket {
    /// Returns a second handle. Returns `None` if the stream changes the bytes, as TLS does, or if
    /// the system cannot provide a handle.
    #[cfg(unix)]
    pub fn of(stream: &Stream) -> Option<Self> {
        use std::os::fd::AsFd;
        match stream {
            Stream::Tcp(stream) => Some(Self::Tcp(stream.as_fd().try_clone_to_owned().ok()?.into())),
            Stream::Unix(stream) => Some(Self::Unix(stream.as_fd().try_clone_to_owned().ok()?.into())),
            Stream::Tls(_) => None,
        }
    }

    #[cfg(not(unix))]
    pub fn of(_: &Stream) -> Option<Self> {
        None
    }

    /// Writes as many bytes as the socket accepts at once, and leaves the rest. After an error,
    /// leaves all bytes, because the driver will receive the same error.
    #[cfg(unix)]
    pub fn write(&mut self, bytes: &mut BytesMut) {
        use std::io::Write;

        use bytes::Buf;

        let written = match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        };
        bytes.advance(written.unwrap_or(0));
    }

    #[cfg(not(unix))]
    pub fn write(&mut self, _: &mut BytesMut) {}
}
