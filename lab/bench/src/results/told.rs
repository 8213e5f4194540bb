use serde::{Deserialize, Serialize};

/// The settings that the contender received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    pub case: String,
    pub payload: usize,
    pub batch: usize,
    pub producers: usize,
    /// The number of consumers; 0 means the contender's own best documented setting.
    pub consumers: usize,
    /// The requested messages per second; `None` means as fast as possible.
    pub rate: Option<f64>,
    pub backlog: usize,
    pub seconds: f64,
    /// The number of messages after which a row ends; 0 if it ends after its seconds.
    #[serde(default)]
    pub messages: usize,
    /// How consumers find messages: `best`, `poll` or `notify`.
    pub wait: String,
    /// Milliseconds of network delay in each direction.
    pub delay_ms: f64,
    /// Set if another session holds a snapshot while each round of this row is measured.
    pub held_snapshot: bool,
    /// Set if a session listens to the queue like a sleeping consumer, and does nothing else.
    #[serde(default)]
    pub sleeper: bool,
    /// The setting `fsync` of the row's private server. It is empty for the run's server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fsync: String,
    /// Set if each commit waits for a standby of the server.
    #[serde(default)]
    pub standby: bool,
    /// The number of rows that were deleted under that snapshot before the clock started.
    #[serde(default)]
    pub dead: u64,
    /// The number of parts into which the time is divided, each with its own latencies; 0 means
    /// one.
    #[serde(default)]
    pub windows: u32,
    /// The number of messages per fetch of a consumer; 0 means `batch`.
    #[serde(default)]
    pub dequeue_batch: usize,
    /// The number of threads of the contender's runtime; 0 means its own choice.
    #[serde(default)]
    pub threads: usize,
    /// Seconds without work before the clock starts, during which consumers fall asleep.
    #[serde(default)]
    pub settle: f64,
    /// The minimum duration of an fsync in milliseconds, on a server whose disk can be slowed down;
    /// 0 leaves the disk as it is. `None` on any other server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsync_ms: Option<f64>,
    /// The number of servers that share the queue; 0 means one server without shards.
    #[serde(default)]
    pub stripes: usize,
    /// The number of keys, which the messages use in turn; 0 means no keys.
    #[serde(default)]
    pub keys: usize,
    /// The messages whose latencies count, by the partition of their keys: `its-lane` is the
    /// partition of the backlog's key, `other-lanes` are all other partitions. Empty means all
    /// messages.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub timed: String,
}
