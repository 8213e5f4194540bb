//! No end of `trunkline work` loses a message or counts an attempt needlessly.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use crate::{
    delay_proxy,
    fixture::{Folder, Trunkline, eventually, retry_late, run_out, signal, sql, stop, unset_database},
    work::no_group,
};

/// A queue of numbers, and a folder for the output of commands.
pub struct Place {
    pub trunkline: Trunkline,
    pub folder: Folder,
}

impl Place {
    pub fn new(messages: u32, settings: &[&str]) -> Self {
        let trunkline = Trunkline::with_queue(&[&["--type", "int4"], settings].concat());
        trunkline.enqueue_numbers(messages);
        Self { trunkline, folder: Folder::new() }
    }

    /// Starts a worker whose commands find the folder in `$DIR`.
    pub fn work(&self, exec: &str, more: &[&str]) -> Child {
        let mut command = self.trunkline.command(&[&["work", "q", "--exec", exec], more].concat());
        let command = command.env("DIR", &self.folder.0).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("the program runs")
    }

    /// Returns the lines of a file in the folder.
    pub fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn open_gate(&self) {
        fs::write(self.folder.join("gate"), "").expect("it can be written");
    }

    pub fn stats<const N: usize>(&self, keys: [&str; N]) -> [u64; N] {
        let stats = self.trunkline.json(&["stats", "--json"]).remove(0);
        keys.map(|key| stats[key].as_u64().expect("a number"))
    }
}

/// Waits for an orderly end. Returns the last line of standard error.
pub fn ended(child: Child) -> String {
    let output = child.wait_with_output().expect("it ends");
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{:?}: {error}", output.status);
    error.lines().last().expect("a last line").to_owned()
}

/// Returns the attempts of each message, by its number. Each line is one attempt.
fn attempts(lines: &[String]) -> BTreeMap<u32, Vec<u32>> {
    let mut attempts: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for line in lines {
        let (number, attempt) = line.split_once(' ').expect("two words");
        attempts.entry(number.parse().expect("a number")).or_default().push(attempt.parse().expect("a number"));
    }
    attempts
}

pub const NOTE: &str = "read -r number; echo \"$number $TRUNKLINE_ATTEMPT\" >> $DIR/begun; ";
const WAIT: &str = "while ! [ -e $DIR/gate ]; do sleep 0.02; done; ";

#[test]
fn messages_of_killed_program_come_back_when_leases_end() {
    let place = Place::new(20, &[]);
    let mut killed = place.work(&format!("{NOTE} {WAIT}"), &["--concurrency", "3"]);
    eventually("three commands run", || place.lines("begun").len() == 3);
    killed.kill().expect("it can be killed");
    killed.wait().expect("it ends");
    place.open_gate(); // no command may write after this, because all were killed together with the program
    assert_eq!(place.stats(["messages", "leased"]), [20, 3]);
    run_out(&place.trunkline.url);
    assert!(ended(place.work(NOTE, &["--drain"])).starts_with("q: 20 done, 0 failed"));
    let attempts = attempts(&place.lines("begun"));
    assert!((0..3).all(|number| attempts[&number] == [1, 2]), "{attempts:?}");
    assert!((3..20).all(|number| attempts[&number] == [1]), "{attempts:?}");
    assert_eq!(place.stats(["messages", "dead"]), [0, 0]);
}

#[test]
fn signal_under_load_loses_repeats_and_counts_nothing() {
    // Uses enough messages that some are left for each signal, even if the signal comes late.
    let place = Place::new(2000, &["--max-attempts", "1"]);
    let exec = format!("{NOTE} sleep 0.01");
    for name in ["TERM", "INT", "HUP"] {
        let before = place.lines("begun").len();
        let child = place.work(&exec, &["--concurrency", "4"]);
        eventually("it works", || place.lines("begun").len() > before + 60);
        signal(&child, name);
        ended(child);
        let [messages, due] = place.stats(["messages", "due"]);
        assert_eq!(messages, due, "everything else is given back");
        assert_eq!(messages as usize, 2000 - place.lines("begun").len(), "what began is done");
    }
    ended(place.work(&exec, &["--drain", "--concurrency", "4"]));
    let attempts = attempts(&place.lines("begun"));
    assert!(attempts.len() == 2000 && attempts.values().all(|attempts| attempts.len() == 1));
    assert_eq!(place.stats(["messages", "dead"]), [0, 0]);
}

