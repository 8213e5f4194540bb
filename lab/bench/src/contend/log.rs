use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

/// The standard error of a contender. It is a file, because a pipe could fill up.
pub struct Log {
    pub file: File,
    path: PathBuf,
}

impl Log {
    pub fn new() -> std::io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("trunkline-contender-{}-{}.log", name.0, name.1));
        let file = File::options().read(true).append(true).create(true).open(&path)?;
        file.set_len(0)?;
        Ok(Self { file, path })
    }

    /// Returns the last 4 KiB of the output.
    pub fn end(&mut self) -> String {
        let mut said = Vec::new();
        let length = self.file.metadata().map_or(0, |metadata| metadata.len());
        let _ =
            self.file.seek(SeekFrom::Start(length.saturating_sub(4096))).and_then(|_| self.file.read_to_end(&mut said));
        String::from_utf8_lossy(&said).into_owned()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
