//! What a machine may lack. A test that cannot run for want of it is skipped, said and counted; or it fails, where
//! `TRUNKLINE_REQUIRE` names it. The tests of every crate here use this file.

use std::{
    env,
    io::Write,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::Mutex,
};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Part {
    /// PostgreSQL 14 to 18.
    Majors,
    /// One that follows prepared statements.
    Pgbouncer,
    /// A PostgreSQL fetched as users fetch it.
    Fetch,
    /// A disk so small that it can be filled.
    Disk,
    /// `pg_dump`, `psql` and the like, which not every PostgreSQL comes with.
    Tools,
    /// Prometheus, and the promtool that comes with it.
    Prometheus,
    /// Chromium, its driver, and axe-core.
    Browser,
    /// etcd, Patroni, and a PostgreSQL with `pg_basebackup` and `pg_rewind`.
    Cluster,
    /// A NATS server with `JetStream`.
    Nats,
    /// A Redis server.
    Redis,
    /// RabbitMQ, with its Erlang.
    Rabbitmq,
    /// Kafka, and a Java to run it.
    Kafka,
    /// A program of the first release.
    Older,
}

const PARTS: [(&str, Part); 13] = [
    ("majors", Part::Majors),
    ("pgbouncer", Part::Pgbouncer),
    ("fetch", Part::Fetch),
    ("disk", Part::Disk),
    ("tools", Part::Tools),
    ("prometheus", Part::Prometheus),
    ("browser", Part::Browser),
    ("cluster", Part::Cluster),
    ("nats", Part::Nats),
    ("redis", Part::Redis),
    ("rabbitmq", Part::Rabbitmq),
    ("kafka", Part::Kafka),
    ("older", Part::Older),
];

/// `TRUNKLINE_REQUIRE` has names with commas between, or `all`. A misspelt name must not pass for nothing required.
fn is_required(part: Part) -> bool {
    let named = env::var("TRUNKLINE_REQUIRE").unwrap_or_default();
    let mut required = false;
    for name in named.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let known = PARTS.iter().find(|(known, _)| *known == name).map(|(_, part)| *part);
        let all = PARTS.map(|(known, _)| known).join(", ");
        assert!(name == "all" || known.is_some(), "TRUNKLINE_REQUIRE names {name:?}: name all, or some of {all}");
        required |= name == "all" || known == Some(part);
    }
    required
}

/// For a test that ends before it has shown anything. It fails where the part is required.
#[track_caller]
pub fn skipped(part: Part, why: &str) {
    assert!(!is_required(part), "TRUNKLINE_REQUIRE asks for it: {why}");
    // Past the harness, which shows only what failing tests say.
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: {why}\n");
    count(why);
}

/// A test binary runs nothing of ours after its last test, so a shell waits for the process to end, and counts until then.
fn count(why: &str) {
    static COUNTER: Mutex<Option<Child>> = Mutex::new(None);
    const COUNT: &str = r#"n=0; while read -r _; do n=$((n + 1)); done; echo "SKIPPED in all: $n" >&2"#;
    let mut counter = COUNTER.lock().expect("no panic");
    let counter = counter.get_or_insert_with(|| {
        let mut shell = Command::new("/bin/sh");
        // Out of reach of the terminal's Ctrl-C, and with no part in what reads this process's output.
        shell.args(["-c", COUNT]).process_group(0).stdin(Stdio::piped()).stdout(Stdio::null());
        shell.spawn().expect("a shell starts")
    });
    let line = why.replace('\n', " ");
    writeln!(counter.stdin.as_ref().expect("it is piped"), "{line}").expect("the shell reads until this process ends");
}

#[test]
fn what_is_required_exists() {
    // With every name known, no part is asked in vain.
    for (_, part) in PARTS {
        is_required(part);
    }
}
