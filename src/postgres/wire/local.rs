//! A Unix socket that wakes its task only for what the task waits for.

use std::{
    io::{self, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf, unix::AsyncFd},
    runtime::Handle,
};

/// A Unix socket that is registered for reads, and for writes only while one waits for space.
///
/// Tokio registers its own `UnixStream` for both. Linux reports a Unix socket as writable whenever
/// the peer has read from it (`unix_write_space` in `net/unix/af_unix.c`), so that each statement
/// would wake the client's thread in vain while the server begins to work. A TCP socket is only
/// reported after a write has failed for lack of space.
#[derive(Debug)]
pub(crate) struct LocalStream {
    socket: AsyncFd<Arc<UnixStream>>,
    /// A second descriptor of the socket, because a descriptor can be registered only once.
    second: Arc<UnixStream>,
    /// The registration of the second descriptor for writes, while the socket has no space.
    full: Option<AsyncFd<Arc<UnixStream>>>,
    /// The runtime that reports events. The stream may be polled outside of it.
    runtime: Handle,
}

impl LocalStream {
    pub fn of(socket: tokio::net::UnixStream) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let socket = Arc::new(socket.into_std()?);
        let second = Arc::new(socket.try_clone()?);
        Ok(Self { socket: registered(socket, Interest::READABLE)?, second, full: None, runtime })
    }

    /// Returns the second descriptor, with which a caller may write.
    pub fn second(&self) -> &Arc<UnixStream> {
        &self.second
    }

    fn wait_for_space(&mut self) -> io::Result<()> {
        let _entered = self.runtime.enter();
        self.full = Some(registered(self.second.clone(), Interest::WRITABLE)?);
        Ok(())
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
fn registered(socket: Arc<UnixStream>, interest: Interest) -> io::Result<AsyncFd<Arc<UnixStream>>> {
    AsyncFd::with_interest(socket, interest)
}

impl AsyncRead for LocalStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.socket.poll_read_ready(cx))?;
            let space = into.initialize_unfilled();
            let length = space.len();
            match guard.try_io(|socket| socket.get_ref().as_ref().read(space)) {
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
            match self.second.as_ref().write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_for_space()?;
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
        Poll::Ready(self.second.shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::LocalStream;

    #[tokio::test]
    async fn a_write_waits_until_the_peer_has_read_and_the_end_is_seen() {
        const LENGTH: usize = 4 << 20; // more than a socket holds
        let (ours, theirs) = tokio::net::UnixStream::pair().expect("a pair");
        let (mut ours, mut theirs) =
            (LocalStream::of(ours).expect("registered"), LocalStream::of(theirs).expect("registered"));
        let bytes: Vec<u8> = (0..LENGTH).map(|at| (at % 251) as u8).collect();
        let (mut received, mut answer) = (Vec::new(), Vec::new());
        let send = async {
            ours.write_all(&bytes).await.expect("written");
            assert!(ours.full.is_none(), "the registration for writes ends with the lack of space");
            ours.shutdown().await.expect("shut down");
            ours.read_to_end(&mut answer).await.expect("read");
        };
        let receive = async {
            theirs.read_to_end(&mut received).await.expect("read");
            theirs.write_all(b"end").await.expect("written");
            drop(theirs);
        };
        tokio::join!(send, receive);
        assert!(received == bytes, "{} of {LENGTH} bytes arrived, or others", received.len());
        assert_eq!(answer, b"end");
    }

    #[test]
    fn a_write_may_wait_in_another_runtime() {
        const LENGTH: usize = 4 << 20;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (mut ours, mut theirs) = runtime.block_on(async {
            let (ours, theirs) = tokio::net::UnixStream::pair().expect("a pair");
            (LocalStream::of(ours).expect("registered"), theirs)
        });
        let reading = runtime.spawn(async move {
            let mut received = Vec::new();
            theirs.read_to_end(&mut received).await.map(|_| received.len())
        });
        let other = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without sockets");
        other.block_on(async {
            ours.write_all(&vec![7; LENGTH]).await.expect("written");
            ours.shutdown().await.expect("shut down");
        });
        let received = runtime.block_on(reading).expect("no panic").expect("read");
        assert_eq!(received, LENGTH);
    }

    #[tokio::test]
    async fn a_write_to_a_peer_that_is_gone_fails() {
        let (ours, theirs) = tokio::net::UnixStream::pair().expect("a pair");
        let mut ours = LocalStream::of(ours).expect("registered");
        drop(theirs);
        let error = ours.write_all(b"x").await.expect_err("a broken pipe");
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    }
}
