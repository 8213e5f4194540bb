//! From an adapter's sources to a program that can be started.

use std::path::Path;

use trunkline_programs::{Program, Sources, Unfit, target};

use super::list::{Language, Rival};

/// Builds or installs an adapter where that has not been done. Fails where its runtime or its
/// packages cannot be had here.
pub fn prepare(rival: &Rival) -> Result<Program, String> {
    prepared(rival).map_err(|unfit| unfit.to_string())
}

fn prepared(rival: &Rival) -> Result<Program, Unfit> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rivals");
    let sources = Sources { copy: target()?.join("rivals-built"), folder };
    match rival.language {
        Language::Own => {
            let path = std::env::current_exe().map_err(|error| Unfit::Failed(error.to_string()))?;
            Ok(Program { path, arguments: vec!["adapter".to_owned()], folder: sources.folder })
        }
        Language::Rust => sources.rust(rival.name, &format!("rival-{}", rival.name), false),
        Language::Go => sources.go(rival.name),
        Language::Node => sources.node(rival.name),
        Language::Python => sources.python(rival.name),
    }
}
