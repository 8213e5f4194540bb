//! Lines of a file as payloads, read by a thread that is a little ahead of whoever takes them.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    thread,
};

use indicatif::ProgressBar;
use tokio::sync::mpsc;
use trunkline::MAX_PAYLOAD;

use crate::{
    error::{Error, Result},
    progress,
    text::Text,
};

/// What makes one statement and one commit: as many full batches as a statement has, or as many bytes.
const CHUNK_LINES: usize = 8 * 1024;
const CHUNK_BYTES: usize = 768 << 10;
/// Chunks that are read ahead.
const AHEAD: usize = 2;

/// The chunks of a file, in order.
pub struct Lines {
    chunks: mpsc::Receiver<Result<Vec<Text>>>,
    pub bar: ProgressBar,
}

impl Lines {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |cause: &io::Error| Error::new(format!("cannot read {}: {cause}", path.display()));
        let (input, length): (Box<dyn Read + Send>, _) = if path == Path::new("-") {
            (Box::new(io::stdin()), None)
        } else {
            let file = File::open(path).map_err(|cause| failed(&cause))?;
            let found = file.metadata().map_err(|cause| failed(&cause))?;
            if found.is_dir() {
                return Err(failed(&io::ErrorKind::IsADirectory.into()));
            }
            (Box::new(file), Some(found.len()).filter(|_| found.is_file()))
        };
        let bar = progress::bytes("enqueueing", length);
        bar.enable_steady_tick(progress::TICK);
        let (out, chunks) = mpsc::channel(AHEAD);
        let (reader, seen, name) =
            (BufReader::with_capacity(256 << 10, input), bar.clone(), path.display().to_string());
        thread::spawn(move || read(reader, &name, &seen, &out));
        Ok(Self { chunks, bar })
    }

    /// The next lines, without their line breaks; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Vec<Text>>> {
        self.chunks.recv().await
    }
}

fn read(mut input: impl BufRead, name: &str, bar: &ProgressBar, out: &mpsc::Sender<Result<Vec<Text>>>) {
    let mut number = 0;
    loop {
        let chunk = chunk(&mut input, &mut number, bar).map_err(|cause| match cause.kind() {
            io::ErrorKind::FileTooLarge => {
                Error::new(format!("line {number} of {name} is longer than a payload can be"))
                    .hint("a payload has at most 64 MiB")
            }
            _ => Error::new(format!("cannot read {name} after line {number}: {cause}")),
        });
        let is_last = !matches!(&chunk, Ok(lines) if !lines.is_empty());
        // The end, or nobody takes any more.
        if matches!(&chunk, Ok(lines) if lines.is_empty()) || out.blocking_send(chunk).is_err() || is_last {
            return;
        }
    }
}

fn chunk(input: &mut impl BufRead, number: &mut u64, bar: &ProgressBar) -> io::Result<Vec<Text>> {
    let (mut lines, mut bytes) = (Vec::new(), 0);
    while lines.len() < CHUNK_LINES && bytes < CHUNK_BYTES {
        let mut line = Vec::new();
        let read = input.by_ref().take(MAX_PAYLOAD as u64 + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        *number += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if read > MAX_PAYLOAD {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        bytes += read;
        lines.push(Text(line));
    }
    bar.inc(bytes as u64);
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_all_but_its_line_break() {
        let (mut input, mut number) = (&b"one\r\n\n\xfftwo"[..], 0);
        let lines = chunk(&mut input, &mut number, &ProgressBar::hidden()).expect("a slice can be read");
        assert_eq!(lines, [Text(b"one\r".into()), Text(Vec::new()), Text(b"\xfftwo".into())]);
        assert_eq!(number, 3);
    }
}
