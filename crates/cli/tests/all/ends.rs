//! No message is missing, however a consumer ends.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, ChildStdout},
    time::{Duration, Instant},
};

use crate::fixture::{Trunkline, eventually, rows, signal, sql, unset_database};

const NUMBERS: u32 = 30_000;

/// Returns the numbers on complete lines.
fn numbers(bytes: &[u8]) -> Vec<u32> {
    let text = std::str::from_utf8(bytes).expect("numbers are text");
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| line.parse().expect("a line is a number")).collect()
}

fn read(out: &mut ChildStdout, bytes: usize) -> Vec<u8> {
    let mut found = vec![0; bytes];
    out.read_exact(&mut found).expect("there is that much");
    found
}

fn read_all(out: &mut ChildStdout, found: &mut Vec<u8>) {
    out.read_to_end(found).expect("it can be read to its end");
}

/// Checks that each number occurs once, in any order.
fn assert_each_once(mut found: Vec<u32>) {
    found.sort_unstable();
    assert!(found.iter().copied().eq(0..NUMBERS), "{} numbers, not each of {NUMBERS} once", found.len());
}

fn rest(trunkline: &Trunkline) -> Vec<u32> {
    let rest = numbers(trunkline.ok(&["dequeue", "q"]).as_bytes());
    let stats = trunkline.json(&["stats", "--json"]).remove(0);
    assert_eq!((&stats["messages"], &stats["dead"]), (&0.into(), &0.into()));
    rest
}

/// Starts a consumer of a queue in which a message is dead after one counted attempt.
fn started(args: &[&str]) -> (Trunkline, Child, ChildStdout) {
    let trunkline = Trunkline::with_queue(&["--max-attempts", "1"]);
    trunkline.enqueue_numbers(NUMBERS);
    let mut child = trunkline.start(&[&["dequeue", "q"], args].concat());
    let out = child.stdout.take().expect("it is piped");
    (trunkline, child, out)
}

#[test]
fn a_reader_that_goes_away_early_loses_nothing() {
    let (trunkline, mut child, mut out) = started(&[]);
    let mut found = numbers(&read(&mut out, 10_000));
    drop(out);
    assert!(child.wait().expect("it ends").success());
    found.extend(rest(&trunkline));
    assert_each_once(found);
}

#[test]
fn a_reader_that_goes_away_while_nothing_comes_ends_it() {
    let trunkline = Trunkline::with_queue(&[]);
    trunkline.ok(&["enqueue", "q", "1"]);
    let mut child = trunkline.start(&["dequeue", "q", "--follow"]);
    let mut out = child.stdout.take().expect("it is piped");
    assert_eq!(read(&mut out, 2), b"1\n");
    drop(out);
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn failed_release_is_an_error_even_without_a_reader() {
    let trunkline = Trunkline::with_queue(&[]);
    trunkline.ok(&["enqueue", "q", "1"]);
    let mut child = trunkline.start(&["dequeue", "q", "--follow"]);
    eventually("it is leased", || trunkline.json(&["stats", "--json"])[0]["leased"] == 1);
    sql(
        &trunkline.url,
        "create function public.no() returns trigger language plpgsql as $$ begin raise exception 'no release'; end $$;
         create trigger no before update on trunkline.queue_q for each row execute function public.no()",
    );
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("no release"), "{error}");
}

#[test]
fn a_signal_ends_it_in_order() {
    for name in ["INT", "TERM"] {
        let (trunkline, mut child, mut out) = started(&["--follow"]);
        let mut found = read(&mut out, 10_000);
        signal(&child, name);
        read_all(&mut out, &mut found);
        assert!(child.wait().expect("it ends").success());
        let mut found = numbers(&found);
        found.extend(rest(&trunkline));
        assert_each_once(found);
    }
}

#[test]
fn a_signal_ends_it_also_when_nobody_reads() {
    let (trunkline, mut child, mut out) = started(&[]);
    // Waits until the number of leased messages no longer changes. Then the pipe is full, or all
    // messages are leased and written.
    let leased = || trunkline.json(&["stats", "--json"])[0]["leased"].as_u64();
    let mut before = None;
    eventually("it is stuck", || std::mem::replace(&mut before, leased()) == leased() && before > Some(0));
    signal(&child, "INT");
    assert!(child.wait().expect("it ends").success());
    let mut found = Vec::new();
    read_all(&mut out, &mut found);
    let mut found = numbers(&found);
    assert!(!found.is_empty());
    found.extend(rest(&trunkline));
    assert_each_once(found);
}

#[test]
fn slow_reader_keeps_the_leases_of_what_it_has_not_read() {
    let trunkline = Trunkline::with_queue(&["--max-attempts", "1", "--lease", "1"]);
    trunkline.enqueue_numbers(10);
    let mut child = trunkline.start(&["dequeue", "q"]);
    let mut out = child.stdout.take().expect("it is piped");
    let counts = || trunkline.json(&["stats", "--json"]).remove(0);
    // Checks that the lease is extended after a third of a second. Otherwise it would end after a
    // second, and the message would be dead.
    let lasts = || rows(&trunkline.url, "select max(due_at) from trunkline.queue_q");
    let mut found = Vec::new();
    for left in (0..10).rev() {
        found.extend(read(&mut out, 2));
        eventually("what is read is acknowledged", || counts()["messages"] == left);
        let before = lasts();
        eventually("the others are extended", || left == 0 || lasts() != before);
    }
    read_all(&mut out, &mut found);
    assert!(child.wait().expect("it ends").success());
    assert_eq!(numbers(&found), (0..10).collect::<Vec<_>>());
    assert_eq!(counts()["dead"], 0);
}

