use serde::{Deserialize, Serialize};

/// The server, and the machine on which it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// The version, such as `15.18`.
    pub version: String,
    pub fsync: String,
    pub synchronous_commit: String,
    pub wal_level: String,
    pub commit_delay: String,
    /// The kind of connection: `unix socket`, `TCP`.
    pub connection: String,
    /// The number of processors, which the server shares with the contenders.
    pub processors: usize,
    /// The processor's name, if the system reports it.
    pub processor: String,
    /// The machine's memory in bytes; 0 if it is unknown, as in the results of old runs.
    #[serde(default)]
    pub memory: u64,
    /// The version of the compiler that built our programs; empty if it is unknown.
    #[serde(default)]
    pub rustc: String,
}
