//! Reads processor time, memory, and the time that the machine's host gave to other machines. Only
//! Linux has these counters; on other systems these values are unknown.

use std::{collections::HashMap, fs};

use crate::results::TICK;

/// The step of the scheduler's counter, in seconds. The counter counts nanoseconds, but its value
/// lags slightly behind for a running task.
const SCHEDULER: f64 = 1e-6;

/// The resources that a process and its descendants have used so far, including descendants that
/// have ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    /// Seconds of processor time.
    pub cpu: f64,
    /// The step of the counter that `cpu` comes from.
    pub step: f64,
    /// Bytes that were read from disk, if the system counts them.
    pub read: u64,
    /// Bytes that were written to disk, if the system counts them.
    pub written: u64,
}

pub fn used(root: u32) -> Option<Used> {
    let mut all = Used { step: SCHEDULER, ..Used::default() };
    for (at, pid) in tree(root).into_iter().enumerate() {
        let Some(stat) = Stat::of(pid) else {
            if at == 0 {
                return None;
            }
            // A descendant may end while it is counted.
            continue;
        };
        let (counted, scheduled) = (stat.ticks as f64 * TICK, scheduled(pid));
        // A task that has only just started, or has exited, has no such counter. This does not
        // affect the resolution of the other tasks' counters.
        let has_worked = |stat: Stat| stat.ticks > 0;
        if scheduled.is_none() && (at == 0 || Stat::of(pid).is_some_and(has_worked)) {
            all.step = TICK;
        }
        // Uses the larger value, because only the ticks include threads that have ended.
        all.cpu += counted.max(scheduled.unwrap_or_default());
        all.cpu += stat.ended as f64 * TICK;
        let (read, written) = disk(pid).unwrap_or_default();
        (all.read, all.written) = (all.read + read, all.written + written);
    }
    Some(all)
}

/// Returns the sum of the peak memory of a process and its descendants, in bytes.
pub fn memory(root: u32) -> Option<u64> {
    let peak = |pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let kilobytes = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        kilobytes.split_whitespace().next()?.parse::<u64>().ok()
    };
    let all: u64 = tree(root).into_iter().filter_map(peak).sum();
    (all > 0).then_some(1024 * all)
}

/// Returns the process, followed by its living descendants.
fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok())
            && let Some(stat) = Stat::of(pid)
        {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    let (mut all, mut at) = (vec![root], 0);
    while at < all.len() {
        all.extend(children.remove(&all[at]).unwrap_or_default());
        at += 1;
    }
    all
}

/// Returns the time that the scheduler gave to the living threads of the process, in seconds.
fn scheduled(pid: u32) -> Option<f64> {
    let mut nanoseconds = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let Ok(text) = fs::read_to_string(task.path().join("schedstat")) else { continue };
        nanoseconds += text.split(' ').next()?.parse::<u64>().ok()?;
    }
    (nanoseconds > 0).then_some(nanoseconds as f64 / 1e9)
}

fn disk(pid: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let bytes = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some((bytes("read_bytes:")?, bytes("write_bytes:")?))
}

struct Stat {
    parent: u32,
    /// The ticks that the process itself has used.
    ticks: u64,
    /// The ticks of the process's children that have exited and were waited for.
    ended: u64,
}

impl Stat {
    /// Reads fields of `/proc/PID/stat`, numbered as in proc(5): field 4 is the parent, and fields
    /// 14 to 17 are the times.
    fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Skips the second field: a name in parentheses, which may contain anything.
        let fields: Vec<&str> = text.get(text.rfind(')')? + 2..)?.split(' ').collect();
        let sum = |fields: &[&str]| fields.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            ticks: sum(fields.get(11..13)?),
            ended: sum(fields.get(13..15)?),
        })
    }
}

/// Returns the stolen ticks and the total ticks of all processors so far.
pub fn stolen() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    Some((*ticks.get(7)?, ticks.iter().take(8).sum()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_hundredth_of_a_tick_of_processor_time_is_seen() {
        let pid = std::process::id();
        let before = used(pid).expect("this process is there");
        assert!(before.step < TICK, "the scheduler's own counters are not here");
        let spent = || used(pid).expect("this process is there").cpu - before.cpu;
        // On a busy machine this process may get no processor time for 30 ms.
        let began = Instant::now();
        while spent() <= 0.001 && began.elapsed() < Duration::from_secs(10) {
            let turn = Instant::now();
            while turn.elapsed() < Duration::from_millis(30) {
                std::hint::spin_loop();
            }
            // Sleeps, because the scheduler updates the counter of a running task only when it
            // takes the task off the processor.
            std::thread::sleep(Duration::from_millis(1));
        }
        let spent = spent();
        assert!(spent > 0.001, "{spent}");
        assert!(memory(pid).expect("it has memory") > 100_000);
    }
}
