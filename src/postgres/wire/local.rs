//! A Unix socket that wakes its task only for what the task waits for.

use std::{
    io::{self, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, unix::AsyncFd};

/// A Unix socket that is registered for reads, and for writes only while one waits for space.
///
/// Tokio registers its own `UnixStream` for both. Linux reports a Unix socket as writable whenever
/// the peer has read from it (`unix_write_space` in `net/unix/af_unix.c`), so that each statement
/// would wake the client's thread in vain while the server begins to work. A TCP socket is only
/// reported after a write has failed for lack of space.
#[derive(Debug)]
pub(crate) struct LocalStream {
    socket: AsyncFd<UnixStream>,
    /// A registration for writes, while the socket has no space.
    full: Option<AsyncFd<UnixStream>>,
}

impl LocalStream {
    pub fn of(socket: tokio::net::UnixStream) -> io::Result<Self> {
        Ok(Self { socket: registered(socket.into_std()?, Interest::READABLE)?, full: None })
    }

    pub fn socket(&self) -> &UnixStream {
        self.socket.get_ref()
    }

    /// Waits until the socket has space, if the last write found none.
    fn poll_space(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(full) = &self.full {
            ready!(full.poll_write_ready(cx))?.clear_ready();
            self.full = None;
        }
        Poll::Ready(Ok(()))
    }
}

#[allow(deprecated, reason = "the new function is unsafe, because other types may change their descriptor")]
fn registered(socket: UnixStream, interest: Interest) -> io::Result<AsyncFd<UnixStream>> {
    AsyncFd::with_interest(socket, interest)
}

impl AsyncRead for LocalStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.socket.poll_read_ready(cx))?;
            let space = into.initialize_unfilled();
            let length = space.len();
            match guard.try_io(|socket| socket.get_ref().read(space)) {
                Ok(Ok(count)) => {
                    if 0 < count && count < length {
                        guard.clear_ready(); // the socket is empty, so the next read would be in vain
                    }
                    into.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_has_no_bytes) => {}
            }
        }
    }
}

impl AsyncWrite for LocalStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.poll_space(cx))?;
            match self.socket().write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.full = Some(registered(self.socket().try_clone()?, Interest::WRITABLE)?);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket().shutdown(Shutdown::Write))
    }
}
