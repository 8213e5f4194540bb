use crate::account::Account;
use crate::error::{Error, Result};
use crate::home::Home;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};

/// The watchdog's script. `$0` is the data folder, `$1` the signal, `$2` a process id that a crash
/// left in the folder, and `$3` and `$4` are the folders to remove, or empty. The input ends when
/// the owner ends, and a line of input requests an orderly end. The script waits a minute for the
/// server's orderly end before it uses force.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
read -r _
pid=
read -r pid 2>/dev/null < "$0/postmaster.pid"
case $pid in
    '' | *[!0-9]* | "$2") ;;
    *)
        kill -s "$1" "$pid"
        tries=0
        while [ -e "$0/postmaster.pid" ] && kill -s 0 "$pid" && [ $tries -lt 600 ]; do
            sleep 0.1
            tries=$((tries + 1))
        done
        [ -e "$0/postmaster.pid" ] && kill -s QUIT "$pid"
        ;;
esac
for folder in "$3" "$4"; do
    [ -n "$folder" ] && rm -rf -- "$folder"
done
"#;

/// A shell that outlives its owner, even if the owner is killed. It ends the server and then exits.
#[derive(Debug)]
pub(crate) struct Watchdog {
    shell: Child,
    leash: Option<OwnedFd>,
}

impl Watchdog {
    /// Starts the watchdog of a cluster whose server is not running.
    pub(crate) fn start(account: &Account, home: &Home, remove: bool) -> Result<Self> {
        let left = fs::read_to_string(home.data().join("postmaster.pid")).unwrap_or_default();
        let mut command = account.command("/bin/sh");
        command.arg("-c").arg(SCRIPT).arg(home.data()).arg(if remove { "QUIT" } else { "INT" });
        command.arg(left.lines().next().unwrap_or_default());
        if remove {
            command.arg(home.root()).arg(home.socket_dir());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut shell = command.spawn().map_err(Error::because("cannot run /bin/sh"))?;
        let leash = shell.stdin.take().map(OwnedFd::from);
        Ok(Self { shell, leash })
    }

    /// Returns an input for a program that the watchdog must wait for. With it, the watchdog also
    /// ends a server that is still starting when its owner dies.
    pub(crate) fn leash(&self) -> Stdio {
        let copy = self.leash.as_ref().and_then(|leash| leash.try_clone().ok());
        copy.map_or_else(Stdio::null, Stdio::from)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // The line is effective even if another process has inherited the pipe and keeps it open.
        let farewell = self.leash.take().map(|leash| File::from(leash).write_all(b"\n"));
        drop(farewell);
        let _ = self.shell.wait();
    }
}
