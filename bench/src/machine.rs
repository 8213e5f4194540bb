//! What the machine says of itself: processor time, what its host took away, how fast the disk is. Linux tells; elsewhere it is unknown.

use std::{
    collections::HashMap,
    fs,
    io::{Seek, Write},
    path::Path,
    time::{Duration, Instant},
};

use crate::Failure;

/// The kernel counts processor time in hundredths of a second, in the files that are read here.
const TICK: f64 = 0.01;

/// Seconds of processor time that a process and all that came from it have used so far, those that have ended, too.
pub fn cpu(root: u32) -> Option<f64> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        if let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok())
            && let Some(stat) = Stat::of(pid)
        {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    let (mut all, mut left) = (0.0, vec![root]);
    while let Some(pid) = left.pop() {
        if let Some(stat) = Stat::of(pid) {
            all += stat.ticks as f64 * TICK;
        } else if pid == root {
            return None;
        }
        left.extend(children.remove(&pid).unwrap_or_default());
    }
    Some(all)
}

struct Stat {
    parent: u32,
    /// Of the process and of its children that have ended and were waited for.
    ticks: u64,
}

impl Stat {
    /// Fields of `/proc/PID/stat`, numbered as in proc(5): 4 is the parent, 14 to 17 the times.
    fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is a name in parentheses, which may hold anything.
        let fields: Vec<&str> = text.get(text.rfind(')')? + 2..)?.split(' ').collect();
        let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
        Some(Self { parent: fields.get(1)?.parse().ok()?, ticks })
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

/// How many writes of 8 KiB a second the disk makes durable now; measured for so long at most, as long as that is enough for five.
pub fn fsyncs_per_second(folder: &Path, time: Duration) -> Result<f64, Failure> {
    let path = folder.join(format!("trunkline-fsync-{}", std::process::id()));
    let mut file = fs::File::create(&path)?;
    let (began, mut count) = (Instant::now(), 0);
    while count < 5 || (count < 500 && began.elapsed() < time) {
        file.rewind()?;
        file.write_all(&[0; 8192])?;
        file.sync_data()?;
        count += 1;
    }
    let rate = f64::from(count) / began.elapsed().as_secs_f64();
    fs::remove_file(path)?;
    Ok(rate)
}
