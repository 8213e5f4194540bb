//! The files of a run, which are sufficient to check the run again.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    faults::Happened,
    history::{self, Micros, Op},
    samples::Sample,
    tables::Tables,
};

/// The facts of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    pub seed: u64,
    pub seconds: u64,
    pub faults: Vec<String>,
    pub mutant: Option<String>,
    pub server: String,
    pub began: Micros,
    /// The time at which the processes were asked to end.
    pub ended: Micros,
    /// Processes that ended without a request, or did not end on request.
    pub misbehaved: Vec<String>,
    /// Faults that did not happen, or not as often as planned, each with the reason.
    pub skipped: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates the folder. If it holds an earlier run, removes it first, with everything in it.
    pub fn create(path: &Path) -> Result<Self, String> {
        if path.join("about.json").exists() || path.join("histories").exists() {
            fs::remove_dir_all(path).map_err(said("cannot empty", path))?;
        }
        fs::create_dir_all(path.join("histories")).map_err(said("cannot create", path))?;
        Ok(Self(path.to_owned()))
    }

    pub fn open(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn history(&self, process: &str) -> PathBuf {
        self.0.join("histories").join(format!("{process}.jsonl"))
    }

    /// Returns the file of a process's standard error.
    pub fn words(&self, process: &str) -> PathBuf {
        self.0.join("histories").join(format!("{process}.err"))
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<(), String> {
        let path = self.0.join(name);
        fs::write(&path, text).map_err(said("cannot write", &path))
    }

    pub fn keep<T: Serialize>(&self, name: &str, value: &T) -> Result<(), String> {
        let text = serde_json::to_vec(value).map_err(|error| format!("cannot write {name}: {error}"))?;
        self.write(name, text)
    }

    pub fn kept<T: DeserializeOwned>(&self, name: &str) -> Result<T, String> {
        let path = self.0.join(name);
        let text = fs::read(&path).map_err(said("cannot read", &path))?;
        serde_json::from_slice(&text).map_err(|error| format!("{} is not what a run writes: {error}", path.display()))
    }

    /// Reads the whole run.
    pub fn read(&self) -> Result<Evidence, String> {
        let histories = self.0.join("histories");
        let mut ops = Vec::new();
        for entry in fs::read_dir(&histories).map_err(said("cannot read", &histories))? {
            let path = entry.map_err(said("cannot read", &histories))?.path();
            if path.extension().is_some_and(|ending| ending == "jsonl") {
                let process = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
                let text = fs::read(&path).map_err(said("cannot read", &path))?;
                ops.extend(history::read(process, &String::from_utf8_lossy(&text))?);
            }
        }
        ops.sort_by(|a, b| (a.began, &a.process, a.nr).cmp(&(b.began, &b.process, b.nr)));
        Ok(Evidence {
            about: self.kept("about.json")?,
            ops,
            faults: self.kept("faults.json")?,
            tables: self.kept("tables.json")?,
            samples: self.kept("samples.json")?,
        })
    }
}

#[derive(Debug, Clone)]
pub struct Evidence {
    pub about: About,
    /// The operations, ordered by their start.
    pub ops: Vec<Op>,
    pub faults: Vec<Happened>,
    pub tables: Tables,
    pub samples: Vec<Sample>,
}

fn said(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{what} {path}: {error}")
}
