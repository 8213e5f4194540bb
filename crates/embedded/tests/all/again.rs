use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use trunkline_embedded::Binaries;

/// The environment variable by which a process recognizes that it runs a part of another test.
const PART: &str = "TRUNKLINE_TEST_PART";

/// Returns a command that runs an ignored test of this test binary, as a part of another test.
pub fn part(name: &str, argument: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(PART, argument).env_remove("TRUNKLINE_PG_BIN").env_remove("TRUNKLINE_MAVEN_URL");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns a command like [`part`], under a umask that closes new files to all other users.
pub fn closed_part(name: &str, argument: &Path) -> Command {
    let open = part(name, argument);
    let mut command = Command::new("sh");
    command.args(["-c", r#"umask 077 && exec "$0" "$@""#]).arg(open.get_program()).args(open.get_args());
    for (name, value) in open.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the argument of a part, or `None` if `cargo test -- --include-ignored` runs the part as
/// a test.
pub fn argument() -> Option<PathBuf> {
    std::env::var_os(PART).map(PathBuf::from)
}

/// Waits for the end of a part. Returns its standard output and its standard error.
pub fn words(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

pub fn here() -> Binaries {
    Binaries::find_or_fetch(|_, _| {}).unwrap()
}

/// A new folder that every user may enter, regardless of the umask. Dropping the value removes the
/// folder.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("trunkline-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = PathBuf::from("/tmp").canonicalize().unwrap().join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal with the shell's own `kill`, because a system may lack the program.
pub fn signal(pid: u32, name: &str) {
    let mut shell = Command::new("sh");
    assert!(shell.args(["-c", r#"kill -s "$0" "$1""#, name, &pid.to_string()]).status().unwrap().success());
}

/// Returns true if the process runs, or is stopped. A zombie has ended.
pub fn is_alive(pid: u32) -> bool {
    let state = if cfg!(target_os = "linux") {
        // `id (name) state …`
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").unwrap_or_default().1.to_owned()
    } else {
        let ps = Command::new("ps").args(["-p", &pid.to_string(), "-o", "stat="]).output().unwrap();
        String::from_utf8_lossy(&ps.stdout).trim().to_owned()
    };
    !state.is_empty() && !state.starts_with('Z')
}
