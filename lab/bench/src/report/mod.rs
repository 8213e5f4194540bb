//! The report: tables, figures and the raw rows, made from the results of runs.

pub mod number;
mod head;
mod settings;
pub mod measure;
mod race;
pub mod markdown;
mod tenths;
mod columns;
mod binds;
mod foot;
mod grid;
mod fsync;
mod suite;
mod like;
mod lost;
mod absent;
mod machine;
mod says;
mod who;
mod csv;
mod json;
mod charts;
#[cfg(test)]
pub mod fake;
#[cfg(test)]
mod tests;

use std::{
    fs,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};

use crate::{Failure, results::Results};

pub use self::{csv::csv, json::json, number::date};

/// Reads the results from the file. If it does not exist, reads the compressed file next to it,
/// which is the form in the source tree. If neither exists, the results are empty.
pub fn read(file: &Path) -> Result<Results, Failure> {
    match fs::read(file) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(failure) if failure.kind() == ErrorKind::NotFound => match fs::File::open(packed(file)) {
            Ok(packed) => Ok(serde_json::from_reader(std::io::BufReader::new(GzDecoder::new(packed)))?),
            Err(failure) if failure.kind() == ErrorKind::NotFound => Ok(Results::default()),
            Err(failure) => Err(failure.into()),
        },
        Err(failure) => Err(failure.into()),
    }
}

/// Writes a compressed file, because the results become part of the source tree. The file is an
/// eighth as large.
pub fn pack(text: &str, file: &Path) -> Result<(), Failure> {
    let mut packer = GzEncoder::new(fs::File::create(packed(file))?, Compression::best());
    packer.write_all(text.as_bytes())?;
    Ok(packer.finish()?.sync_all()?)
}

fn packed(file: &Path) -> PathBuf {
    file.with_extension("json.gz")
}

/// Writes the page, the figures, and `results.csv`.
pub fn write(results: &Results, folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder)?;
    pages(results, folder)?;
    Ok(fs::write(folder.join("results.csv"), csv(results))?)
}

/// Writes `README.md`, and each figure for which there are rows.
pub fn pages(results: &Results, folder: &Path) -> Result<(), Failure> {
    let mut drawn = Vec::new();
    for (name, draw) in charts::FIGURES {
        match draw(results)? {
            Some(figure) => {
                fs::write(folder.join(name), figure)?;
                drawn.push(*name);
            }
            // Removes an earlier report's figure, which readers would mistake for one of this
            // report.
            None => remove(&folder.join(name))?,
        }
    }
    Ok(fs::write(folder.join("README.md"), readme(results, &drawn))?)
}

fn readme(results: &Results, drawn: &[&str]) -> String {
    let mut text = head::section(results);
    if results.rows.is_empty() {
        return text + "Nothing was measured yet.\n";
    }
    text += &lost::section(results);
    text += &absent::section(results);
    text += &says::section(results);
    text += &machine::section(results);
    text += &suite::sections(results, drawn);
    text + &who::section(results)
}

fn remove(file: &Path) -> Result<(), Failure> {
    match fs::remove_file(file) {
        Err(failure) if failure.kind() != ErrorKind::NotFound => Err(failure.into()),
        _ => Ok(()),
    }
}
