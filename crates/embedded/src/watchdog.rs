use crate::account::Account;
use crate::error::{Error, Result};
use crate::home::Home;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};

/// The watchdog's script. `$0` is the data folder, and `$1` the signal for the server. `$2` is the
/// process id and start time that a crash left in the folder: a later server may have the same
/// process id, but not the same start time. `$3` and `$4` are the folders to remove, or empty. The
/// script waits for a line or the end of its input; the input ends when the owner dies. It then
/// signals the server, waits up to a minute for its end, and sends SIGQUIT if it still runs.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
read -r _
pid= started=
{ read -r pid; read -r _; read -r started; } 2>/dev/null < "$0/postmaster.pid"
case $pid in
    *[!0-9]*) pid= ;;
esac
if [ -n "$pid" ] && [ "$pid $started" != "$2" ]; then
    kill -s "$1" "$pid"
    tries=0
    while [ -e "$0/postmaster.pid" ] && kill -s 0 "$pid" && [ $tries -lt 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    [ -e "$0/postmaster.pid" ] && kill -s QUIT "$pid"
fi
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
        let left: Vec<&str> = left.lines().collect();
        let line = |at: usize| left.get(at).copied().unwrap_or_default().trim();
        let mut command = account.command("/bin/sh");
        command.arg("-c").arg(SCRIPT).arg(home.data()).arg(if remove { "QUIT" } else { "INT" });
        command.arg(format!("{} {}", line(0), line(2)));
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
        // Writes a line before it closes the pipe, because another process may have inherited the
        // pipe and keep it open.
        let farewell = self.leash.take().map(|leash| File::from(leash).write_all(b"\n"));
        drop(farewell);
        let _ = self.shell.wait();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::thread;

    /// Ends a watchdog that found one `postmaster.pid`, after a server has written another. Returns
    /// the signal that the process named by both of them received.
    fn signal(found: &str, written: &str) -> i32 {
        let account = Account::of_the_server().unwrap();
        let home = Home::temporary(&account).unwrap();
        fs::create_dir(home.data()).unwrap();
        let file = home.data().join("postmaster.pid");
        // Resets the signals, because a shell's background jobs ignore some of them, and so do
        // their children.
        let mut server = account.command("env").args(["--default-signal", "sleep", "3600"]).spawn().unwrap();
        let pid = server.id();
        let text = |start: &str| format!("{pid}\n/data\n{start}\n5432\n/data\n");
        fs::write(&file, text(found)).unwrap();
        let watchdog = Watchdog::start(&account, &home, false).unwrap();
        fs::write(&file, text(written)).unwrap();
        // The script waits until the process is gone, and not a zombie.
        let ended = thread::spawn(move || server.wait().unwrap());
        drop(watchdog);
        if !ended.is_finished() {
            // Kills the process: the script ended without a signal, or its signal has not ended the
            // process yet.
            let _ = account.shell(r#"kill -s KILL "$0""#, &[pid.to_string().as_ref()]);
        }
        let signal = ended.join().unwrap().signal().unwrap();
        home.remove();
        signal
    }

    #[test]
    fn server_with_the_number_of_a_stale_file_is_ended_and_another_process_is_not() {
        let (interrupt, by_the_test) = (2, 9);
        assert_eq!(signal("1700000000", "1700000000"), by_the_test);
        assert_eq!(signal("1700000000", "1700000001"), interrupt);
    }
}
