//! Lines that were read from a pipe are in the queue, saved in a file, or at least counted.

use std::{fs, io::Write, process::Child};

use crate::{
    delay_proxy,
    fixture::{Folder, Session, Trunkline, eventually, rows, signal},
};

/// Starts a program that enqueues lines and saves others in the folder, and enqueues one line.
fn started(trunkline: &Trunkline, folder: &Folder) -> Child {
    let rest = folder.join("rest");
    let mut child =
        trunkline.start_fed(&["enqueue", "q", "--lines", "-", "--bad-lines", rest.to_str().expect("its name is text")]);
    feed(&mut child, "1\n");
    eventually("the first line is enqueued", || trunkline.json(&["stats", "q", "--json"])[0]["messages"] == 1);
    child
}

fn feed(child: &mut Child, lines: &str) {
    child.stdin.as_mut().expect("it is piped").write_all(lines.as_bytes()).expect("it reads its input");
}

/// Waits for the end. Returns the exit code and standard error.
fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn lines_behind_the_one_that_ends_the_command_are_counted() {
    let trunkline = Trunkline::with_queue(&["--type", "int4"]);
    let lines: String = (0..900).map(|n| if n == 300 { "x\n".to_owned() } else { format!("{n}\n") }).collect();
    let (code, error) =
        crate::fixture::failed(&trunkline.fed(&["enqueue", "q", "--lines", "-"], lines.as_bytes()), &[]);
    assert!(code == 1 && error.contains("hint: the 300 preceding lines were enqueued"), "{error}");
    assert!(
        error.contains("; 600 lines were read from the stream and not enqueued: --bad-lines FILE saves"),
        "{error}"
    );
}

#[test]
fn lines_of_a_file_that_stays_are_not_counted() {
    let (trunkline, folder) = (Trunkline::with_queue(&["--type", "int4"]), Folder::new());
    let path = folder.join("lines");
    fs::write(&path, "1\nx\n2\n").expect("it can be written");
    let (_, error) = trunkline.fails(&["enqueue", "q", "--lines", path.to_str().expect("its name is text")]);
    assert!(!error.contains("not enqueued"), "{error}");
    let mut command = trunkline.command(&["enqueue", "q", "--lines", "-"]);
    let output = command.stdin(fs::File::open(&path).expect("it is there")).output().expect("the program runs");
    let (_, error) = crate::fixture::failed(&output, &[]);
    assert!(error.contains("line 2: ") && !error.contains("not enqueued"), "{error}");
}

#[test]
fn lines_that_the_database_refuses_are_saved() {
    let (trunkline, folder) = (Trunkline::with_queue(&[]), Folder::new());
    let mut child = started(&trunkline, &folder);
    trunkline.ok(&["queue", "drop", "q", "--yes"]);
    feed(&mut child, "2\n3\n\n");
    let (code, error) = ended(child);
    assert!(code == Some(1) && error.contains("the 1 preceding lines were enqueued"), "{error}");
    assert!(error.contains("3 lines were read from the stream and not enqueued, and appended to "), "{error}");
    assert_eq!(fs::read_to_string(folder.join("rest")).expect("it was written"), "2\n3\n\n");
}

#[test]
fn signal_leaves_each_line_in_the_queue_or_in_the_file() {
    let (trunkline, folder) = (Trunkline::with_queue(&[]), Folder::new());
    let mut child = started(&trunkline, &folder);
    let mut lock = Session::begin(&trunkline.url, "begin; lock table trunkline.queue_q");
    let lines: Vec<String> = (2..5_000).map(|n| n.to_string()).collect();
    feed(&mut child, &(lines.join("\n") + "\n"));
    let waits = "select 1 from pg_locks where not granted and relation = 'trunkline.queue_q'::regclass";
    eventually("a chunk waits for the lock", || lock.run(waits).len() == 1);
    signal(&child, "INT");
    lock.run("commit");
    let (code, error) = ended(child);
    assert!(code == Some(1) && error.contains("error: interrupted after "), "{error}");
    assert!(!error.contains("tail"), "{error}");
    let mut found = trunkline.lines(&["dequeue", "q"]);
    found.extend(fs::read_to_string(folder.join("rest")).expect("it was written").lines().map(str::to_owned));
    assert_eq!(found, (1..5_000).map(|n: u32| n.to_string()).collect::<Vec<_>>());
}

#[test]
fn lines_whose_answer_is_lost_are_not_called_missing() {
    let (near, folder) = (Trunkline::with_queue(&[]), Folder::new());
    let (mut proxy, _, far) = delay_proxy::far(&near, "0", "0");
    let mut child = started(&far, &folder);
    // A locked table would make the preparation wait, and the insert would not have been sent.
    let waits = "create function waits() returns trigger language plpgsql as $$
                 begin perform pg_advisory_xact_lock(1); return new; end $$;
                 create trigger waits before insert on trunkline.queue_q for each row execute function waits()";
    let mut lock = Session::begin(&near.url, waits);
    lock.run("begin; select pg_advisory_xact_lock(1)");
    feed(&mut child, "2\n3\n");
    // On a shared connection, a statement waits for half a second at most.
    let waits = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
                 and query_start < clock_timestamp() - interval '1 second'";
    eventually("the lines wait on a connection of their own", || rows(&near.url, waits).len() == 1);
    proxy.kill().and_then(|()| proxy.wait()).expect("it can be killed");
    let (code, error) = ended(child);
    assert!(code == Some(1) && error.contains("it is not known whether these lines were enqueued"), "{error}");
    assert!(error.contains("2 lines were read from the stream and not confirmed, and appended to "), "{error}");
    assert!(error.contains("; all of them may already be enqueued"), "{error}");
    assert_eq!(fs::read_to_string(folder.join("rest")).expect("it was written"), "2\n3\n");
    lock.run("commit");
}
