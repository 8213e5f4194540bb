//! The fixture: one cluster per run, one fresh database per test, and the program.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    io::{BufWriter, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::signal::unix::SignalKind;
use trunkline_embedded::Cluster;

fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let cluster = Cluster::temporary().setting("fsync", "off").setting("max_connections", "300");
        cluster.start().expect("a private PostgreSQL starts")
    })
}

/// A variable that names another build of the program, one without relays. Without it, the tests
/// run the build that cargo has made for them.
pub const WITHOUT_RELAYS: &str = "TRUNKLINE_PROGRAM_WITHOUT_RELAYS";

/// Returns the program, without variables of a developer's shell that may name a database.
pub fn program() -> Command {
    crate::watchdog::watch();
    hear_hangups();
    let path = std::env::var_os(WITHOUT_RELAYS).unwrap_or_else(|| env!("CARGO_BIN_EXE_trunkline").into());
    let mut command = Command::new(path);
    unset_database(&mut command);
    command
}

/// Restores SIGHUP's default action. Under `nohup` the tests ignore SIGHUP, and the programs would
/// inherit that. A signal that has a handler gets its default action at an exec.
fn hear_hangups() {
    static HEARD: OnceLock<()> = OnceLock::new();
    HEARD.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let _within = runtime.enter();
        drop(tokio::signal::unix::signal(SignalKind::hangup()).expect("it can be heard"));
    });
}

/// Returns the help of every verb on a terminal of 100 columns. The first entry is the program's
/// own help, under an empty name.
pub fn helps() -> Vec<(String, String)> {
    static HELPS: OnceLock<Vec<(String, String)>> = OnceLock::new();
    HELPS.get_or_init(|| helps_in(100)).clone()
}

/// Returns the help of every verb on a terminal of `columns` columns.
pub fn helps_in(columns: usize) -> Vec<(String, String)> {
    let (mut all, mut open) = (Vec::new(), vec![Vec::<String>::new()]);
    while let Some(path) = open.pop() {
        let output =
            program().args(&path).arg("--help").env("COLUMNS", columns.to_string()).stdin(Stdio::null()).output();
        let help = String::from_utf8(output.expect("the program runs").stdout).expect("help is text");
        let listed = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
        // Finds the verbs: their names begin in column two, and continued lines are indented
        // further.
        let named = listed.lines().filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
        let verbs = named.filter_map(|line| line.split(' ').next()).filter(|verb| *verb != "help");
        let mut below: Vec<Vec<String>> =
            verbs.map(|verb| path.iter().cloned().chain([verb.to_owned()]).collect()).collect();
        below.reverse();
        open.extend(below);
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        all.push((path.join(" "), lines.join("\n") + "\n"));
    }
    all
}

/// Removes the variables that name a database or influence the connection.
pub fn unset_database(command: &mut Command) {
    let about_it = |name: &str| name.starts_with("PG") || name == "DATABASE_URL" || name == "TRUNKLINE_SCHEMA";
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(about_it)) {
        command.env_remove(name);
    }
}

/// Runs SQL that returns nothing.
pub fn sql(url: &str, text: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("it connects");
        tokio::spawn(connection);
        client.batch_execute(text).await.expect("the statement succeeds");
    });
}

/// Returns the first column of a query, as text.
pub fn rows(url: &str, text: &str) -> Vec<String> {
    Session::begin(url, "").run(text)
}

/// A session that stays open, with all its locks, until dropped.
pub struct Session(tokio::runtime::Runtime, tokio_postgres::Client);

impl Session {
    pub fn begin(url: &str, text: &str) -> Self {
        // A thread of the runtime drives the connection.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime starts");
        let (client, connection) =
            runtime.block_on(tokio_postgres::connect(url, tokio_postgres::NoTls)).expect("it connects");
        runtime.spawn(connection);
        let mut session = Self(runtime, client);
        session.run(text);
        session
    }

    /// Runs SQL. Returns the first column as text.
    pub fn run(&mut self, text: &str) -> Vec<String> {
        let found = self.0.block_on(self.1.simple_query(text)).expect("the statement succeeds");
        let first = |message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
            _ => None,
        };
        found.into_iter().filter_map(first).collect()
    }
}

/// Ends all leases and delays immediately.
pub fn run_out(url: &str) {
    sql(url, "update trunkline.queue_q set due_at = (select clock_timestamp()) where due_at > clock_timestamp()");
}

/// Delays failed messages by an hour, whatever their retry policy is; a test calls `run_out` to
/// make them due. Messages that are given back are still due immediately.
pub fn retry_late(url: &str) {
    sql(
        url,
        "create function public.late() returns trigger language plpgsql as $$ begin
             new.due_at := clock_timestamp() + interval '1 hour'; return new; end $$;
         create trigger late before update on trunkline.queue_q for each row
             when (old.error is null and new.error is not null and new.released = old.released)
             execute function public.late()",
    );
}

