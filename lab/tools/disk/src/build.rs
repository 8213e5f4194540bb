//! Builds the library's sources into a file for preloading.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

const PACKAGE: &str = "trunkline-disk-preload";

/// Builds the library below the target folder, and returns its path.
pub fn library(target: &Path) -> io::Result<PathBuf> {
    if !cfg!(all(target_os = "linux", target_pointer_width = "64")) {
        let system = (std::env::consts::OS, std::env::consts::ARCH);
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("a disk is made slow by LD_PRELOAD, on Linux of 64 bits; this is {} on {}", system.0, system.1),
        ));
    }
    // The build is always a release build, because a server's processes run the library.
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--release", "--locked", "-p", PACKAGE, "--target-dir"]).arg(target);
    build.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    let output = build.output().map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cargo, which builds {PACKAGE}, does not start ({error}): install Rust from rustup.rs"),
        )
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("cannot build {PACKAGE}, {}: {}", output.status, said.trim())));
    }
    let library = target.join("release").join(format!("lib{}.so", PACKAGE.replace('-', "_")));
    match library.exists() {
        true => Ok(library),
        false => Err(io::Error::other(format!(
            "{PACKAGE} was built, and {} is not there: does this Rust link its programs statically?",
            library.display()
        ))),
    }
}
