//! Reads the lines of a file as payloads, in a thread that reads slightly ahead of the consumer.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    mem,
    os::fd::AsFd,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use indicatif::ProgressBar;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use tokio::sync::mpsc;

use crate::{
    closed,
    error::{Error, Result},
    progress,
    text::Text,
};

/// The maximum number of lines in a chunk. A chunk becomes one statement and one commit, and this
/// number of lines fills all batches of a statement.
const CHUNK_LINES: usize = 8 * 1024;
/// The maximum number of bytes in a chunk. The last line may exceed it.
const CHUNK_BYTES: usize = 768 << 10;
/// The number of chunks that the thread reads ahead.
const AHEAD: usize = 2;
/// The time that the program waits for more input before it enqueues the lines that it already has.
/// So even a single line is enqueued promptly.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
/// The time after which a thread without input checks whether it should stop.
const CHECK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The chunks of a file, in order.
pub struct Lines {
    chunks: mpsc::Receiver<Result<Vec<Text>>>,
    pub bar: ProgressBar,
    /// True if no other program can read the same lines again, as in a pipe.
    is_stream: bool,
    stop: Arc<AtomicBool>,
}

impl Lines {
    /// Opens a file, or standard input for `-`. No line may have more bytes than `longest`.
    pub fn open(path: &Path, longest: usize) -> Result<Self> {
        let failed = |cause: io::Error| Error::new(format!("cannot read {}: {cause}", path.display()));
        let opened = if path == Path::new("-") {
            closed::check_input()?;
            io::stdin().as_fd().try_clone_to_owned().map(File::from)
        } else {
            File::open(path)
        };
        let input = opened.map_err(failed)?;
        let found = input.metadata().map_err(failed)?;
        if found.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let length = Some(found.len()).filter(|_| found.is_file() && path != Path::new("-"));
        let bar = progress::bytes("enqueueing", length);
        bar.enable_steady_tick(progress::TICK);
        let (out, chunks) = mpsc::channel(AHEAD);
        let stop = Arc::new(AtomicBool::new(false));
        let reader = Reader::new(BufReader::with_capacity(256 << 10, input), longest, is_ready, stop.clone());
        let (seen, name) = (bar.clone(), path.display().to_string());
        thread::spawn(move || read(reader, &name, &seen, &out));
        Ok(Self { chunks, bar, is_stream: !found.is_file(), stop })
    }

    /// Returns the next lines, without their line breaks, or `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Vec<Text>>> {
        self.chunks.recv().await
    }

    /// Stops reading. Returns the lines that were read from a stream and not returned by
    /// [`Lines::next`]. They are no longer in the stream, and its writer may count them as
    /// delivered. A line whose end was not read is not among them.
    pub async fn read_ahead(&mut self) -> Vec<Text> {
        let mut lines = Vec::new();
        if self.is_stream {
            self.stop.store(true, Ordering::Release);
            while let Some(chunk) = self.chunks.recv().await {
                lines.extend(chunk.into_iter().flatten());
            }
        }
        lines
    }

    pub fn is_stream(&self) -> bool {
        self.is_stream
    }
}

/// Returns true if a read would not block, at the latest after the given time.
fn is_ready(input: &File, limit: &Timespec) -> bool {
    // After an error of the poll itself, the read reports what is wrong.
    !matches!(poll(&mut [PollFd::new(input, PollFlags::IN)], Some(limit)), Ok(0) | Err(Errno::INTR))
}

fn read<R: Read>(mut reader: Reader<R>, name: &str, bar: &ProgressBar, out: &mpsc::Sender<Result<Vec<Text>>>) {
    loop {
        let chunk = reader.chunk(bar).map_err(|cause| match cause.kind() {
            io::ErrorKind::FileTooLarge => {
                Error::new(format!("line {} of {name} is longer than a message can be", reader.number))
                    .hint("the maximum size of a payload is 64 MiB")
            }
            _ => Error::new(format!("cannot read {name} after line {}: {cause}", reader.number)),
        });
        let is_last = !matches!(&chunk, Ok(lines) if !lines.is_empty());
        // Ends if the input has ended, or if the consumer is gone.
        if matches!(&chunk, Ok(lines) if lines.is_empty()) || out.blocking_send(chunk).is_err() || is_last {
            return;
        }
    }
}

struct Reader<R> {
    input: BufReader<R>,
    longest: usize,
    /// Waits until a read would not block, at most for a time. Returns false after that time.
    is_ready: fn(&R, &Timespec) -> bool,
    stop: Arc<AtomicBool>,
    /// The bytes of a line whose end was not available.
    partial: Vec<u8>,
    /// The number of the last line that was read.
    number: u64,
    /// The error after the lines of the previous chunk.
    failed: Option<io::Error>,
}