#[test]
fn follower_goes_on_beside_what_is_not_read_yet() {
    let trunkline = Trunkline::with_queue(&[]);
    let mut child = trunkline.start(&["dequeue", "q", "--follow"]);
    let counts = || trunkline.json(&["stats", "--json"]).remove(0);
    for n in 1..=3 {
        trunkline.ok(&["enqueue", "q", &n.to_string()]);
        eventually("it is written and not acknowledged", || counts()["leased"] == n);
    }
    assert_eq!(read(child.stdout.as_mut().expect("it is piped"), 6), b"1\n2\n3\n");
    eventually("what is read is acknowledged", || counts()["messages"] == 0);
    signal(&child, "TERM");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn leases_of_unread_messages_last_while_others_arrive() {
    let trunkline = Trunkline::with_queue(&["--lease", "1", "--max-attempts", "1"]);
    let mut child = trunkline.start(&["dequeue", "q", "--follow"]);
    let counts = || trunkline.json(&["stats", "--json"]).remove(0);
    let (begun, mut n) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(4) {
        trunkline.ok(&["enqueue", "q", &n.to_string()]);
        n += 1;
        eventually("all are leased", || counts()["leased"] == n);
    }
    signal(&child, "TERM");
    let mut found = Vec::new();
    read_all(child.stdout.as_mut().expect("it is piped"), &mut found);
    assert!(child.wait().expect("it ends").success());
    assert_eq!(numbers(&found), (0..n).collect::<Vec<_>>());
    assert_eq!((counts()["messages"].as_u64(), counts()["dead"].as_u64()), (Some(0), Some(0)));
}

#[test]
fn it_says_that_it_waits_for_its_reader() {
    let trunkline = Trunkline::with_queue(&[]);
    trunkline.ok(&["enqueue", "q", "1"]);
    let mut child = trunkline.start(&["dequeue", "q"]);
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().expect("it is piped")).read_line(&mut line).expect("text");
    assert!(line.starts_with("waiting for the reader of standard output, which has not read 2 bytes"), "{line}");
    assert_eq!(read(child.stdout.as_mut().expect("it is piped"), 2), b"1\n");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_signal_ends_it_while_it_waits() {
    let trunkline = Trunkline::with_queue(&[]);
    trunkline.ok(&["enqueue", "q", "1"]);
    let mut child = trunkline.start(&["dequeue", "q", "--follow"]);
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("it can be read");
    eventually("it is acknowledged", || trunkline.json(&["stats", "--json"])[0]["messages"] == 0);
    signal(&child, "TERM");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_consumer_that_is_killed_and_started_again_misses_nothing() {
    let trunkline = Trunkline::with_queue(&["--lease", "0.5"]);
    trunkline.enqueue_numbers(NUMBERS);
    let mut child = trunkline.start(&["dequeue", "q", "--follow"]);
    let mut out = child.stdout.take().expect("it is piped");
    let mut found = read(&mut out, 50_000);
    child.kill().expect("it can be killed");
    read_all(&mut out, &mut found);
    child.wait().expect("it ends");
    let mut found = numbers(&found);
    let before = found.len();
    assert!(before < NUMBERS as usize, "it was killed midway");
    eventually("the queue is empty", || {
        found.extend(numbers(trunkline.ok(&["dequeue", "q"]).as_bytes()));
        trunkline.json(&["stats", "--json"])[0]["messages"] == 0
    });
    found.sort_unstable();
    found.dedup(); // messages may arrive twice
    assert_each_once(found);
}

#[test]
fn at_most_once_never_prints_twice_however_it_ends() {
    let (trunkline, mut child, mut out) = started(&["--mode", "at-most-once"]);
    let mut found = numbers(&read(&mut out, 10_000));
    drop(out);
    child.wait().expect("it ends");
    found.extend(rest(&trunkline));
    let all = found.len();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), all);
    // Allows for one full pipe and one chunk, which this mode may lose.
    assert!(all > NUMBERS as usize - 28_000, "{all}");
}

#[test]
fn dequeue_without_a_standard_output_takes_nothing() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    trunkline.ok(&["enqueue", "q", "kept"]);
    let program = env!("CARGO_BIN_EXE_trunkline");
    for mode in ["at-least-once", "at-most-once"] {
        let line = format!("exec {program} dequeue q --mode {mode} >&-");
        let mut sh = std::process::Command::new("sh");
        unset_database(&mut sh);
        let output = sh.args(["-c", &line]).env("DATABASE_URL", &trunkline.url).output().expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && error.contains("standard output is closed"), "{error}");
    }
    assert_eq!(trunkline.json(&["stats", "--json"])[0]["due"], 1);
    let line = format!("{program} dequeue q >/dev/null");
    let mut sh = std::process::Command::new("sh");
    unset_database(&mut sh);
    assert!(sh.args(["-c", &line]).env("DATABASE_URL", &trunkline.url).status().expect("it runs").success());
    assert_eq!(trunkline.json(&["stats", "--json"])[0]["messages"], 0);
}

#[test]
fn line_without_a_command_handles_no_message() {
    let trunkline = Trunkline::with_queue(&["--type", "text"]);
    trunkline.ok(&["enqueue", "q", "kept"]);
    for line in ["$NO_SUCH_HANDLER", "${NO_SUCH_HANDLER:-}", "# a comment", "A=1", ">/dev/null"] {
        let (code, error) = trunkline.fails(&["work", "q", "--drain", "--exec", line]);
        assert!(code == 2 && error.contains("--exec contains no command"), "{line}: {error}");
    }
    assert_eq!(trunkline.json(&["stats", "--json"])[0]["due"], 1);
}
