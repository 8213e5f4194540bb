//! Defines the kinds of faults, their schedule and their effects.

mod schedule;
mod fallen;
mod strike;
mod network;
mod server;
mod inside;
mod machine;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub use self::{
    schedule::{LAST_MS, Planned, left_out, schedule, without_time},
    strike::Scene,
};
use crate::history::Micros;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// A process is killed and restarted.
    Kill,
    /// A process is stopped for longer than its leases last.
    Stop,
    /// Backends are terminated.
    Terminate,
    /// The server ends as in a crash, and restarts.
    Crash,
    /// Connections are cut, possibly in the middle of a message.
    Cut,
    /// Clients lose their connections, and the server does not notice.
    HalfOpen,
    /// All traffic is delayed.
    Delay,
    /// Only requests pass, or only answers pass.
    OneWay,
    /// No traffic passes, and neither end sees the connection close.
    Silence,
    /// A transaction holds its snapshot.
    Snapshot,
    /// Autovacuum is off for a while.
    Autovacuum,
    /// No connections are left.
    Connections,
    /// Queues are altered while they are in use.
    Alter,
    /// All functions are created again while they are in use.
    Migrate,
    /// Queues are compacted repeatedly, even if that frees little space.
    Compact,
    /// Each fsync takes a long time.
    SlowDisk,
    /// The disk has no room left.
    FullDisk,
    /// The server's clock steps forward or back, and later returns to the right time.
    Clock,
}

impl Fault {
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Returns true if a consumer that listens or waits should not notice this fault.
    pub fn is_quiet(name: &str) -> bool {
        [Self::Snapshot, Self::Autovacuum].iter().any(|fault| fault.name() == name)
    }
}

/// A fault that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happened {
    pub fault: String,
    pub detail: String,
    pub from: Micros,
    pub to: Micros,
}