#[test]
fn commands_that_outlast_the_end_are_ended_without_counted_attempts() {
    let place = Place::new(2, &["--max-attempts", "1"]);
    let exec = "trap 'echo >> $DIR/heard; exit' TERM; echo $$ >> $DIR/groups; sleep 600 & wait";
    let child = place.work(exec, &["--concurrency", "2", "--shutdown-after", "0.1"]);
    eventually("both run", || place.lines("groups").len() == 2);
    signal(&child, "TERM");
    assert_eq!(ended(child), "q: 0 done, 0 failed, 2 given back");
    assert_eq!(place.lines("heard").len(), 2, "they hear SIGTERM");
    place.lines("groups").iter().for_each(|id| no_group(id));
    assert_eq!(place.stats(["due", "dead"]), [2, 0]);
}

#[test]
fn retries_count_failures_and_no_orderly_ends() {
    let place = Place::new(1, &[]);
    retry_late(&place.trunkline.url); // each drain makes one attempt
    for ends in 1..=3 {
        let child = place.work("echo >> $DIR/begun; sleep 600", &["--shutdown-after", "0.1"]);
        eventually("it runs", || place.lines("begun").len() == ends);
        signal(&child, "TERM");
        assert_eq!(ended(child), "q: 0 done, 0 failed, 1 given back");
    }
    for failures in 1..=3 {
        assert_eq!(place.stats(["messages", "dead"]), [1, 0], "before failure {failures}");
        ended(place.work("exit 1", &["--drain", "--retries", "2"]));
        run_out(&place.trunkline.url); // makes the message due immediately
    }
    assert_eq!(place.stats(["messages", "dead"]), [0, 1], "two retries after the first try");
    let dead = place.trunkline.json(&["dead", "list", "q", "--json"]).remove(0);
    assert_eq!(dead["attempt"], 3);
}

#[test]
fn a_reader_that_goes_away_ends_it_in_order() {
    let place = Place::new(200, &["--max-attempts", "1"]);
    let mut child = place.trunkline.start(&["work", "q", "--concurrency", "1", "--exec", "cat; sleep 0.01"]);
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("it prints");
    assert!(line.starts_with("q ") && line.ends_with(" | 0\n"), "{line}");
    let last = ended(child);
    let [messages, due, dead] = place.stats(["messages", "due", "dead"]);
    assert!(messages > 0 && messages == due && dead == 0, "{messages} {due} {dead}");
    assert!(last.starts_with(&format!("q: {} done, 0 failed", 200 - messages)), "{last}");
}

#[test]
fn a_full_disk_is_an_error_and_no_orderly_end() {
    let place = Place::new(50, &["--max-attempts", "1"]);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
    let args = ["work", "q", "--concurrency", "1", "--exec", "cat; sleep 0.01"];
    let child = place.trunkline.command(&args).stdout(full).stderr(Stdio::piped()).spawn().expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("error: cannot write to standard output: No space left on device"), "{error}");
    let [messages, due, dead] = place.stats(["messages", "due", "dead"]);
    assert!(messages > 0 && messages == due && dead == 0, "{messages} {due} {dead}: what is left is given back");
}

#[test]
fn a_hangup_that_is_ignored_stays_so() {
    let place = Place::new(0, &[]);
    let mut command = Command::new("sh");
    unset_database(&mut command);
    command.arg("-c").arg("trap '' HUP; exec \"$0\" work q --exec 'echo > $DIR/begun'");
    command.arg(env!("CARGO_BIN_EXE_trunkline")).env("DATABASE_URL", &place.trunkline.url).env("DIR", &place.folder.0);
    let child = command.stderr(Stdio::piped()).spawn().expect("it runs");
    place.trunkline.enqueue_numbers(1);
    eventually("it works", || place.stats(["messages"]) == [0]);
    signal(&child, "HUP");
    place.trunkline.enqueue_numbers(1);
    eventually("it works on", || place.stats(["messages"]) == [0]);
    signal(&child, "TERM");
    assert_eq!(ended(child), "q: 2 done, 0 failed");
}

#[test]
fn a_database_that_is_away_is_told_and_waited_for() {
    let mut place = Place::new(1, &[]);
    let (mut proxy, _, far) = delay_proxy::far(&place.trunkline, "0", "0");
    let port = far.url.split("port=").nth(1).and_then(|rest| rest.split(' ').next()).expect("a port").to_owned();
    let near = std::mem::replace(&mut place.trunkline, far);
    let mut child = place.work(&format!("{NOTE} {WAIT}"), &[]);
    eventually("it works", || place.lines("begun").len() == 1);
    proxy.kill().and_then(|()| proxy.wait()).expect("it can be killed");
    place.open_gate();
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let told = "warning: worker lost the database; retrying with backoff";
    assert!(lines.any(|line| line.is_ok_and(|line| line.starts_with(told))), "it says so");
    let (mut proxy, ..) = delay_proxy::far(&near, &port, "0");
    eventually("it works again", || place.stats(["messages"]) == [0]);
    signal(&child, "TERM");
    let last = lines.last().expect("a last line").expect("text");
    assert_eq!(last, "q: 1 done, 0 failed");
    assert!(child.wait().expect("it ends").success());
    proxy.kill().and_then(|()| proxy.wait()).expect("it can be killed");
}

