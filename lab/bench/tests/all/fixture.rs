//! Runs the program as a user does, and reads its results.

use std::{
    path::PathBuf,
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::Value;
use tokio::process::{Child, Command};
use tokio_postgres::{Client, NoTls};
use trunkline_embedded::Cluster;

/// Our own contenders, by the last part of their rows' names.
pub const OWN: [&str; 19] = [
    "statements",
    "trunkline",
    "trunkline-bytea",
    "trunkline-at-most-once",
    "trunkline-poll",
    "trunkline-notify",
    "sql",
    "queue",
    "coalesced",
    "worker",
    "worker-bytea",
    "hand-over",
    "striped",
    "striped-round-robin",
    "striped-jobs",
    "priorities",
    "unique",
    "exactly-once",
    "exactly-once-sql",
];

/// The time limit of a run. It is far longer than these tests take, even on a busy machine that has
/// to build the layers first.
const DEADLINE: Duration = Duration::from_secs(900);

/// A folder for one test, removed at the test's end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("trunkline-bench-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder for results");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A command that runs the program with these arguments, and without the environment variables of
/// this process.
pub struct Bench(Command);

impl Bench {
    pub fn new(verb: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline-bench"));
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("BENCH_") || name.starts_with("PG")) {
                command.env_remove(name);
            }
        }
        command.arg(verb).kill_on_drop(true);
        Self(command)
    }

    pub fn args<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.0.args(words);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    pub fn pattern(self, pattern: &str) -> Self {
        self.args(["-p", pattern])
    }

    /// Returns the output of a run that must succeed.
    pub async fn says(mut self) -> String {
        let output = tokio::time::timeout(DEADLINE, self.0.output()).await;
        let output = output.expect("a run ends by itself").expect("the program was built");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (said, wrong) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{}: {said}\n{wrong}", output.status);
        said
    }

    /// Returns the error output of a run that must fail.
    pub async fn fails(mut self) -> String {
        let output = tokio::time::timeout(DEADLINE, self.0.output()).await;
        let output = output.expect("it ends by itself").expect("the program was built");
        assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Starts the program with its output piped.
    pub fn started(mut self) -> Child {
        self.0.stdout(Stdio::piped()).spawn().expect("the program was built")
    }

    pub async fn lines(self) -> Vec<String> {
        self.says().await.lines().map(str::to_owned).collect()
    }

    /// Runs one turn of each row, and returns the saved rows.
    pub async fn rows(self, seconds: &str) -> Vec<Value> {
        let folder = Folder::new();
        let results = folder.0.join("results.json");
        let path = results.to_str().expect("a folder with a name that is text");
        self.args(["--quick", "--rounds", "1", "--seconds", seconds, "--results", path]).says().await;
        let kept = std::fs::read(results).expect("results are kept");
        match serde_json::from_slice(&kept).expect("results are JSON") {
            Value::Object(mut kept) => match kept.remove("rows") {
                Some(Value::Array(rows)) => rows,
                rows => panic!("rows are {rows:?}"),
            },
            kept => panic!("{kept}"),
        }
    }
}

/// Returns a run on a private cluster without fsync, because disk speed does not matter here.
pub fn run() -> Bench {
    Bench::new("run").args(["--setting", "fsync=off"])
}

/// Returns `suite/case/contender`.
pub fn name(row: &Value) -> String {
    ["suite", "case", "contender"].map(|part| row[part].as_str().expect(part)).join("/")
}

/// Starts a server for runs with a URL. Each line of its log begins with the name of a database,
/// followed by a statement.
pub fn server() -> Cluster {
    Cluster::temporary()
        .setting("fsync", "off")
        .setting("log_statement", "all")
        .setting("log_line_prefix", "%d|")
        .start()
        .expect("a private PostgreSQL starts")
}

pub async fn connect(server: &Cluster, database: &str) -> Client {
    let (client, connection) =
        tokio_postgres::connect(&server.url(database), NoTls).await.expect("the server takes connections");
    tokio::spawn(connection);
    client
}
