use bytes::BytesMut;

use super::stream::Stream;

/// A second handle to a connection's socket: who finds the connection idle writes by itself, and
/// the driver is not woken. That spares a switch of tasks, and with a few more of them the waking
/// of another thread, at which a lonely caller's time went.
#[derive(Debug)]
pub(super) enum Socket {
    #[cfg(unix)]
    Tcp(std::net::TcpStream),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
}

impl Socket {
    /// None where bytes do not reach the socket as they are, or it cannot have a second handle.
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

    /// Writes what the socket takes at once, and leaves the rest; all of it where it fails, since
    /// the driver will be told the same.
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
