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
}

impl BadLines {
    /// Opens the file for bad lines, if the user named one, for appending.
    pub fn new(fate: &Fate, lines: &Path) -> Result<Self> {
        let aside = match fate {
            Fate::Fail | Fate::Skip => None,
            Fate::Aside(path) => Some(open(path, lines)?),
        };
        Ok(Self { fate: fate.clone(), aside, count: 0 })
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
    /// Their order stays. Returns a sentence about them, if there are any.
    pub fn keep(&mut self, unsent: &[Text]) -> Option<String> {
        let count = match unsent.len() as u64 {
            0 => return None,
            1 => "one line was read from the stream and not enqueued".to_owned(),
            count => format!("{} lines were read from the stream and not enqueued", thousands(count)),
        };
        let (Some(file), Fate::Aside(path)) = (&mut self.aside, &self.fate) else {
            return Some(format!("{count}: --bad-lines FILE saves such lines"));
        };
        let all: Vec<u8> = unsent.iter().flat_map(|line| [line.0.as_slice(), b"\n"]).collect::<Vec<_>>().concat();
        Some(match file.write_all(&all) {
            Ok(()) => format!("{count}, and appended to {}", path.display()),
            Err(cause) => format!("{count}, and cannot be written to {}: {cause}", path.display()),
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
