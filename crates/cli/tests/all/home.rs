//! The home of a new user. A private PostgreSQL that the program starts there ends with the test,
//! even if the test is killed.

use std::{
    io::Write,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use crate::fixture::{Folder, program, unset_database};

/// The watchdog's script. It waits for a line or the end of its input; the input ends when the test
/// process dies. Then it stops the PostgreSQL with the program `$0`, and removes the home `$1`.
const END: &str = r#"
trap '' HUP INT TERM
read -r _
"$0" postgres stop
rm -rf -- "$1"
"#;

pub struct Home {
    // Dropped after the watchdog has ended: see `drop`.
    pub folder: Folder,
    watchdog: Child,
}

impl Home {
    /// Creates a home without a private PostgreSQL.
    pub fn new() -> Self {
        let folder = Folder::new();
        // Root's program uses the machine's own private PostgreSQL if the server's account cannot
        // enter this home. The test must not use or stop that one.
        let status = inside(&folder, program()).args(["postgres", "status"]).output().expect("the program runs");
        let error = String::from_utf8_lossy(&status.stderr);
        let place = folder.join("trunkline/postgres");
        assert!(error.contains(&format!("is running in {}", place.display())), "{status:?}");

        let mut watchdog = Command::new("sh");
        watchdog.args(["-c", END]).arg(program().get_program()).arg(&folder.0);
        unset_database(&mut watchdog);
        let mut watchdog = inside(&folder, watchdog);
        watchdog.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C in the terminal ends only the test process, whose end wakes the watchdog.
        let watchdog = watchdog.process_group(0).spawn().expect("a shell starts");
        Self { folder, watchdog }
    }

    /// Returns the program, as the user of this home runs it.
    pub fn command(&self) -> Command {
        inside(&self.folder, program())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Writes a line before it closes the pipe, because another process may have inherited the
        // pipe and keep it open.
        let farewell = self.watchdog.stdin.take().map(|mut input| input.write_all(b"\n"));
        drop(farewell);
        let _ = self.watchdog.wait();
    }
}

fn inside(folder: &Folder, mut command: Command) -> Command {
    command.env("HOME", &folder.0).env("XDG_DATA_HOME", &folder.0);
    command
}
