//! What the machine says of itself: processor time, memory, what its host took away. Linux tells;
//! elsewhere it is unknown.

use std::{collections::HashMap, fs};

use crate::results::TICK;

/// The scheduler counts in nanoseconds; what it tells of a task that runs at this moment is a
/// little late.
const SCHEDULER: f64 = 1e-6;

/// What a process and all that came from it have used so far, those that have ended, too.
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    /// Seconds of processor time.
    pub cpu: f64,
    /// The step of the counter that it comes from.
    pub step: f64,
    /// Bytes that came from disk and went there, where the system tells.
    pub read: u64,
    pub written: u64,
}

pub fn used(root: u32) -> Option<Used> {
    let mut all = Used { step: SCHEDULER, ..Used::default() };
    for (at, pid) in tree(root).into_iter().enumerate() {
        let Some(stat) = Stat::of(pid) else {
            if at == 0 {
                return None;
            }
            // Others may end while they are counted.
            continue;
        };
        let (counted, scheduled) = (stat.ticks as f64 * TICK, scheduled(pid));
        // One that has only just begun, or ended meanwhile, has no such counter; that says nothing
        // of the others'.
        let has_worked = |stat: Stat| stat.ticks > 0;
        if scheduled.is_none() && (at == 0 || Stat::of(pid).is_some_and(has_worked)) {
            all.step = TICK;
        }
        // Threads that have ended are in the ticks alone.
        all.cpu += counted.max(scheduled.unwrap_or_default());
        all.cpu += stat.ended as f64 * TICK;
        let (read, written) = disk(pid).unwrap_or_default();
        (all.read, all.written) = (all.read + read, all.written + written);
    }
    Some(all)
}

/// The most memory that the processes held, in bytes, added up.
pub fn memory(root: u32) -> Option<u64> {
    let peak = |pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let kilobytes = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        kilobytes.split_whitespace().next()?.parse::<u64>().ok()
    };
    let all: u64 = tree(root).into_iter().filter_map(peak).sum();
    (all > 0).then_some(1024 * all)
}

/// The process and all that came from it and are still there, the process first.
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

/// Seconds that the scheduler gave to the threads of the process that are still there.
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
    /// Of the process itself.
    ticks: u64,
    /// Of its children that have ended and were waited for.
    ended: u64,
}

impl Stat {
    /// Fields of `/proc/PID/stat`, numbered as in proc(5): 4 is the parent, 14 to 17 the times.
    fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is a name in parentheses, which may hold anything.
        let fields: Vec<&str> = text.get(text.rfind(')')? + 2..)?.split(' ').collect();
        let sum = |fields: &[&str]| fields.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            ticks: sum(fields.get(11..13)?),
            ended: sum(fields.get(13..15)?),
        })
    }
}

/// Ticks of all processors so far: those that the host kept, and all.
pub fn stolen() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    Some((*ticks.get(7)?, ticks.iter().take(8).sum()))
}

/// The processor's name.
pub fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    name.unwrap_or("unknown").to_owned()
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
        // On a busy machine 30 ms may pass without any of it.
        let began = Instant::now();
        while spent() <= 0.001 && began.elapsed() < Duration::from_secs(10) {
            let turn = Instant::now();
            while turn.elapsed() < Duration::from_millis(30) {
                std::hint::spin_loop();
            }
            // What runs at this moment is counted when it is next put aside.
            std::thread::sleep(Duration::from_millis(1));
        }
        let spent = spent();
        assert!(spent > 0.001, "{spent}");
        assert!(memory(pid).expect("it has memory") > 100_000);
    }
}
