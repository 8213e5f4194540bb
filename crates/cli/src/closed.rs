//! Detects a standard input or output that the program was started without.
//!
//! Rust then opens `/dev/null` instead, for reading and writing. A shell opens it for only one of
//! them, but some languages open it for both when they discard a program's output.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::fd::AsFd,
    os::unix::fs::MetadataExt,
};

use crate::error::{Error, Result};

/// Fails if standard input was closed when the program started. Otherwise the program would read
/// `/dev/null`, and report success for an empty input.
pub fn check_input() -> Result<()> {
    match opened(&io::stdin()).is_ok_and(|input| is_null(&input) && (&input).write(&[0]).is_ok()) {
        true => Err(Error::new("standard input is closed, or is /dev/null opened for reading and writing")
            .hint("for an empty input, open it for reading alone, as </dev/null does")),
        false => Ok(()),
    }
}

/// Returns true if the program was started without a standard output.
pub fn is_output_closed() -> bool {
    opened(&io::stdout()).is_ok_and(|output| is_null(&output) && (&output).read(&mut [0]).is_ok())
}

fn opened(stream: &impl AsFd) -> io::Result<File> {
    stream.as_fd().try_clone_to_owned().map(File::from)
}

fn is_null(file: &File) -> bool {
    let device = |found: io::Result<fs::Metadata>| found.map(|found| found.rdev()).ok();
    device(file.metadata()) == device(fs::metadata("/dev/null"))
}
