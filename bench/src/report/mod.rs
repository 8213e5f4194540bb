//! The report: tables, figures and the raw rows, from what the runs left.

mod number;
mod settings;
mod measure;
mod race;
mod markdown;
mod tenths;
mod columns;
mod grid;
mod suite;
mod lost;
mod absent;
mod machine;
mod says;
mod who;
mod csv;
mod json;
mod svg;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

use std::{fs, io::ErrorKind, path::Path};

use crate::{Failure, results::Results};

pub use self::{csv::csv, json::json};

/// Where the results of this suite are kept.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/results");

/// Reports what is kept, in the folder where it is.
pub fn kept() -> Result<(), Failure> {
    let folder = Path::new(FOLDER);
    write(&read(&folder.join("results.json"))?, folder)?;
    println!("{}", folder.join("README.md").display());
    Ok(())
}

/// What is kept in that file; nothing where there is none.
pub fn read(file: &Path) -> Result<Results, Failure> {
    match fs::read(file) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(failure) if failure.kind() == ErrorKind::NotFound => Ok(Results::default()),
        Err(failure) => Err(failure.into()),
    }
}

/// Writes `README.md`, `results.csv`, `results.json` and the figures for which there are rows.
pub fn write(results: &Results, folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder)?;
    let mut drawn = Vec::new();
    for (name, draw) in svg::FIGURES {
        match draw(results) {
            Some(figure) => {
                fs::write(folder.join(name), figure)?;
                drawn.push(*name);
            }
            // A figure of an earlier report would be taken for one of this.
            None => remove(&folder.join(name))?,
        }
    }
    fs::write(folder.join("README.md"), readme(results, &drawn))?;
    fs::write(folder.join("results.csv"), csv(results))?;
    fs::write(folder.join("results.json"), json(results)?)?;
    Ok(())
}

/// The report as text, with links to the figures that were drawn.
fn readme(results: &Results, drawn: &[&str]) -> String {
    let mut text = String::from(AGAIN);
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

const AGAIN: &str = "\
# Trunkline and its peers, side by side

Made by

```sh
cargo run --release -p trunkline-bench -- run
cargo run --release -p trunkline-bench -- report
```

from `results.json`, which has every round; `results.csv` has a line a round. A figure is the median of its rounds, in brackets the least and \
the most. Ours are **bold**. Ratios are between rows of the same case that met the same server.

";

fn remove(file: &Path) -> Result<(), Failure> {
    match fs::remove_file(file) {
        Err(failure) if failure.kind() != ErrorKind::NotFound => Err(failure.into()),
        _ => Ok(()),
    }
}
