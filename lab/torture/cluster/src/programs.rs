//! Finds the programs of a cluster, or fetches them into a folder outside the tree.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use trunkline_embedded::Binaries;

use crate::Failure;

/// The variable that names the folder of `etcd` and `patroni`.
pub const CLUSTER: &str = "TRUNKLINE_CLUSTER_PROGRAMS";
/// The variable that names the folder of a complete PostgreSQL.
pub const POSTGRES: &str = "TRUNKLINE_CLUSTER_POSTGRES";
/// The PostgreSQL programs that a cluster needs. A single server needs fewer.
const NEEDED: [&str; 5] = ["postgres", "initdb", "pg_ctl", "pg_basebackup", "pg_rewind"];

pub struct Programs {
    pub etcd: PathBuf,
    pub patroni: PathBuf,
    /// The folder of PostgreSQL's programs.
    pub postgres: PathBuf,
}

impl Programs {
    /// Finds the programs. If one is missing, the error names it and explains how to get it.
    pub fn found() -> Result<Self, Failure> {
        let folder = match env::var_os(CLUSTER) {
            Some(folder) => PathBuf::from(folder),
            None => fetched()?,
        };
        let (etcd, patroni) = (folder.join("etcd"), folder.join("patroni"));
        for program in [&etcd, &patroni] {
            if !program.exists() {
                return Err(format!("there is no {}: see .ci/cluster", program.display()).into());
            }
        }
        Ok(Self { etcd, patroni, postgres: postgres()? })
    }

    /// Returns both variables, so that a process under another account uses the same programs.
    pub fn variables(&self) -> [(&'static str, PathBuf); 2] {
        let folder = self.etcd.parent().unwrap_or(Path::new("/")).to_owned();
        [(CLUSTER, folder), (POSTGRES, self.postgres.clone())]
    }

    /// Returns the version that each program prints.
    pub fn versions(&self) -> String {
        let said = |program: &Path| {
            let output = Command::new(program).arg("--version").output();
            let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
            let line = text.lines().next().unwrap_or_default();
            line.split_whitespace()
                .find(|word| word.starts_with(|first: char| first.is_ascii_digit()))
                .map(str::to_owned)
        };
        let shown = |program: &Path| said(program).unwrap_or_else(|| "of an unknown version".to_owned());
        let postgres = self.postgres.join("postgres");
        format!("PostgreSQL {}, Patroni {}, etcd {}", shown(&postgres), shown(&self.patroni), shown(&self.etcd))
    }
}

fn fetched() -> Result<PathBuf, Failure> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.ci/cluster");
    let output = Command::new(&script).output().map_err(|error| format!("{}: {error}", script.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    match output.status.success() {
        true => Ok(PathBuf::from(said.trim())),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into()),
    }
}

/// Returns the newest PostgreSQL in the folders of `TRUNKLINE_PG_BINS`. Without them, returns the
/// PostgreSQL that the launcher finds.
fn postgres() -> Result<PathBuf, Failure> {
    let is_whole = |folder: &PathBuf| NEEDED.iter().all(|program| folder.join(program).exists());
    if let Some(folder) = env::var_os(POSTGRES) {
        return Ok(PathBuf::from(folder));
    }
    let named = env::var_os("TRUNKLINE_PG_BINS").unwrap_or_default();
    let named = env::split_paths(&named).filter_map(|folder| Binaries::inspect(&folder).ok());
    let mut found: Vec<Binaries> = named.chain(Binaries::find()).collect();
    found.sort_by_key(|binaries| std::cmp::Reverse(binaries.major()));
    let mut folders = found.iter().map(|binaries| binaries.dir().to_owned());
    folders.find(is_whole).ok_or_else(|| {
        "no PostgreSQL with pg_basebackup and pg_rewind: name one's folder in TRUNKLINE_PG_BINS (see .ci/versions)"
            .into()
    })
}
