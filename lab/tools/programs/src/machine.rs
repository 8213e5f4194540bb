//! The machine and the compiler of a measurement, as a page of results shows them.

use std::{fs, process::Command};

/// Returns the processor's name.
#[must_use]
pub fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    name.unwrap_or("unknown").to_owned()
}

/// Returns the machine's memory in bytes, if the system reports it.
#[must_use]
pub fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(1024 * kilobytes.split_whitespace().next()?.parse::<u64>().ok()?)
}

/// Returns the version of the compiler that builds the programs, such as `1.93.0`, if it is
/// installed.
#[must_use]
pub fn rustc() -> Option<String> {
    let output = Command::new("rustc").arg("--version").output().ok()?;
    String::from_utf8(output.stdout).ok()?.split(' ').nth(1).map(str::to_owned)
}

/// Describes the processors, the memory and the compiler in one line.
#[must_use]
pub fn described() -> String {
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let memory =
        memory().map_or_else(String::new, |bytes| format!(", {:.1} GiB of memory", bytes as f64 / f64::from(1 << 30)));
    let rustc = rustc().map_or_else(String::new, |version| format!(", rustc {version}"));
    format!("{processors} × {}{memory}{rustc}", processor())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn machine_has_a_name_a_memory_and_a_compiler() {
        assert!(memory().is_some_and(|bytes| bytes > 1 << 28), "{:?}", memory());
        assert!(rustc().is_some_and(|version| version.starts_with("1.")), "{:?}", rustc());
        let said = described();
        assert!(said.contains(" GiB of memory, rustc 1."), "{said}");
    }
}
