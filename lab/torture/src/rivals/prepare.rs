//! Builds a peer's sources into a program that can be started.

use std::path::Path;

use trunkline_programs::{Entry, Program, Sources, Unfit};

use super::list::{Language, Rival};

/// Builds or installs a rival, unless that has been done already. Fails if its runtime or its
/// packages are not available here.
pub fn prepare(rival: &Rival) -> Result<Program, String> {
    prepared(rival).map_err(|unfit| unfit.to_string())
}

fn prepared(rival: &Rival) -> Result<Program, Unfit> {
    let peers = Sources::peers()?;
    match rival.language {
        Language::Own => {
            let path = std::env::current_exe().map_err(|error| Unfit::Failed(error.to_string()))?;
            let folder = path.parent().map(Path::to_owned).unwrap_or_default();
            Ok(Program { path, arguments: vec!["adapter".to_owned()], folder })
        }
        Language::Rust => peers.rust(rival.name, Entry::History),
        Language::Go => peers.go(rival.name, Entry::History),
        Language::Node => peers.node(rival.name, Entry::History),
        Language::Python => peers.python(rival.name, Entry::History),
    }
}
