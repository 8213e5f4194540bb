use std::time::{Duration, Instant};

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};

use crate::{Failure, measured::Turn};

/// The wall clock and the processor time at the start of a turn.
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

/// Returns the processor time that all threads of this process have used so far. The server and the
/// delaying proxy are other processes.
fn used() -> Result<Duration, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok(Duration::from_micros((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as u64))
}
