//! Finds processes of the server that were ended by a signal, according to the server's log.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
};

/// The position up to which the log has been read.
#[derive(Debug, Default)]
pub struct Fallen {
    seen: u64,
}

impl Fallen {
    /// Returns the processes that ended since the last call. If the log was truncated, starts at
    /// its beginning; the server truncates a long log.
    pub fn since(&mut self, log: &Path) -> Vec<String> {
        let Ok(mut file) = File::open(log) else { return Vec::new() };
        let length = file.metadata().map_or(0, |log| log.len());
        let from = if length < self.seen { 0 } else { self.seen };
        let mut text = Vec::new();
        if file.seek(SeekFrom::Start(from)).and_then(|_| file.read_to_end(&mut text)).is_err() {
            return Vec::new();
        }
        // Leaves an incomplete line, which the server is still writing, to the next call.
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.seen = from + whole as u64;
        let text = String::from_utf8_lossy(&text[..whole]);
        let told = text.lines().filter(|line| line.contains(") was terminated by signal "));
        told.map(|line| line.split_once("LOG:  ").map_or(line, |(_, told)| told).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Fallen;

    #[test]
    fn each_is_reported_once_also_after_a_new_beginning() {
        let log = std::env::temp_dir().join(format!("trunkline-fallen-{}", std::process::id()));
        let mut fallen = Fallen::default();
        assert_eq!(fallen.since(&log), Vec::<String>::new(), "there is none yet");
        let line = |pid: u32| {
            format!("2026-01-01 UTC [1] LOG:  client backend (PID {pid}) was terminated by signal 6: Aborted\n")
        };
        fs::write(&log, format!("a beginning\n{}and half a li", line(7))).expect("written");
        assert_eq!(fallen.since(&log), ["client backend (PID 7) was terminated by signal 6: Aborted"]);
        fs::write(&log, format!("a beginning\n{}and half a line\n{}", line(7), line(8))).expect("written");
        assert_eq!(fallen.since(&log), ["client backend (PID 8) was terminated by signal 6: Aborted"]);
        fs::write(&log, line(9)).expect("written");
        assert_eq!(fallen.since(&log), ["client backend (PID 9) was terminated by signal 6: Aborted"]);
        assert_eq!(fallen.since(&log), Vec::<String>::new());
        fs::remove_file(&log).expect("removed");
    }
}
