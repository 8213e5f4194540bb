use std::time::{Duration, Instant};

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};

use crate::{Failure, measured::Turn};

/// When a turn began, by the clock and by the processor.
pub struct Began {
    at: Instant,
    used: Duration,
}

impl Began {
    pub fn now() -> Result<Self, Failure> {
        Ok(Self { used: used()?, at: Instant::now() })
    }

    pub fn ended(self) -> Result<Turn, Failure> {
        let time = self.at.elapsed();
        Ok(Turn { time, cpu: used()?.saturating_sub(self.used) })
    }
}

/// Processor time that this process has used so far, in all of its threads; the server and what
/// delays it are other processes.
fn used() -> Result<Duration, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok(Duration::from_micros((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as u64))
}
