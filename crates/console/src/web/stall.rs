//! A stream that fails if the client reads nothing for too long. Otherwise a slow client could
//! occupy a connection indefinitely.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

/// A stream whose writes fail if they make no progress for `patience`.
#[derive(Debug)]
pub struct Stall<S> {
    stream: S,
    patience: Duration,
    /// The timer, which runs while a write is blocked.
    waits: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<S> Stall<S> {
    pub fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, waits: Box::pin(sleep(patience)), is_waiting: false }
    }

    fn watched<V>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<V>>) -> Poll<io::Result<V>> {
        if outcome.is_ready() {
            self.is_waiting = false;
            return outcome;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.waits.as_mut().reset(Instant::now() + self.patience);
        }
        ready!(self.waits.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stall<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stall<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.watched(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watched(context, outcome)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn stalled_reader_is_left_and_slow_reader_is_not() {
        let (here, mut there) = tokio::io::duplex(8);
        let mut stall = Stall::new(here, Duration::from_secs(10));
        let read = tokio::spawn(async move {
            let mut one = [0];
            for _ in 0..8 {
                tokio::time::sleep(Duration::from_secs(9)).await;
                tokio::io::AsyncReadExt::read_exact(&mut there, &mut one).await.expect("read");
            }
            there // keeps the stream open but reads no more
        });
        stall.write_all(&[0; 16]).await.expect("72 seconds, and never ten without a byte");
        let refused = stall.write_all(&[0; 16]).await.expect_err("the reader is gone");
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        drop(read);
    }
}
