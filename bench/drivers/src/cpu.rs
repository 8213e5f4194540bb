use std::time::Duration;

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeVal,
};

use crate::Failure;

/// Processor time that this process has used so far, in all of its threads; the server and what delays it are other processes.
pub fn used() -> Result<Duration, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let time = |value: TimeVal| Duration::from_micros((value.tv_sec() * 1_000_000 + i64::from(value.tv_usec())) as u64);
    Ok(time(usage.user_time()) + time(usage.system_time()))
}