#[test]
fn a_second_signal_kills_at_once() {
    let place = Place::new(1, &[]);
    let mut child = place.work("trap '' TERM; echo $$ > $DIR/groups; sleep 600; sleep 600", &[]);
    eventually("it runs", || place.lines("groups").len() == 1);
    signal(&child, "INT");
    let mut code = None;
    eventually("it ends", || {
        let ended = child.try_wait().expect("it can be asked");
        code = ended.and_then(|status| status.code());
        if ended.is_none() {
            signal(&child, "INT"); // the program may not have noticed the first signal yet
        }
        ended.is_some()
    });
    assert_eq!(code, Some(130));
    no_group(&place.lines("groups")[0]);
    assert_eq!(place.stats(["leased", "dead"]), [1, 0]);
}

#[test]
fn a_program_that_slept_past_its_lease_changes_nothing() {
    let place = Place::new(1, &[]);
    retry_late(&place.trunkline.url); // the program that slept must not receive the message again
    let asleep = place.work(&format!("{NOTE} {WAIT}"), &[]);
    eventually("it runs", || place.lines("begun").len() == 1);
    stop(&asleep);
    run_out(&place.trunkline.url);
    let other = ended(place.work(&format!("{NOTE} exit 7"), &["--drain"]));
    assert_eq!(other, "q: 0 done, 1 failed");
    place.open_gate(); // the command succeeds, but too late
    signal(&asleep, "CONT");
    signal(&asleep, "TERM");
    assert_eq!(ended(asleep), "q: 0 done, 0 failed, 1 discarded because the lease was lost");
    assert_eq!(place.stats(["to_retry", "messages", "dead"]), [1, 1, 0]);
}

#[test]
fn a_command_whose_lease_is_lost_is_ended() {
    let place = Place::new(1, &[]);
    let exec = "echo $$ >> $DIR/groups; sleep 600";
    let child = place.work(exec, &[]);
    eventually("it runs", || place.lines("groups").len() == 1);
    place.trunkline.ok(&["purge", "q", "--yes"]); // deletes the message, so its lease is lost
    no_group(&place.lines("groups")[0]);
    signal(&child, "TERM");
    assert_eq!(ended(child), "q: 0 done, 0 failed, 1 discarded because the lease was lost");
}

/// The poison message is the first of a batch of nine, and its command kills the worker.
#[test]
fn a_poison_that_kills_the_program_dies_alone() {
    let place = Place::new(9, &["--max-attempts", "3"]);
    // The poison message kills the first program once the whole batch is leased and started.
    let strike = "while [ $(wc -l < $DIR/begun) -lt 9 ]; do sleep 0.02; done; kill -KILL $PPID; sleep 600";
    let together = format!("{NOTE} if [ $number = 0 ]; then {strike}; else {WAIT} fi");
    let mut first = place.work(&together, &["--concurrency", "9"]);
    first.wait().expect("it is killed");
    place.open_gate();
    assert_eq!(place.lines("begun").len(), 9);
    let alone = format!("{NOTE} if [ $number = 0 ]; then kill -KILL $PPID; sleep 600; fi");
    let mut killed = 0;
    loop {
        // All messages are due at the same time, so the poison message comes first, and no other
        // message is leased together with it.
        sql(&place.trunkline.url, "update trunkline.queue_q set due_at = (select clock_timestamp())");
        let mut child = place.work(&alone, &["--concurrency", "1", "--drain"]);
        if child.wait().expect("it ends").success() {
            break;
        }
        killed += 1;
        assert!(killed <= 2, "it has three attempts");
    }
    assert_eq!(place.stats(["messages", "dead"]), [0, 1]);
    let dead = place.trunkline.json(&["dead", "list", "q", "--json"]).remove(0);
    assert_eq!((&dead["payload"], &dead["attempt"]), (&"0".into(), &3.into()));
    for (number, attempts) in attempts(&place.lines("begun")) {
        let wanted: &[u32] = if number == 0 { &[1, 2, 3] } else { &[1, 2] };
        assert_eq!(attempts, wanted, "{number}");
    }
}
