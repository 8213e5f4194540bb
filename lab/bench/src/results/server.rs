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

impl Server {
    /// Lists the properties that differ from those of the server now. Omits properties that one of
    /// them lacks, and the memory, which differs slightly after each start of some machines.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let processors = [self.processors, now.processors].map(|processors| processors.to_string());
        let [before, after] = &processors;
        let texts = [
            ("PostgreSQL", &self.version, &now.version),
            ("fsync", &self.fsync, &now.fsync),
            ("synchronous_commit", &self.synchronous_commit, &now.synchronous_commit),
            ("wal_level", &self.wal_level, &now.wal_level),
            ("commit_delay", &self.commit_delay, &now.commit_delay),
            ("the connection", &self.connection, &now.connection),
            ("the number of processors", before, after),
            ("the processor", &self.processor, &now.processor),
            ("rustc", &self.rustc, &now.rustc),
        ];
        let differ = texts.into_iter().filter(|(_, then, now)| then != now && !then.is_empty() && !now.is_empty());
        differ.map(|(what, then, now)| format!("{what} was {then}, and is {now} now")).collect()
    }
}
