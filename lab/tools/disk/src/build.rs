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
    build.args(["build", "--quiet", "--release", "--locked", "-p", PACKAGE]);
    build.args(["--message-format", "json-render-diagnostics", "--target-dir"]).arg(target);
    // The server that runs the library is always one of this machine.
    build.env_remove("CARGO_BUILD_TARGET");
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
    built(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| {
        io::Error::other(format!("cargo built no library of {PACKAGE}: does this Rust link its programs statically?"))
    })
}

/// Returns the path of the library from cargo's messages, each of which is a line of JSON. A
/// setting such as `build.target` adds a folder to the path.
fn built(messages: &str) -> Option<PathBuf> {
    let name = format!("/lib{}.so", PACKAGE.replace('-', "_"));
    let mut files = messages.lines().filter_map(|line| line.split_once(r#""filenames":[""#)?.1.split('"').next());
    files.find(|file| file.ends_with(&name)).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_is_found_in_the_folder_of_any_target() {
        let message = |file: &str| format!(r#"{{"reason":"compiler-artifact","filenames":["{file}"],"fresh":true}}"#);
        for folder in ["/work/target/release", "/a b/target/x86_64-unknown-linux-gnu/release"] {
            let library = format!("{folder}/libtrunkline_disk_preload.so");
            let messages = [format!("{folder}/liblibc.rlib"), library.clone()].map(|file| message(&file)).join("\n");
            assert_eq!(built(&messages), Some(PathBuf::from(library)));
        }
        assert_eq!(built(r#"{"reason":"build-finished","success":true}"#), None);
    }
}
