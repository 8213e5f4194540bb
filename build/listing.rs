//! Lists the files of `sql/` that `build.rs` puts into the library.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Returns the SQL files of a folder, sorted. Omits all other files, because an editor's old copy
/// of a function would replace the function.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    entries(folder, |path| path.is_file() && path.extension().is_some_and(|ending| ending == "sql"))
}

/// Returns the folders within a folder, sorted.
pub fn folders(folder: &Path) -> Result<Vec<PathBuf>, String> {
    entries(folder, Path::is_dir)
}

fn entries(folder: &Path, is_wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, String> {
    let named = |error: io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(named)? {
        let path = entry.map_err(named)?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && is_wanted(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
