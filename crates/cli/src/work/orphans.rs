//! Reaps processes that commands leave behind, if this program is the first process of a container.
//! The system then makes this program their parent, and no other process waits for them.

use std::{collections::BTreeSet, convert::Infallible, fs, future::pending, time::Duration};

use rustix::process::{Pid, WaitOptions, waitpid};

use super::group;

const PAUSE: Duration = Duration::from_secs(1);

/// Reaps orphans if this process is the first one. Otherwise does nothing, because the first
/// process reaps them.
pub async fn reap() -> Infallible {
    if std::process::id() != 1 {
        pending::<()>().await;
    }
    loop {
        tokio::time::sleep(PAUSE).await;
        // Leaves the commands themselves to other code, which waits for them.
        group::with_ids(|commands| ended(commands).into_iter().for_each(take));
    }
}

fn take(id: Pid) {
    let _ = waitpid(Some(id), WaitOptions::NOHANG); // another part of the program may already have reaped the process
}

/// Returns the children of this process that have ended, except `but`.
fn ended(but: &BTreeSet<i32>) -> Vec<Pid> {
    let own = std::process::id().to_string();
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let ended = numbers.filter(|id| {
        !but.contains(id) && fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| is_zombie_of(&stat, &own))
    });
    ended.filter_map(Pid::from_raw).collect()
}

/// Returns true if a line of `/proc/ID/stat` describes a zombie of `parent`:
/// `ID (NAME) STATE PARENT …`. The name may contain any characters.
fn is_zombie_of(stat: &str, parent: &str) -> bool {
    let mut words = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    words.next() == Some("Z") && words.next() == Some(parent)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Returns a child that has ended and was not waited for.
    fn zombie() -> Child {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat starts");
        drop(child.stdin.take());
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while !ended(&BTreeSet::new()).contains(&pid(&child)) {
            assert!(std::time::Instant::now() < deadline, "cat does not end");
            std::thread::yield_now();
        }
        child
    }

    fn pid(child: &Child) -> Pid {
        Pid::from_raw(child.id().cast_signed()).expect("a number")
    }

    #[test]
    fn orphans_are_reaped_and_commands_are_left() {
        let (orphan, mut command) = (zombie(), zombie());
        let commands = BTreeSet::from([pid(&command).as_raw_nonzero().get()]);
        ended(&commands).into_iter().for_each(take);
        assert!(!fs::exists(format!("/proc/{}", orphan.id())).expect("it can be looked for"));
        assert!(command.wait().expect("it is there to be waited for").success());
    }

    #[test]
    fn a_name_with_a_parenthesis_is_no_state() {
        assert!(is_zombie_of("7 (a) Z 1 b) Z 1 7 7 0", "1"));
        assert!(!is_zombie_of("7 (a) Z 1 b) S 1 7 7 0", "1"));
        assert!(!is_zombie_of("7 (cat) Z 12 7 7 0", "1"));
    }
}
