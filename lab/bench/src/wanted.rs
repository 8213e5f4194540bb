//! The server that a run measures.

use std::path::PathBuf;

#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// An existing server; none means a private cluster.
    pub url: Option<String>,
    pub settings: Vec<String>,
    /// The folder of the private cluster's programs.
    pub programs: Option<PathBuf>,
    /// Connect by TCP.
    pub tcp: bool,
    /// The disk of the cluster can be made slow.
    pub slow_disk: bool,
}
