//! Samples memory, connections and locks once a second.

use serde::{Deserialize, Serialize};
use tokio_postgres::Client;

use crate::history::{Micros, now};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    pub at: Micros,
    /// The memory of each process, in kilobytes.
    pub memory: Vec<(String, u64)>,
    pub connections: i64,
    pub locks: i64,
}

/// Takes a sample. Returns `None` if the server does not answer.
pub async fn sample(client: &Client, processes: &[(String, u32)]) -> Option<Sample> {
    let text = "select (select count(*) from pg_stat_activity where usename = 'torture'),
                       (select count(*) from pg_locks l join pg_stat_activity a on a.pid = l.pid where a.usename = 'torture')";
    let row = client.query_one(text, &[]).await.ok()?;
    let memory = processes.iter().filter_map(|(name, pid)| Some((name.clone(), memory(*pid)?))).collect();
    Some(Sample { at: now(), memory, connections: row.get(0), locks: row.get(1) })
}

/// Returns the resident memory in kilobytes. This works only on Linux.
fn memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}
