//! The files of a publication's parts. A part is a suite on one major version of PostgreSQL. It is
//! one run, with its own file. So a part can be measured and published at any time, without the
//! other parts. `publication` decides which rows a part has, and how long they take.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use crate::{Failure, report, results::Results};

const PLAIN: &str = ".json";
const PACKED: &str = ".json.gz";

/// Returns the name of a part: `throughput`, or `throughput-14` for a major version other than the
/// publication's own.
pub fn named(suite: &str, major: Option<u32>) -> String {
    major.map_or_else(|| suite.to_owned(), |major| format!("{suite}-{major}"))
}

pub fn file(folder: &Path, part: &str) -> PathBuf {
    folder.join(format!("{part}{PLAIN}"))
}

/// Renames the files of a part that is measured again, so that `publish` does not find them.
pub fn put_aside(folder: &Path, part: &str) -> Result<(), Failure> {
    [PLAIN, PACKED].iter().try_for_each(|ending| rename(&folder.join(format!("{part}{ending}"))))
}

/// Adds `.old` to the name of a file, if the file exists.
pub fn rename(file: &Path) -> Result<(), Failure> {
    let mut old = file.as_os_str().to_owned();
    old.push(".old");
    match fs::rename(file, old) {
        Err(failure) if failure.kind() == ErrorKind::NotFound => Ok(()),
        renamed => Ok(renamed?),
    }
}

/// Returns the names of the parts in a folder, packed or not, in alphabetical order.
pub fn found(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(PACKED).or_else(|| name.strip_suffix(PLAIN)).map(str::to_owned));
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Reads all parts in a folder.
pub fn read(folder: &Path) -> Result<Results, Failure> {
    let mut all = Results::default();
    for part in found(folder)? {
        let of = report::read(&file(folder, &part))?;
        all.runs.extend(of.runs);
        all.rows.extend(of.rows);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_that_is_measured_again_is_not_found() {
        let folder = std::env::temp_dir().join(format!("trunkline-parts-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        for name in ["send.json", "send-14.json", "read.json.gz"] {
            fs::write(folder.join(name), name).expect("written");
        }
        for part in ["send", "read", "ack"] {
            put_aside(&folder, part).expect("renamed, or absent");
        }
        assert_eq!(found(&folder).expect("parts"), ["send-14"]);
        for name in ["send.json", "read.json.gz"] {
            assert_eq!(fs::read_to_string(folder.join(format!("{name}.old"))).expect("it is kept"), name);
        }
        fs::remove_dir_all(&folder).expect("removed");
    }
}
