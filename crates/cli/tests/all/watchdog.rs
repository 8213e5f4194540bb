//! Kills programs that do not end, and reports where they are stuck. So tests can wait for programs
//! without their own time limits.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    panic,
    sync::Once,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::fixture::rows;

/// The maximum time for which a test may run a program.
const LONGEST: Duration = Duration::from_secs(240);
const BETWEEN_LOOKS: Duration = Duration::from_secs(5);

/// Watches the programs that this process starts, beginning with the first call.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        thread::spawn(|| {
            let mut seen: BTreeMap<i32, Instant> = BTreeMap::new();
            loop {
                let ours = ours();
                seen.retain(|id, _| ours.contains(id));
                for id in ours {
                    if seen.entry(id).or_insert_with(Instant::now).elapsed() > LONGEST {
                        end(id);
                    }
                }
                thread::sleep(BETWEEN_LOOKS);
            }
        });
    });
}

/// Returns the ids of the `trunkline` processes that this process has started.
fn ours() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|id| is_ours(*id)).collect()
}

fn is_ours(id: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.contains("(trunkline)") && parent(&stat) == Some(std::process::id())
}

/// Returns the parent's id from a line of `/proc/ID/stat`: `ID (NAME) STATE PARENT …`.
pub fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// Bypasses the test harness, which would attribute the line to the first test and show it only if
/// that test fails.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}"); // there is no other place to report to
}

fn end(id: i32) {
    let read = |name: &str| {
        let text = fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    };
    say(&format!("{} runs for more than {} s:", read("cmdline").replace('\0', " "), LONGEST.as_secs()));
    let threads = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    for thread in threads.filter_map(|thread| thread.file_name().into_string().ok()) {
        let [name, waits_in, calls] = ["comm", "wchan", "syscall"].map(|file| read(&format!("task/{thread}/{file}")));
        say(&format!("  thread {thread} {} in {waits_in}, system call {}", name.trim_end(), calls.trim_end()));
    }
    let environment = read("environ");
    if let Some(url) = environment.split('\0').find_map(|variable| variable.strip_prefix("DATABASE_URL=")) {
        let sessions = "select format('  session %s %s %s since %s: %s', pid, application_name, state, \
                                      clock_timestamp() - state_change, left(query, 200)) \
                        from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
        // Some tests have stopped the server, so the query may fail.
        let found = panic::catch_unwind(|| rows(url, sessions)).unwrap_or_default();
        for session in found {
            say(&session);
        }
    }
    if let Some(id) = Pid::from_raw(id) {
        let _ = kill_process(id, Signal::KILL); // the process may have just ended
    }
}
