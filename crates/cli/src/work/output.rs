//! Writes the commands' output line by line from one thread. So lines are not mixed, and a slow
//! reader does not block the renewal of leases.

use std::{
    io::{self, Write},
    sync::Arc,
    thread,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::{mpsc, oneshot},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::{counts::Counts, ending::LEFTOVERS, lines::OutputLines};
use crate::error::Error;

/// The maximum number of pieces of output that wait for the reader. Once it is reached, the
/// commands wait.
const WAITING: usize = 64;
/// The maximum number of bytes that a pipe keeps for its reader.
const PIPE: usize = 64 << 10;
/// The maximum time to wait at the end for a reader that reads nothing.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

type Piece = (Stream, Vec<u8>);

/// A handle to standard output and standard error.
#[derive(Debug, Clone)]
pub struct Output {
    pieces: mpsc::Sender<Piece>,
    closed: CancellationToken,
}

/// A handle to the writing thread. When the thread ends, it reports whether writing to standard
/// output failed.
#[derive(Debug)]
pub struct Writing(oneshot::Receiver<Option<io::Error>>);

impl Output {
    pub fn start(counts: Arc<Counts>) -> (Self, Writing) {
        let (pieces, to_write) = mpsc::channel(WAITING);
        let (ended, writing) = oneshot::channel();
        let closed = CancellationToken::new();
        let noted = closed.clone();
        thread::spawn(move || {
            let failed = write(to_write, &counts, &noted);
            let _ = ended.send(failed); // the caller may be gone
        });
        (Self { pieces, closed }, Writing(writing))
    }

    /// Waits until writing to standard output fails.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Writes a line.
    pub async fn say(&self, stream: Stream, line: String) {
        let _ = self.pieces.send((stream, format!("{line}\n").into_bytes())).await; // cannot fail, because the thread reads until all senders are gone
    }

    /// Returns a handle for writing lines to standard error without blocking.
    pub fn aside(&self) -> Aside {
        Aside(self.pieces.downgrade())
    }

    /// Forwards a stream line by line until it ends. Once `ended` is cancelled, only reads what is
    /// in the pipe, because a process that has left the command's group may keep the pipe open.
    pub async fn pass(
        self,
        (stream, ended): (Stream, CancellationToken),
        mut from: impl AsyncRead + Unpin,
        prefix: String,
        mut seen: impl FnMut(&[u8]),
    ) {
        let mut lines = OutputLines::new(prefix);
        let (mut piece, mut left) = (vec![0; 8 << 10], PIPE);
        loop {
            let read = tokio::select! {
                biased;
                read = from.read(&mut piece) => read,
                () = async { ended.cancelled().await; sleep(LEFTOVERS).await } => break,
            };
            let Ok(read @ 1..) = read else { break };
            if ended.is_cancelled() {
                left = left.saturating_sub(read);
            }
            seen(&piece[..read]);
            let whole = lines.add(&piece[..read]);
            if !whole.is_empty() {
                let _ = self.pieces.send((stream, whole)).await; // cannot fail, as above
            }
            if left == 0 {
                break;
            }
        }
        let _ = self.pieces.send((stream, lines.rest())).await;
    }
}

/// A handle for lines that may be dropped: at the end of the program, and while the buffer is full.
#[derive(Debug)]
pub struct Aside(mpsc::WeakSender<Piece>);

impl Aside {
    pub fn say(&self, line: &str) {
        if let Some(pieces) = self.0.upgrade() {
            let _ = pieces.try_send((Stream::Err, format!("{line}\n").into_bytes())); // losing a line does no harm
        }
    }
}

impl Writing {
    /// Waits until everything is written, once all other handles are dropped. Does not wait for a
    /// stuck reader.
    ///
    /// # Errors
    /// If the output could not be written. If the reader is gone, that is not an error.
    pub async fn end(self) -> Result<(), Error> {
        match tokio::time::timeout(PATIENCE, self.0).await {
            Ok(Ok(Some(cause))) if cause.kind() != io::ErrorKind::BrokenPipe => Err(Error::output(&cause)),
            _ => Ok(()),
        }
    }
}

fn write(mut pieces: mpsc::Receiver<Piece>, counts: &Counts, closed: &CancellationToken) -> Option<io::Error> {
    let mut failed = None;
    while let Some((stream, lines)) = pieces.blocking_recv() {
        let written = counts.beside_progress(|| match stream {
            Stream::Out => io::stdout().write_all(&lines).and_then(|()| io::stdout().flush()),
            Stream::Err => io::stderr().write_all(&lines),
        });
        if let (Err(cause), Stream::Out) = (written, stream) {
            failed.get_or_insert(cause);
            closed.cancel(); // the loop still reads to the end, so that no command blocks
        }
    }
    failed
}
