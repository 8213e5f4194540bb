//! The report of the demo, for people and for programs.

use std::time::Duration;

use serde_json::json;

use super::{
    Args,
    load::{Load, Took},
    server::{Disk, Server},
};
use crate::print::thousands;

pub struct Report {
    messages: u64,
    callers: u64,
    payload: u64,
    enqueue_per_s: u64,
    end_to_end_per_s: u64,
    /// The 50th and 99th percentiles of an enqueue, in microseconds.
    enqueue: [u64; 2],
    /// The 50th and 99th percentiles of the time from enqueue to arrival, in microseconds.
    end_to_end: [u64; 2],
    lost: u64,
    duplicated: u64,
    unknown: u64,
    server: Server,
    disk: Disk,
    seconds: f64,
}

impl Report {
    pub fn new(args: &Args, load: &Load, took: &Took, server: Server, disk: Disk) -> Self {
        let per_s = |took: Duration| (args.messages as f64 / took.as_secs_f64()).round() as u64;
        Self {
            messages: args.messages,
            callers: args.callers,
            payload: args.payload,
            enqueue_per_s: per_s(took.enqueue),
            end_to_end_per_s: per_s(took.end_to_end),
            enqueue: [50.0, 99.0].map(|percent| load.calls.percentile(percent)),
            end_to_end: [50.0, 99.0].map(|percent| load.deliveries.percentile(percent)),
            lost: load.tally.lost(),
            duplicated: load.tally.duplicated(),
            unknown: load.tally.unknown(),
            server,
            disk,
            seconds: took.end_to_end.as_secs_f64(),
        }
    }

    pub fn json(&self) -> String {
        let line = json!({
            "messages": self.messages,
            "callers": self.callers,
            "payload_bytes": self.payload,
            "seconds": (self.seconds * 1e6).round() / 1e6,
            "enqueue_per_s": self.enqueue_per_s,
            "end_to_end_per_s": self.end_to_end_per_s,
            "enqueue_p50_us": self.enqueue[0],
            "enqueue_p99_us": self.enqueue[1],
            "end_to_end_p50_us": self.end_to_end[0],
            "end_to_end_p99_us": self.end_to_end[1],
            "lost": self.lost,
            "duplicated": self.duplicated,
            "unknown": self.unknown,
            "postgres": self.server.version,
            "fsync": self.server.fsync,
            "synchronous_commit": self.server.synchronous_commit,
            "disk_fsyncs_per_s": self.fsyncs_per_s(),
        });
        format!("{line}\n")
    }

    fn fsyncs_per_s(&self) -> u64 {
        self.disk.fsyncs_per_s.round() as u64
    }

    pub fn text(&self) -> String {
        let Self { server, lost, duplicated, .. } = self;
        let memory = match self.disk.is_in_memory {
            true => "  the data is in memory, where an fsync reaches no disk: TMPDIR=/var/tmp puts it on a disk\n",
            false => "",
        };
        format!(
            "\
{messages} messages of {payload} bytes, {callers} concurrent callers, {seconds:.2} s

                                    messages/s        p50        p99
  enqueue, safe on disk          {enqueue:>13}  {enqueue_p50:>9}  {enqueue_p99:>9}
  to received and acknowledged   {end_to_end:>13}  {end_p50:>9}  {end_p99:>9}

  lost {lost}, duplicated {duplicated}
  PostgreSQL {version} (fsync {fsync}, synchronous_commit {commit}) on a disk of {fsyncs} fsyncs/s
{memory}",
            messages = thousands(self.messages),
            payload = thousands(self.payload),
            callers = thousands(self.callers),
            seconds = self.seconds,
            enqueue = thousands(self.enqueue_per_s),
            end_to_end = thousands(self.end_to_end_per_s),
            enqueue_p50 = duration(self.enqueue[0]),
            enqueue_p99 = duration(self.enqueue[1]),
            end_p50 = duration(self.end_to_end[0]),
            end_p99 = duration(self.end_to_end[1]),
            lost = thousands(*lost),
            duplicated = thousands(*duplicated),
            version = server.version,
            fsync = server.fsync,
            commit = server.synchronous_commit,
            fsyncs = thousands(self.fsyncs_per_s()),
        )
    }
}

fn duration(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..1_000_000 => format!("{:.2} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(is_in_memory: bool) -> Report {
        let [version, fsync, synchronous_commit] = ["18.1", "on", "on"].map(str::to_owned);
        Report {
            messages: 1000,
            callers: 10,
            payload: 100,
            enqueue_per_s: 1000,
            end_to_end_per_s: 1000,
            enqueue: [1, 2],
            end_to_end: [1, 2],
            lost: 0,
            duplicated: 0,
            unknown: 0,
            server: Server { version, fsync, synchronous_commit },
            disk: Disk { fsyncs_per_s: 7000.4, is_in_memory },
            seconds: 1.0,
        }
    }

    #[test]
    fn report_says_in_one_line_that_the_data_is_in_memory() {
        let (on_disk, in_memory) = (report(false).text(), report(true).text());
        assert!(on_disk.ends_with("synchronous_commit on) on a disk of 7,000 fsyncs/s\n"), "{on_disk}");
        let note = in_memory.strip_prefix(&on_disk).expect("a line more");
        assert!(note.contains("in memory") && note.contains("TMPDIR=/var/tmp"), "{note}");
        assert_eq!(note.matches('\n').count(), 1, "{note}");
    }
}
