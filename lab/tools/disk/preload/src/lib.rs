//! Intercepts calls from the processes of a PostgreSQL to the C library, by `LD_PRELOAD`. An fsync
//! takes a minimum time, a write that makes a file longer finds the disk full, and the clock is
//! ahead or behind. Each call reads the settings from the file that `TRUNKLINE_DISK_FILE` names.
//! Without this variable or file, no call changes.
//!
//! `trunkline-disk` builds this library, and checks and writes the settings.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod page;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod calls;
