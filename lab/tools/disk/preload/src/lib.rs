//! Intercepts calls from the processes of a PostgreSQL to the C library, by `LD_PRELOAD`. An fsync
//! takes a minimum time, the disk is full for a write that makes a file longer, and the clock is
//! ahead or behind. Each call reads the settings from the file that `TRUNKLINE_DISK_FILE` names.
//! Without this variable or file, all calls behave as usual.
//!
//! `trunkline-disk` builds this library, and checks and writes the settings.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod page;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod calls;
