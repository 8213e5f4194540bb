//! Measures the speed of the disk.

use std::{
    fs,
    io::{self, Seek, Write},
    path::Path,
    time::{Duration, Instant},
};

/// Returns how many 8 KiB writes per second the disk makes durable. Measures for `time`, but at
/// least 5 and at most 500 writes.
pub fn per_second(folder: &Path, time: Duration) -> io::Result<f64> {
    let path = folder.join(format!("trunkline-fsync-{}", std::process::id()));
    let mut file = fs::File::create(&path)?;
    let (began, mut count) = (Instant::now(), 0);
    while count < 5 || (count < 500 && began.elapsed() < time) {
        file.rewind()?;
        file.write_all(&[0; 8192])?;
        file.sync_data()?;
        count += 1;
    }
    let rate = f64::from(count) / began.elapsed().as_secs_f64();
    fs::remove_file(path)?;
    Ok(rate)
}
