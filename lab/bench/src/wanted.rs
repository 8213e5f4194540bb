//! The server that a run measures.

use std::path::PathBuf;

#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// An existing server; `None` means a private cluster.
    pub url: Option<String>,
    pub settings: Vec<String>,
    /// The folder with the private cluster's programs.
    pub programs: Option<PathBuf>,
    /// Set to connect by TCP.
    pub tcp: bool,
    /// Set if the disk of the cluster can be slowed down.
    pub slow_disk: bool,
    /// Set if each commit waits for a standby of the cluster.
    pub standby: bool,
}
