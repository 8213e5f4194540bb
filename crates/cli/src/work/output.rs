//! What commands print: written line by line by one thread, so that no line is torn and no slow
//! reader keeps leases from being renewed.

use std::{
    io::{self, Write},
    sync::Arc,
    thread,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::{mpsc, oneshot},
};
use tokio_util::sync::CancellationToken;

use super::{counts::Counts, lines::Lines};
use crate::error::Error;

/// Pieces of output that wait for the reader at most; then the commands wait.
const WAITING: usize = 64;
/// How long a reader that takes nothing is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(1);

/// Which of our outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

type Piece = (Stream, Vec<u8>);

/// The way to standard output and standard error.
#[derive(Debug, Clone)]
pub struct Output {
    pieces: mpsc::Sender<Piece>,
    closed: CancellationToken,
}

/// The thread that writes. At its end it says what kept it from writing to standard output.
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

    /// Returns when nothing can be written to standard output any more.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Says a line.
    pub async fn say(&self, stream: Stream, line: String) {
        let _ = self.pieces.send((stream, format!("{line}\n").into_bytes())).await; // the thread reads to the end
    }

    /// Another way to standard error, which never waits.
    pub fn aside(&self) -> Aside {
        Aside(self.pieces.downgrade())
    }

    /// Passes on what is read, line by line, to its end.
    pub async fn pass(
        self,
        stream: Stream,
        mut from: impl AsyncRead + Unpin,
        prefix: String,
        mut seen: impl FnMut(&[u8]),
    ) {
        let mut lines = Lines::new(prefix);
        let mut piece = vec![0; 8 << 10];
        while let Ok(read @ 1..) = from.read(&mut piece).await {
            seen(&piece[..read]);
            let whole = lines.add(&piece[..read]);
            if !whole.is_empty() {
                let _ = self.pieces.send((stream, whole)).await; // as above
            }
        }
        let _ = self.pieces.send((stream, lines.rest())).await;
    }
}

/// For lines that may be missed: while the program runs, and unless the buffer is so full that the
/// reader seems to be gone.
#[derive(Debug)]
pub struct Aside(mpsc::WeakSender<Piece>);

impl Aside {
    pub fn say(&self, line: &str) {
        if let Some(pieces) = self.0.upgrade() {
            let _ = pieces.try_send((Stream::Err, format!("{line}\n").into_bytes())); // as said above
        }
    }
}

impl Writing {
    /// Returns when all is written, once every other handle is dropped; a reader that does not read
    /// on is not waited for.
    ///
    /// # Errors
    /// What was printed could not be written. A reader that went away is no error: it wants no
    /// more.
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
            closed.cancel(); // what comes until the end is read all the same, so that no command waits
        }
    }
    failed
}
