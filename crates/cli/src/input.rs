//! Reads whole files, or all of standard input, as payloads.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    os::unix::ffi::OsStringExt,
    path::Path,
};

use trunkline::MAX_PAYLOAD;

use crate::{
    closed,
    error::{Error, Result},
    text::Text,
};

/// The argument that means standard input.
const STDIN: &str = "-";

/// Returns the payloads that the arguments name. `-` stands for all of standard input, and only one
/// argument may be `-`.
pub async fn arguments(payloads: Vec<OsString>) -> Result<Vec<Text>> {
    if payloads.iter().filter(|payload| *payload == STDIN).count() > 1 {
        return Err(only_once());
    }
    let read = move |payload: OsString| match payload == STDIN {
        true => whole(Path::new(STDIN)),
        false => Ok(Text(payload.into_vec())),
    };
    crate::blocking(move || payloads.into_iter().map(read).collect()).await
}

/// Reads each file as one payload, unchanged.
pub async fn files<P: AsRef<Path> + Send + 'static>(paths: Vec<P>) -> Result<Vec<Text>> {
    if paths.iter().filter(|path| path.as_ref().as_os_str() == OsStr::new(STDIN)).count() > 1 {
        return Err(only_once());
    }
    crate::blocking(move || paths.iter().map(|path| whole(path.as_ref())).collect()).await
}

fn only_once() -> Error {
    Error::usage("standard input is named twice, and can be read only once")
}

fn whole(path: &Path) -> Result<Text> {
    let name = if path == Path::new(STDIN) { "standard input".to_owned() } else { path.display().to_string() };
    let bytes = match path == Path::new(STDIN) {
        true => {
            closed::check_input()?;
            bounded(io::stdin().lock(), MAX_PAYLOAD)
        }
        false => File::open(path).and_then(|file| bounded(file, MAX_PAYLOAD)),
    };
    match bytes.map_err(|cause| Error::new(format!("cannot read {name}: {cause}")))? {
        Some(bytes) => Ok(Text(bytes)),
        None => Err(Error::new(format!("{name} is longer than a message can be"))
            .hint("a payload is at most 64 MiB; --lines makes a message of each line")),
    }
}

/// Reads to the end. Returns `None` if the input has more than `most` bytes.
fn bounded(from: impl Read, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    from.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() <= most))
}

#[cfg(test)]
mod tests {
    use super::bounded;

    #[test]
    fn an_input_is_whole_or_none() {
        let read = |most| bounded(&b"a\n\xff"[..], most).expect("a slice can be read");
        assert_eq!((read(2), read(3)), (None, Some(b"a\n\xff".to_vec())));
    }
}
