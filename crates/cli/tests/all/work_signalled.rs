//! Signals that reach the program, its commands, or both.

use std::{
    fs,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    fixture::{eventually, program, send_signal, signal},
    watchdog::parent,
    work::no_group,
    work_ends::{Place, ended},
};

/// Signals all processes of a group, as a service manager does.
fn signal_group(id: &str, name: &str) {
    send_signal(name, [format!("-{id}")]);
}

/// Returns the id of the guard that the program has started.
fn guard_of(program: &Child) -> String {
    if !cfg!(target_os = "linux") {
        let found = Command::new("pgrep").args(["-P", &program.id().to_string(), "-f", "trunkline-guard"]).output();
        return String::from_utf8(found.expect("pgrep runs").stdout).expect("text").trim().to_owned();
    }
    let is_guard = |id: &String| {
        let read = |name: &str| fs::read_to_string(format!("/proc/{id}/{name}")).unwrap_or_default();
        parent(&read("stat")) == Some(program.id()) && read("cmdline").contains("trunkline-guard")
    };
    let entries = fs::read_dir("/proc").expect("the processes are listed").flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).find(is_guard).expect("a guard runs")
}

#[test]
fn a_killed_program_takes_its_commands_with_it() {
    let place = Place::new(2, &[]);
    let mut child = place.work("echo $$ >> $DIR/groups; sleep 600 & sleep 600", &["--concurrency", "2"]);
    eventually("both run", || place.lines("groups").len() == 2);
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    place.lines("groups").iter().for_each(|id| no_group(id));
    assert_eq!(place.stats(["leased", "dead"]), [2, 0]);
}

#[test]
fn guard_outlasts_terminal_signals_and_ends_with_the_program() {
    let place = Place::new(1, &[]);
    let child = place.work("echo $$ >> $DIR/groups; sleep 600", &["--shutdown-after", "0.1"]);
    eventually("it runs", || place.lines("groups").len() == 1);
    let guard = guard_of(&child);
    for name in ["HUP", "INT", "TERM"] {
        signal_group(&guard, name);
    }
    signal(&child, "TERM");
    assert_eq!(ended(child), "q: 0 done, 0 failed, 1 given back");
    no_group(&guard);
}

#[test]
fn commands_signalled_with_program_are_given_back_without_counted_attempts() {
    for (name, exec) in [
        ("TERM", "echo $$ >> $DIR/groups; exec sleep 600"),
        ("INT", "echo $$ >> $DIR/groups; exec sleep 600"),
        ("HUP", "echo $$ >> $DIR/groups; sleep 600; true"),
        ("TERM", "trap 'exit 143' TERM; echo $$ >> $DIR/groups; sleep 600 & wait"),
    ] {
        let place = Place::new(3, &["--max-attempts", "1"]);
        let child = place.work(exec, &["--concurrency", "2"]);
        eventually("two run", || place.lines("groups").len() == 2);
        // Signals the commands and then the program, with one process. The program must get its
        // signal within half a second.
        let groups = place.lines("groups").into_iter().map(|id| format!("-{id}"));
        send_signal(name, groups.chain([child.id().to_string()]));
        assert_eq!(
            ended(child).trim_end_matches(", 1 given back"),
            "q: 0 done, 0 failed, 2 given back",
            "{name}: {exec}"
        );
        assert_eq!(place.stats(["due", "dead"]), [3, 0], "{name}: {exec}");
    }
}

#[test]
fn a_command_that_alone_gets_a_signal_has_failed() {
    let place = Place::new(1, &["--max-attempts", "1"]);
    let child = place.work("echo $$ >> $DIR/groups; exec sleep 600", &["--drain"]);
    eventually("it runs", || place.lines("groups").len() == 1);
    signal_group(&place.lines("groups")[0], "TERM");
    assert_eq!(ended(child), "q: 0 done, 0 failed, 1 dead");
    assert_eq!(place.trunkline.json(&["dead", "list", "q", "--json"])[0]["error"], "ended by signal 15");
}

/// A server that accepts a connection and then says nothing must not delay the end.
#[test]
fn signal_ends_a_program_that_is_still_connecting() {
    for args in [&["work", "q", "--exec", "true"][..], &["schedule", "run"]] {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("postgresql://ada@{}/q?connect_timeout=60", silent.local_addr().expect("its address"));
        let mut command = program();
        command.args(args).env("DATABASE_URL", url).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().expect("it runs");
        let _connection = silent.accept().expect("it connects");
        let asked = Instant::now();
        signal(&child, "TERM");
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(asked.elapsed() < Duration::from_secs(20), "{args:?}: {:?}", asked.elapsed());
    }
}
