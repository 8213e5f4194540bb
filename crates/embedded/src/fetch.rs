use crate::download::download;
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::places;
use crate::unpack::unpack;
use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The newest version for which all jars have a published digest (18.6.0 has none for arm64).
const VERSION: &str = "18.4.0";

/// The platforms, and the SHA-256 of each platform's jar as published by Maven Central.
const PINNED: [(&str, &str); 5] = [
    ("linux-amd64", "401d4e69baba9072d3772607710df0d47b39a7632c6b01b2a5f5d85a9514e212"),
    ("linux-amd64-alpine", "fe42b1e2a60eb4c50f6859bf17e933fd87f6ad701a1e72ac54070a67acc58e14"),
    ("linux-arm64v8", "a9ec284923b9a7d2db41509bfb88c3d0eeb9f4aa5e2b29ea0aac5e8dbaf4c335"),
    ("darwin-amd64", "68381ed1488edd337345c6c4bc6ae0c823832a4dd7af8b04656ee5c218c291b5"),
    ("darwin-arm64v8", "ab698c4486a795d2aa8a158b3a41e1201a77e7ff72a6255094cd5900080853c2"),
];

/// Returns the folder with the programs. Only one process at a time fetches, and a process that
/// waited uses its result.
pub(crate) fn fetch(progress: impl FnMut(u64, u64)) -> Result<PathBuf> {
    let platform = platform();
    let Some((_, digest)) = PINNED.iter().find(|(name, _)| *name == platform) else {
        return Err(Error::new(format!(
            "there is no PostgreSQL to fetch for {platform}: install one, and set TRUNKLINE_PG_BIN to its bin folder if \
             it is not found"
        )));
    };
    let folder = places::cache()?;
    let whole = folder.join(format!("postgres-{VERSION}-{platform}"));
    if whole.exists() {
        return Ok(whole.join("bin"));
    }
    places::make(&folder)?;
    let path = folder.join("lock");
    let locked = File::create(&path).map_err(Error::at("cannot create", &path))?;
    lock(&locked, &path)?;
    if !whole.exists() {
        let partial = folder.join("partial");
        let brought = bring(&partial, &platform, digest, progress)
            .and_then(|()| sync(&partial.join("postgres")).map_err(Error::at("cannot write", &partial)))
            .and_then(|()| fs::rename(partial.join("postgres"), &whole).map_err(Error::at("cannot create", &whole)))
            .and_then(|()| sync_one(&folder).map_err(Error::at("cannot write", &folder)));
        let _ = fs::remove_dir_all(&partial);
        brought?;
    }
    drop(locked);
    Ok(whole.join("bin"))
}

fn bring(partial: &Path, platform: &str, digest: &str, progress: impl FnMut(u64, u64)) -> Result<()> {
    let _ = fs::remove_dir_all(partial);
    let postgres = partial.join("postgres");
    places::make(&postgres)?;
    let base = env::var("TRUNKLINE_MAVEN_URL").unwrap_or_else(|_| "https://repo1.maven.org/maven2".to_owned());
    let name = format!("embedded-postgres-binaries-{platform}");
    let url = format!("{}/io/zonky/test/postgres/{name}/{VERSION}/{name}-{VERSION}.jar", base.trim_end_matches('/'));
    let jar = partial.join("jar");
    download(&url, digest, &jar, progress)?;
    unpack(&jar, &postgres)
}

/// Writes everything in a folder to the disk. Without this, the files could be empty after a power
/// failure although the folder has its name, and would never be fetched again.
fn sync(folder: &Path) -> io::Result<()> {
    for entry in folder.read_dir()? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sync(&entry.path())?;
        } else if kind.is_file() {
            sync_one(&entry.path())?;
        }
    }
    sync_one(folder)
}

fn sync_one(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn platform() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { env::consts::OS };
    let machine = match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64v8",
        other => other,
    };
    let libc = if Path::new("/etc/alpine-release").exists() { "-alpine" } else { "" };
    format!("{system}-{machine}{libc}")
}