impl<R: Read> Reader<R> {
    fn new(input: BufReader<R>, longest: usize, is_ready: fn(&R, &Timespec) -> bool, stop: Arc<AtomicBool>) -> Self {
        Self { input, longest, is_ready, stop, partial: Vec::new(), number: 0, failed: None }
    }

    /// Reads the next lines. Returns an empty list at the end. The lines before an error are
    /// returned before it.
    fn chunk(&mut self, bar: &ProgressBar) -> io::Result<Vec<Text>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let (mut lines, mut bytes) = (Vec::new(), 0);
        while lines.len() < CHUNK_LINES && bytes < CHUNK_BYTES {
            match self.line(lines.is_empty()) {
                Ok(None) => break,
                Ok(Some((line, read))) => {
                    bytes += read;
                    lines.push(line);
                }
                Err(error) if lines.is_empty() => return Err(error),
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        bar.inc(bytes as u64);
        Ok(lines)
    }

    /// Reads a line. Returns it without its line break, and the number of bytes that were read.
    /// Returns `None` at the end, or if no whole line is available and the caller does not wait.
    fn line(&mut self, waits: bool) -> io::Result<Option<(Text, usize)>> {
        loop {
            if self.input.buffer().is_empty() && !self.has_input(waits) {
                return Ok(None);
            }
            let available = match self.input.fill_buf() {
                Ok(buffer) => buffer.len(),
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
                Err(cause) => return Err(cause),
            };
            let left = (self.longest + 1).saturating_sub(self.partial.len());
            // Reads only what is in the buffer, because a read could block.
            self.input.by_ref().take(left.min(available) as u64).read_until(b'\n', &mut self.partial)?;
            let (has_break, read) = (self.partial.last() == Some(&b'\n'), self.partial.len());
            if available > 0 && !has_break && read <= self.longest {
                continue;
            }
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if !has_break && read > self.longest {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            let mut line = mem::take(&mut self.partial);
            line.truncate(read - usize::from(has_break));
            return Ok(Some((Text(line), read)));
        }
    }

    /// Returns true if a read would not block. Waits for that if `waits`, until the reader should
    /// stop.
    fn has_input(&self, waits: bool) -> bool {
        let limit = if waits { CHECK } else { PATIENCE };
        while !self.stop.load(Ordering::Acquire) {
            if (self.is_ready)(self.input.get_ref(), &limit) {
                return true;
            }
            if !waits {
                return false;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(input: &[u8], is_ready: fn(&&[u8], &Timespec) -> bool) -> Reader<&[u8]> {
        Reader::new(BufReader::with_capacity(8, input), 9, is_ready, Arc::default())
    }

    #[test]
    fn a_line_is_all_but_its_line_break() {
        let mut reader = reader(b"one\r\n\n\xfftwo", |_, _| true);
        let lines = reader.chunk(&ProgressBar::hidden()).expect("a slice can be read");
        assert_eq!(lines, [Text(b"one\r".into()), Text(Vec::new()), Text(b"\xfftwo".into())]);
        assert_eq!(reader.number, 3);
    }

    #[test]
    fn lines_do_not_wait_for_others_that_may_never_come() {
        let mut reader = reader(b"one\ntwo\nthree\n", |_, limit| limit.tv_nsec == CHECK.tv_nsec);
        let mut chunk = || reader.chunk(&ProgressBar::hidden()).expect("a slice can be read").len();
        assert_eq!([chunk(), chunk(), chunk()], [2, 1, 0]);
    }

    #[test]
    fn reader_that_should_stop_returns_the_whole_lines_that_it_has() {
        let mut reader = reader(b"1\n2\n3\n45\n6\n", |_, limit| limit.tv_nsec == CHECK.tv_nsec);
        assert_eq!(reader.line(true).expect("readable"), Some((Text(b"1".into()), 2)));
        reader.stop.store(true, Ordering::Release);
        let mut chunk = || reader.chunk(&ProgressBar::hidden()).expect("a slice can be read");
        assert_eq!(chunk(), [Text(b"2".into()), Text(b"3".into())]);
        assert_eq!((chunk().len(), reader.partial.as_slice()), (0, &b"45"[..]));
    }

    #[test]
    fn a_line_that_is_too_long_is_named() {
        let mut reader = reader(b"one\n0123456789\n", |_, _| true);
        let before = reader.chunk(&ProgressBar::hidden()).expect("the line before it can be read");
        assert_eq!(before, [Text(b"one".into())]);
        let error = reader.chunk(&ProgressBar::hidden()).expect_err("it is too long");
        assert!(error.kind() == io::ErrorKind::FileTooLarge && reader.number == 2);
    }
}
