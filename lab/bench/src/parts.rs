//! The files of a publication's parts. A part is a suite on one major version of PostgreSQL: one
//! run, with a file of its own. So a part can be measured and published in any hour, without the
//! others. `publication` decides which rows a part has, and how long they are.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{Failure, report, results::Results};

const PLAIN: &str = ".json";
const PACKED: &str = ".json.gz";

/// Returns the name of a part: `throughput`, or `throughput-14` on another major version than the
/// publication's own.
pub fn named(suite: &str, major: Option<u32>) -> String {
    major.map_or_else(|| suite.to_owned(), |major| format!("{suite}-{major}"))
}

pub fn file(folder: &Path, part: &str) -> PathBuf {
    folder.join(format!("{part}{PLAIN}"))
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
