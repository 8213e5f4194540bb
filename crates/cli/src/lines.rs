//! Reads the lines of a file as payloads, in a thread that reads slightly ahead of the consumer.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    thread,
};

use indicatif::ProgressBar;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
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

/// The chunks of a file, in order.
pub struct Lines {
    chunks: mpsc::Receiver<Result<Vec<Text>>>,
    pub bar: ProgressBar,
}

impl Lines {
    /// Opens a file, or standard input for `-`. No line may have more bytes than `longest`.
    pub fn open(path: &Path, longest: usize) -> Result<Self> {
        let failed = |cause: &io::Error| Error::new(format!("cannot read {}: {cause}", path.display()));
        let (input, length, is_idle): (Box<dyn Read + Send>, _, fn() -> bool) = if path == Path::new("-") {
            closed::check_input()?;
            (Box::new(io::stdin()), None, is_stdin_idle)
        } else {
            let file = File::open(path).map_err(|cause| failed(&cause))?;
            let found = file.metadata().map_err(|cause| failed(&cause))?;
            if found.is_dir() {
                return Err(failed(&io::ErrorKind::IsADirectory.into()));
            }
            (Box::new(file), Some(found.len()).filter(|_| found.is_file()), || false)
        };
        let bar = progress::bytes("enqueueing", length);
        bar.enable_steady_tick(progress::TICK);
        let (out, chunks) = mpsc::channel(AHEAD);
        let reader =
            Reader { input: BufReader::with_capacity(256 << 10, input), longest, is_idle, number: 0, failed: None };
        let (seen, name) = (bar.clone(), path.display().to_string());
        thread::spawn(move || read(reader, &name, &seen, &out));
        Ok(Self { chunks, bar })
    }

    /// Returns the next lines, without their line breaks, or `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Vec<Text>>> {
        self.chunks.recv().await
    }
}

/// Returns true if standard input is idle for [`PATIENCE`]. The check is reliable because reads of
/// this size bypass Rust's buffer.
fn is_stdin_idle() -> bool {
    let stdin = io::stdin();
    !matches!(poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&PATIENCE)), Ok(1..))
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
    /// True if no more input is available for now.
    is_idle: fn() -> bool,
    /// The number of the last line that was read.
    number: u64,
    /// The error after the lines of the previous chunk.
    failed: Option<io::Error>,
}

impl<R: Read> Reader<R> {
    /// Reads the next lines. Returns an empty list at the end. The lines before an error are
    /// returned before it.
    fn chunk(&mut self, bar: &ProgressBar) -> io::Result<Vec<Text>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let (mut lines, mut bytes) = (Vec::new(), 0);
        while lines.len() < CHUNK_LINES && bytes < CHUNK_BYTES {
            if !lines.is_empty() && self.input.buffer().is_empty() && (self.is_idle)() {
                break;
            }
            match self.line() {
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
    fn line(&mut self) -> io::Result<Option<(Text, usize)>> {
        let mut line = Vec::new();
        let read = self.input.by_ref().take(self.longest as u64 + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if read > self.longest {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(Some((Text(line), read)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(input: &[u8], is_idle: fn() -> bool) -> Reader<&[u8]> {
        Reader { input: BufReader::with_capacity(8, input), longest: 9, is_idle, number: 0, failed: None }
    }

    #[test]
    fn a_line_is_all_but_its_line_break() {
        let mut reader = reader(b"one\r\n\n\xfftwo", || false);
        let lines = reader.chunk(&ProgressBar::hidden()).expect("a slice can be read");
        assert_eq!(lines, [Text(b"one\r".into()), Text(Vec::new()), Text(b"\xfftwo".into())]);
        assert_eq!(reader.number, 3);
    }

    #[test]
    fn lines_do_not_wait_for_others_that_may_never_come() {
        let mut reader = reader(b"one\ntwo\nthree\n", || true);
        let mut chunk = || reader.chunk(&ProgressBar::hidden()).expect("a slice can be read").len();
        assert_eq!([chunk(), chunk(), chunk()], [2, 1, 0]);
    }

    #[test]
    fn a_line_that_is_too_long_is_named() {
        let mut reader = reader(b"one\n0123456789\n", || false);
        let before = reader.chunk(&ProgressBar::hidden()).expect("the line before it can be read");
        assert_eq!(before, [Text(b"one".into())]);
        let error = reader.chunk(&ProgressBar::hidden()).expect_err("it is too long");
        assert!(error.kind() == io::ErrorKind::FileTooLarge && reader.number == 2);
    }
}
