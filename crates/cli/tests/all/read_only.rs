//! Workers and followers wait while the only server that answers accepts no writes, as during a
//! failover.

use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStderr},
    thread::spawn,
};

use crate::fixture::{Session, Trunkline, eventually, signal};

const BREAK: &str = "select pg_terminate_backend(pid) from pg_stat_activity \
                     where application_name = 'trunkline' and datname = current_database()";

/// A database whose clients require a server that accepts writes, and a session that can make the
/// server read-only.
struct Place {
    trunkline: Trunkline,
    session: Session,
    name: String,
}

impl Place {
    fn new() -> Self {
        let mut trunkline = Trunkline::with_queue(&["--type", "int4"]);
        let mut session = Session::begin(&trunkline.url, "select 1");
        let name = session.run("select current_database()").remove(0);
        trunkline.url += " target_session_attrs=read-write";
        Self { trunkline, session, name }
    }

    /// Sets whether the server accepts writes from new sessions.
    fn takes_writes(&mut self, takes: bool) {
        let off = if takes { "off" } else { "on" };
        self.session.run(&format!("alter database {} set default_transaction_read_only = {off}", self.name));
        self.session.run(BREAK);
    }

    /// Enqueues a number, and waits until the child has consumed it.
    fn goes_on(&mut self) {
        self.session.run("select trunkline.enqueue('q', '7')");
        let name = &self.name;
        let session = &mut self.session;
        eventually(&format!("a child consumes from {name}"), || {
            session.run("select count(*) from trunkline.queue_q") == ["0"]
        });
    }

    /// Checks that the child reports a read-only server, continues afterwards, and ends cleanly.
    fn survives(mut self, mut child: Child, warning: &str) -> Lines<BufReader<ChildStderr>> {
        self.goes_on();
        self.takes_writes(false);
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let told = lines.any(|line| line.is_ok_and(|line| line.starts_with("warning: ") && line.contains(warning)));
        assert!(told, "it says that it waits");
        assert!(child.try_wait().expect("it can be asked").is_none(), "it waits");
        self.takes_writes(true);
        self.goes_on();
        signal(&child, "TERM");
        assert!(child.wait().expect("it ends").success());
        lines
    }
}

#[test]
fn a_worker_waits_for_a_server_that_takes_writes() {
    let place = Place::new();
    let child = place.trunkline.start(&["work", "q", "--exec", "true"]);
    let last = place.survives(child, "retrying with backoff").last().expect("a last line").expect("text");
    assert_eq!(last, "q: 2 done, 0 failed");
}

#[test]
fn a_follower_waits_for_a_server_that_takes_writes() {
    let place = Place::new();
    let mut child = place.trunkline.start(&["dequeue", "q", "--follow"]);
    let out = BufReader::new(child.stdout.take().expect("it is piped"));
    // Reads all the time, because the program acknowledges a message only after it was read.
    let reader = spawn(|| out.lines().map_while(Result::ok).collect::<Vec<_>>());
    place.survives(child, "trying again until the database answers");
    assert_eq!(reader.join().expect("it reads"), ["7", "7"]);
}
