//! Handles bad lines: lines that are not messages of the queue. The first bad line ends the verb,
//! or all bad lines are skipped or saved in a file.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::{
    error::{Error, Result},
    print::{self, thousands},
    text::Text,
};

/// The maximum number of bad lines that are reported individually. Further bad lines are only
/// counted.
const SAID: u64 = 10;

/// The treatment of bad lines that the user chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Fail,
    Skip,
    Aside(PathBuf),
}

impl FromStr for Fate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("expected fail, skip or the name of a file".to_owned()),
            "fail" => Ok(Self::Fail),
            "skip" => Ok(Self::Skip),
            path => Ok(Self::Aside(path.into())),
        }
    }
}

/// The bad lines so far.
#[derive(Debug)]
pub struct BadLines {
    fate: Fate,
    aside: Option<File>,
    count: u64,
    /// The number of the next lines that may be enqueued, because the server's answer is lost.
    pub unknown: usize,
}

impl BadLines {
    /// Opens the file for bad lines, if the user named one, for appending.
    pub fn new(fate: &Fate, lines: &Path) -> Result<Self> {
        let aside = match fate {
            Fate::Fail | Fate::Skip => None,
            Fate::Aside(path) => Some(open(path, lines)?),
        };
        Ok(Self { fate: fate.clone(), aside, count: 0, unknown: 0 })
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Handles a bad line, whose defect is `why`. An error ends the verb.
    pub fn met(&mut self, number: u64, line: &Text, why: &str) -> Result<()> {
        let why = format!("line {}: {why}", thousands(number));
        if self.fate == Fate::Fail {
            return Err(Error::new(why).hint("--bad-lines skip skips such lines, --bad-lines FILE saves them"));
        }
        if let (Some(file), Fate::Aside(path)) = (&mut self.aside, &self.fate) {
            let written = file.write_all(&[line.0.as_slice(), b"\n"].concat());
            written.map_err(|cause| {
                Error::new(format!("{why}; and the line cannot be written to {}: {cause}", path.display()))
            })?;
        }
        self.count += 1;
        match self.count {
            ..=SAID => print::note(format!("bad line {}", why.trim_start_matches("line "))),
            _ if self.count == SAID + 1 => print::note("… and more, which are only counted"),
            _ => {}
        }
        Ok(())
    }

    /// Saves lines that were read from a stream and not enqueued, because the command ends early.
    /// Their order stays. The first of them are those whose outcome is unknown. Returns a sentence
    /// about them, if there are any.
    pub fn keep(&mut self, unsent: &[Text]) -> Option<String> {
        let (count, unknown) = (unsent.len(), self.unknown.min(unsent.len()));
        let outcome = if unknown > 0 { "confirmed" } else { "enqueued" };
        let lines = match count {
            0 => return None,
            1 => format!("one line was read from the stream and not {outcome}"),
            _ => format!("{} lines were read from the stream and not {outcome}", thousands(count as u64)),
        };
        let doubt = match unknown {
            0 => String::new(),
            1 if count == 1 => "; it may already be enqueued".to_owned(),
            1 => "; the first of them may already be enqueued".to_owned(),
            _ if unknown == count => "; all of them may already be enqueued".to_owned(),
            _ => format!("; the first {} of them may already be enqueued", thousands(unknown as u64)),
        };
        let (Some(file), Fate::Aside(path)) = (&mut self.aside, &self.fate) else {
            return Some(format!("{lines}: --bad-lines FILE saves such lines{doubt}"));
        };
        let all: Vec<u8> = unsent.iter().flat_map(|line| [line.0.as_slice(), b"\n"]).collect::<Vec<_>>().concat();
        Some(match file.write_all(&all) {
            Ok(()) => format!("{lines}, and appended to {}{doubt}", path.display()),
            Err(cause) => format!("{lines}, and cannot be written to {}: {cause}{doubt}", path.display()),
        })
    }

    /// Reports the number of bad lines.
    pub fn tell(&self) {
        let count = thousands(self.count);
        match &self.fate {
            _ if self.count == 0 => {}
            Fate::Fail => {}
            Fate::Skip if self.count == 1 => print::note("one bad line was skipped"),
            Fate::Skip => print::note(format!("{count} bad lines were skipped")),
            Fate::Aside(path) if self.count == 1 => print::note(format!("one bad line is in {}", path.display())),
            Fate::Aside(path) => print::note(format!("{count} bad lines are in {}", path.display())),
        }
    }
}

fn open(path: &Path, lines: &Path) -> Result<File> {
    let failed = |cause| Error::new(format!("cannot write bad lines to {}: {cause}", path.display()));
    let file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
    let place = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let ours = place(file.metadata().map_err(failed)?);
    if lines != Path::new("-") && lines.metadata().is_ok_and(|theirs| place(theirs) == ours) {
        // Refuses the file that the lines are read from, because the program would read each bad
        // line again, without an end.
        return Err(
            Error::usage("bad lines cannot be written to the file that they are read from").hint("name another file")
        );
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_may_be_enqueued_are_not_reported_as_missing() {
        let mut bad = BadLines::new(&Fate::Fail, Path::new("-")).expect("no file is opened");
        let mut said = |lines: usize, unknown: usize| {
            bad.unknown = unknown;
            bad.keep(&vec![Text(Vec::new()); lines]).unwrap_or_default()
        };
        let saves = "--bad-lines FILE saves such lines";
        assert_eq!(said(0, 0), "");
        assert_eq!(said(2, 0), format!("2 lines were read from the stream and not enqueued: {saves}"));
        let read = format!("3 lines were read from the stream and not confirmed: {saves}");
        assert_eq!(said(3, 1), format!("{read}; the first of them may already be enqueued"));
        assert_eq!(said(3, 2), format!("{read}; the first 2 of them may already be enqueued"));
        assert_eq!(said(3, 3), format!("{read}; all of them may already be enqueued"));
        let one = format!("one line was read from the stream and not confirmed: {saves}; it may already be enqueued");
        assert_eq!(said(1, 1), one);
    }
}
