//! The server's clock, which is set while it runs: by libfaketime, where that is installed.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Debian's and Fedora's places.
const PLACES: [&str; 3] =
    ["/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime", "/usr/lib64/faketime"];
const LIBRARY: &str = "libfaketime.so.1";
/// Says where it is, where it is elsewhere.
const SAID: &str = "TRUNKLINE_FAKETIME";

#[derive(Debug)]
pub struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    /// `folder` is one that the server's account may enter.
    pub fn new(folder: &Path) -> Result<Self, String> {
        let said = std::env::var_os(SAID).map(PathBuf::from);
        let mut usual = PLACES.iter().map(|place| Path::new(place).join(LIBRARY));
        let library = said.or_else(|| usual.find(|path| path.exists()));
        let library = library.ok_or_else(|| {
            format!("there is no libfaketime here: install the package faketime, or name the library in {SAID}")
        })?;
        let clock = Self { library, file: folder.join("clock") };
        clock.set(0)?;
        Ok(clock)
    }

    pub fn library(&self) -> &Path {
        &self.library
    }

    /// Beside the library itself: sleeps and time limits go by the true clock.
    pub fn environment(&self) -> Vec<(String, String)> {
        let file = self.file.display().to_string();
        [
            ("FAKETIME_TIMESTAMP_FILE", &*file),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            ("FAKETIME_DONT_RESET", "1"),
            // Without the lock that processes share for this: a backend that is killed with it in its hands would stop the server.
            ("NO_FAKE_STAT", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    /// So many milliseconds ahead of the true time, or behind.
    pub fn set(&self, ms: i64) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("the clock cannot be set in {}: {error}", self.file.display());
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{:+.3}\n", ms as f64 / 1000.0)).map_err(failed)?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o644)).map_err(failed)?;
        fs::rename(&new, &self.file).map_err(failed)
    }
}
