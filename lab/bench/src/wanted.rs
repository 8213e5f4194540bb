//! The server that a run measures.

use std::path::PathBuf;

#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// A server that is there; none is a private cluster.
    pub url: Option<String>,
    pub settings: Vec<String>,
    /// The folder of the private cluster's programs.
    pub programs: Option<PathBuf>,
    /// Go to it by TCP.
    pub tcp: bool,
    /// Whether its disk is to be made slow.
    pub slow_disk: bool,
}