/// Sends a signal to processes, and to the process groups whose ids have a minus sign. Uses the
/// shell's own `kill`, because a system may lack the program.
pub fn send_signal(name: &str, ids: impl IntoIterator<Item = String>) {
    let mut shell = Command::new("sh");
    let sent = shell.args(["-c", r#"kill -s "$0" -- "$@""#, name]).args(ids).status().expect("a shell runs");
    assert!(sent.success(), "{name}");
}

pub fn signal(child: &Child, name: &str) {
    send_signal(name, [child.id().to_string()]);
}

/// Stops a process with SIGSTOP, and waits until it is stopped. After the signal alone, it may
/// still run for a moment.
pub fn stop(child: &Child) {
    signal(child, "STOP");
    eventually("it stands still", || state(child.id()).starts_with('T'));
}

/// Returns the state of a process, which begins with `T` while the process is stopped.
fn state(id: u32) -> String {
    if cfg!(target_os = "linux") {
        // `id (name) state …`
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("the process is there");
        return stat.rsplit_once(") ").expect("a name in parentheses").1.to_owned();
    }
    let shown = Command::new("ps").args(["-o", "state=", "-p", &id.to_string()]).output().expect("ps runs");
    String::from_utf8_lossy(&shown.stdout).trim_start().to_owned()
}

/// Returns the name of a database in which the program has run these commands.
fn template(templates: &mut BTreeMap<String, String>, commands: &[&[&str]]) -> String {
    let Some((last, before)) = commands.split_last() else { return "template1".to_owned() };
    let key = format!("{commands:?}");
    if let Some(name) = templates.get(&key) {
        return name.clone();
    }
    let (name, trunkline) = Trunkline::copy_of(&template(templates, before));
    trunkline.ok(last);
    templates.insert(key, name.clone());
    name
}

/// The program and its own database.
pub struct Trunkline {
    pub url: String,
}

impl Trunkline {
    /// Creates an empty database.
    pub fn bare() -> Self {
        Self::after(&[])
    }

    /// Creates a migrated database.
    pub fn new() -> Self {
        Self::after(&[&["migrate"]])
    }

    /// Creates a migrated database with one queue.
    pub fn with_queue(settings: &[&str]) -> Self {
        Self::after(&[&["migrate"], &[&["queue", "create", "q"], settings].concat()])
    }

    /// Creates a database in which the program has run these commands. It runs them once, in a
    /// template, and each test gets a copy.
    fn after(commands: &[&[&str]]) -> Self {
        static TEMPLATES: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
        let template = template(&mut TEMPLATES.lock().unwrap_or_else(PoisonError::into_inner), commands);
        Self::copy_of(&template).1
    }

    /// Copies a database. Returns the name of the copy, too.
    fn copy_of(template: &str) -> (String, Self) {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("cli_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        sql(&cluster().url("postgres"), &format!("create database {name} template {template}"));
        let url = cluster().url(&name);
        (name, Self { url })
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = program();
        command.args(args).env("DATABASE_URL", &self.url).stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    /// Runs the program, which must succeed. Returns its standard output.
    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("the output is text")
    }

    /// Runs the program, which must fail. Returns its exit code and its standard error.
    pub fn fails(&self, args: &[&str]) -> (i32, String) {
        failed(&self.run(args), args)
    }

    pub fn lines(&self, args: &[&str]) -> Vec<String> {
        self.ok(args).lines().map(str::to_owned).collect()
    }

    pub fn json(&self, args: &[&str]) -> Vec<Value> {
        self.lines(args).iter().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }

    /// Enqueues the numbers below `below`, one per line.
    pub fn enqueue_numbers(&self, below: u32) {
        let mut enqueue = self.command(&["enqueue", "q", "--lines", "-"]);
        enqueue.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = enqueue.spawn().expect("the program runs");
        let mut input = BufWriter::new(child.stdin.take().expect("it is piped"));
        (0..below).try_for_each(|number| writeln!(input, "{number}")).expect("it reads its input");
        drop(input.into_inner().expect("it reads its input to the end"));
        assert!(child.wait().expect("it ends").success());
    }

    /// Runs the program with `input` on its standard input.
    pub fn fed(&self, args: &[&str], input: &[u8]) -> Output {
        let mut child = self.start_fed(args);
        let _ = child.stdin.take().expect("it is piped").write_all(input); // the program may end before it has read everything
        child.wait_with_output().expect("it ends")
    }

    /// Starts the program with its three streams piped.
    pub fn start_fed(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the program runs")
    }

    /// Starts the program with standard output and standard error piped.
    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs")
    }
}

pub fn failed(output: &Output, args: &[&str]) -> (i32, String) {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{args:?} succeeded");
    assert!(!error.contains("panicked"), "{error}");
    (output.status.code().expect("it exits by itself"), error)
}

/// Waits until the condition holds. Fails after two minutes, which a busy machine may need.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let began = Instant::now();
        if is_so() {
            return;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        // A condition may run the program: at most half of the time goes to its polls.
        thread::sleep(began.elapsed().max(Duration::from_millis(5)));
    }
}

/// A folder that every user may enter, regardless of the umask: the server of a test that root runs
/// belongs to another user. Dropping the value removes the folder.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("trunkline-cli-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = temporary().join(name);
        fs::create_dir(&path).expect("a folder can be made");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("the folder belongs to the test");
        Self(path)
    }

    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the folder of temporary files, or `/tmp` if other users may not enter the former.
fn temporary() -> PathBuf {
    let is_open = |folder: &Path| folder.metadata().is_ok_and(|found| found.permissions().mode() & 0o001 != 0);
    let folder = std::env::temp_dir();
    if folder.ancestors().all(is_open) { folder } else { PathBuf::from("/tmp") }
}
