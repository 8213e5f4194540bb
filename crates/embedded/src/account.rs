use crate::error::{Error, Result};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The account that runs the server. It is the caller's account, unless the caller is root:
/// PostgreSQL refuses to run as root.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    dropped_to: Option<(u32, u32)>,
    name: String,
}

impl Account {
    pub(crate) fn of_the_server() -> Result<Self> {
        static KNOWN: OnceLock<Account> = OnceLock::new();
        match KNOWN.get() {
            Some(known) => Ok(known.clone()),
            None => Self::look_up().inspect(|found| drop(KNOWN.set(found.clone()))),
        }
    }

    fn look_up() -> Result<Self> {
        if id(&["-u"])? != Some(0) {
            return Ok(Self { dropped_to: None, name: "you".to_owned() });
        }
        for name in ["postgres", "nobody"] {
            if let (Some(uid), Some(gid)) = (id(&["-u", name])?, id(&["-g", name])?) {
                return Ok(Self { dropped_to: Some((uid, gid)), name: format!("the user `{name}`") });
            }
        }
        Err(Error::new(
            "PostgreSQL does not run as root, and there is neither a user `postgres` nor `nobody` to run it as: \
             create one (`useradd --system postgres`), or call this as another user",
        ))
    }

    /// Makes root run an existing cluster as the cluster's owner.
    pub(crate) fn of_the_owner(self, data: &Path) -> Self {
        match (&self.dropped_to, data.metadata()) {
            (Some(account), Ok(found)) if found.uid() != 0 && found.uid() != account.0 => {
                Self { dropped_to: Some((found.uid(), found.gid())), name: format!("the user {}", found.uid()) }
            }
            _ => self,
        }
    }

    pub(crate) fn is_dropped_to(&self) -> bool {
        self.dropped_to.is_some()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns a command that runs as this account, in a folder that the account may enter. The
    /// command has its own process group, so Ctrl-C in the terminal does not reach it.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir("/").process_group(0).stdin(Stdio::null());
        if let Some((uid, gid)) = self.dropped_to {
            command.uid(uid).gid(gid);
        }
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
            command.env_remove(name);
        }
        // Sets a valid locale for macOS. Without one the server stops with "became multithreaded
        // during startup".
        command.env("LC_ALL", "C");
        command
    }

    /// Runs a shell script with the arguments `$0`, `$1` and so on.
    pub(crate) fn shell(&self, script: &str, arguments: &[&OsStr]) -> Result<Output> {
        let mut command = self.command("/bin/sh");
        command.arg("-c").arg(script).args(arguments);
        command.output().map_err(Error::because("cannot run /bin/sh"))
    }

    /// Creates a new folder that only this account may enter. Fails if the name is taken.
    pub(crate) fn make_folder(&self, path: &Path) -> Result<()> {
        let made = self.shell(r#"mkdir -m 700 -- "$0""#, &[path.as_os_str()])?;
        if made.status.success() {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&made.stderr);
        Err(Error::new(format!("{} cannot create the folder {}: {}", self.name, path.display(), why.trim())))
    }

    pub(crate) fn owns(&self, path: &Path) -> bool {
        let Ok(found) = path.symlink_metadata() else { return false };
        let uid = self.dropped_to.map_or_else(|| id(&["-u"]).ok().flatten(), |(uid, _)| Some(uid));
        found.is_dir() && Some(found.uid()) == uid
    }

    pub(crate) fn give(&self, path: &Path) -> Result<()> {
        let Some((uid, gid)) = self.dropped_to else { return Ok(()) };
        std::os::unix::fs::chown(path, Some(uid), Some(gid)).map_err(Error::at("cannot change the owner of", path))
    }

    pub(crate) fn can_enter(&self, path: &Path) -> Result<bool> {
        Ok(self.shell(r#"cd -- "$0""#, &[path.as_os_str()])?.status.success())
    }

    /// Writes a file as this account, because root would follow a symbolic link at the path.
    pub(crate) fn write(&self, path: &Path, text: &str, mode: Mode) -> Result<()> {
        let script = match mode {
            Mode::Replace => r#"cat > "$0""#,
            Mode::Append => r#"cat >> "$0""#,
        };
        let doing = || Error::at("cannot write", path);
        let mut child = self.command("/bin/sh");
        child.arg("-c").arg(script).arg(path).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().map_err(doing())?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(text.as_bytes()).map_err(doing())?;
        }
        let written = child.wait_with_output().map_err(doing())?;
        if written.status.success() {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&written.stderr);
        Err(Error::new(format!("cannot write {}: {}", path.display(), why.trim())))
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Mode {
    Replace,
    Append,
}

/// Runs `id`, which queries every user directory of the system, not only /etc/passwd. Returns
/// `None` if the user does not exist.
fn id(arguments: &[&str]) -> Result<Option<u32>> {
    let output = Command::new("id").args(arguments).output().map_err(Error::because("cannot run `id`"))?;
    // Also accepts -2, which macOS prints as the number of the user `nobody`.
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse::<i64>().ok().map(|number| number as u32))
}
