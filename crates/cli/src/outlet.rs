//! Standard output, where a delivery ends. A message counts as delivered once the reader has read
//! it.

use std::{
    fs::File,
    io::{self, Write},
    os::{fd::AsFd, unix::fs::FileTypeExt},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::watch;

use crate::{
    closed::is_output_closed,
    error::{Error, Result},
};

/// The maximum size of a write to a pipe that the system does not split. So if a write of this size
/// blocks, no part of it has been written.
const PIECE: usize = 4096;
/// The usual capacity of a pipe.
pub const PIPE: u64 = 64 << 10;
/// The maximum wait after a signal for a reader that reads nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// The maximum wait after a signal for a reader that reads slowly.
const LONGEST: Duration = Duration::from_secs(10);
/// The minimum time between two acknowledgements of what a slow reader has read.
const BETWEEN: Duration = Duration::from_millis(100);

/// Lines to write.
#[derive(Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    /// Positions at which the bytes are split into pieces.
    ends: Vec<usize>,
}

impl Chunk {
    /// Adds a line. Returns the number of bytes in the chunk so far.
    pub fn line(&mut self, payload: &[u8]) -> u64 {
        let start = self.ends.last().copied().unwrap_or(0);
        let before = self.bytes.len();
        self.bytes.extend_from_slice(payload);
        self.bytes.push(b'\n');
        if before > start && self.bytes.len() - start > PIECE {
            self.ends.push(before);
        }
        self.bytes.len() as u64
    }
}

#[derive(Debug, Clone, Default)]
struct Progress {
    written: u64,
    failed: Option<(io::ErrorKind, String)>,
    ended: bool,
}

/// A writer that works in its own thread, so that a slow reader does not delay the rest of the
/// program.
pub struct Outlet {
    chunks: mpsc::Sender<Chunk>,
    sent: u64,
    progress: watch::Receiver<Progress>,
    stop: Arc<AtomicBool>,
    out: Arc<File>,
    is_pipe: bool,
}

impl Outlet {
    pub fn stdout() -> Result<Self> {
        let out = io::stdout().as_fd().try_clone_to_owned().map_err(|cause| Error::output(&cause))?;
        let out = Arc::new(File::from(out));
        if is_output_closed() {
            let why =
                "standard output is closed, or is /dev/null opened for reading and writing: no message was dequeued";
            return Err(Error::new(why).hint("to discard messages, open it for writing alone, as >/dev/null does"));
        }
        // If the system does not report how much a pipe contains, written bytes count as read.
        let is_pipe =
            out.metadata().is_ok_and(|found| found.file_type().is_fifo()) && rustix::io::ioctl_fionread(&*out).is_ok();
        let (chunks, to_write) = mpsc::channel();
        let (at, progress) = watch::channel(Progress::default());
        let stop = Arc::new(AtomicBool::new(false));
        let (file, stopped) = (out.clone(), stop.clone());
        thread::spawn(move || write(&file, &to_write, &stopped, &at));
        Ok(Self { chunks, sent: 0, progress, stop, out, is_pipe })
    }

    /// Returns the number of bytes sent to the thread so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub fn send(&mut self, chunk: Chunk) {
        self.sent += chunk.bytes.len() as u64;
        let _ = self.chunks.send(chunk); // if the thread has failed, `written` reports it
    }

    /// Waits until everything that was sent is written or can no longer be written.
    pub async fn written(&mut self) -> Result<()> {
        let sent = self.sent;
        let at = self.progress.wait_for(|at| at.written >= sent || at.ended).await;
        match at.map(|at| at.failed.clone()) {
            Ok(None) => Ok(()),
            Ok(Some((kind, text))) => Err(Error::output(&io::Error::new(kind, text))),
            Err(_) => Err(Error::new("a bug: the thread that writes has ended")),
        }
    }

    /// Returns the number of bytes that the reader has read: all written bytes except those still
    /// in the pipe.
    pub fn taken(&self) -> u64 {
        let written = self.progress.borrow().written;
        if !self.is_pipe {
            return written;
        }
        written.saturating_sub(rustix::io::ioctl_fionread(&*self.out).unwrap_or(PIPE))
    }

    /// Returns the number of bytes that the reader has not read yet.
    pub fn unread(&self) -> u64 {
        self.progress.borrow().written.saturating_sub(self.taken())
    }

    /// Returns the number of bytes that can be written without blocking.
    pub fn room(&self) -> u64 {
        if self.is_pipe { PIPE.saturating_sub(self.unread()) } else { u64::MAX }
    }

    /// Returns true if the reader is gone.
    pub fn is_closed(&self) -> bool {
        let mut asked = [PollFd::new(&*self.out, PollFlags::empty())];
        let found = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        found.is_ok() && asked[0].revents().intersects(PollFlags::ERR | PollFlags::NVAL)
    }

    /// Stops writing, and gives the reader a moment to read what was written. Returns the number of
    /// bytes that count as delivered: the bytes that the reader has read. If the reader still
    /// exists and reads no more, all written bytes count if `counts_unread`, because the reader can
    /// read them later.
    pub async fn end(&mut self, counts_unread: bool) -> u64 {
        self.stop.store(true, Ordering::Release);
        // Wakes the thread if it waits for a chunk. A blocked write cannot be woken, so the wait
        // below has a limit.
        let _ = self.chunks.send(Chunk::default());
        let ended = self.progress.wait_for(|at| at.ended);
        let _ = tokio::time::timeout(Duration::from_millis(50), ended).await;
        let all_count = counts_unread && !self.is_drained().await;
        if all_count { self.progress.borrow().written } else { self.taken() }
    }

    /// Waits until the reader has read something. Returns true once the reader has read everything
    /// that was written, or is gone.
    pub async fn some_read(&self) -> bool {
        let (seen, since, mut pause) = (self.taken(), Instant::now(), Duration::from_micros(200));
        loop {
            let (written, taken) = (self.progress.borrow().written, self.taken());
            let is_all = taken == written || self.is_closed();
            if is_all || taken != seen && since.elapsed() >= BETWEEN {
                return is_all;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Waits for the reader as long as it reads. Returns true once it has read everything or has
    /// gone away.
    async fn is_drained(&self) -> bool {
        let since = Instant::now();
        while since.elapsed() < LONGEST {
            match tokio::time::timeout(PATIENCE, self.some_read()).await {
                Ok(true) => return true,
                Ok(false) => {} // the reader has read a part, so the wait continues
                Err(_) => return false,
            }
        }
        false
    }
}

fn write(mut out: &File, chunks: &mpsc::Receiver<Chunk>, stop: &AtomicBool, at: &watch::Sender<Progress>) {
    let mut failed = None;
    'chunks: for mut chunk in chunks {
        chunk.ends.push(chunk.bytes.len());
        let mut start = 0;
        for end in chunk.ends {
            if stop.load(Ordering::Acquire) {
                break 'chunks;
            }
            if let Err(cause) = out.write_all(&chunk.bytes[start..end]) {
                failed = Some((cause.kind(), cause.to_string()));
                break 'chunks;
            }
            at.send_modify(|at| at.written += (end - start) as u64);
            start = end;
        }
    }
    at.send_modify(|at| {
        at.ended = true;
        at.failed = failed;
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_lines() {
        let mut chunk = Chunk::default();
        for line in [3000, 1000, 200, 9000, 1] {
            chunk.line(&vec![b'x'; line]);
        }
        assert_eq!(chunk.ends, [4002, 4203, 13_204]);
    }
}
