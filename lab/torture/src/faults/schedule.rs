//! Makes the schedule of faults, which depends only on a seed.

use super::Fault;
use crate::random::Random;

/// The time until the first fault. By then all processes have started.
const FIRST_MS: u64 = 3_000;
/// The time without faults at the end of the run.
const LAST_MS: u64 = 4_000;
/// The time between two faults. Some of these times are long, to check that everything works
/// without faults.
const GAP_MS: (u64, u64) = (800, 3_500);
const CALM_MS: (u64, u64) = (8_000, 12_000);

/// A fault that begins `after_ms` after the end of the previous fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    pub after_ms: u64,
    pub fault: Fault,
    pub lasts_ms: u64,
    /// The seed for the random choices of the fault.
    pub draw: u64,
}

/// Returns the faults. Every fault occurs once before any fault occurs again. The order depends on
/// the seed.
pub fn schedule(seed: u64, seconds: u64, faults: &[Fault]) -> Vec<Planned> {
    let mut random = Random::of(seed, 0xFA);
    let (mut planned, mut deck, mut at) = (Vec::new(), Vec::new(), 0);
    while !faults.is_empty() {
        if deck.is_empty() {
            deck = faults.to_vec();
        }
        let fault = deck.swap_remove(random.below(deck.len() as u64) as usize);
        let (low, high) = if random.chance(15) { CALM_MS } else { GAP_MS };
        let after_ms = if planned.is_empty() { FIRST_MS } else { random.within(low, high) };
        let (low, high) = lasts(fault);
        let next = Planned { after_ms, fault, lasts_ms: random.within(low, high), draw: random.next() };
        at += next.after_ms + next.lasts_ms;
        if at + LAST_MS > seconds * 1000 {
            break;
        }
        planned.push(next);
    }
    planned
}

/// Returns the minimum and the maximum duration in milliseconds.
fn lasts(fault: Fault) -> (u64, u64) {
    match fault {
        Fault::Kill | Fault::Terminate | Fault::Crash | Fault::Cut => (0, 300),
        Fault::Stop => (2_500, 4_000),
        Fault::HalfOpen | Fault::OneWay | Fault::Silence | Fault::Connections => (1_500, 4_000),
        Fault::Delay | Fault::Alter | Fault::Migrate | Fault::SlowDisk | Fault::FullDisk => (1_000, 3_000),
        Fault::Clock => (1_000, 5_000),
        Fault::Snapshot | Fault::Autovacuum | Fault::Compact => (4_000, 8_000),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn seed_determines_faults_and_each_comes_in_time() {
        let all = Fault::value_variants();
        let planned = schedule(17, 600, all);
        assert_eq!(planned, schedule(17, 600, all));
        assert_ne!(planned, schedule(18, 600, all));
        for fault in all {
            assert!(planned.iter().filter(|planned| planned.fault == *fault).count() > 1, "{fault:?}");
        }
        let end: u64 = planned.iter().map(|planned| planned.after_ms + planned.lasts_ms).sum();
        assert!(end <= 596_000);
        assert_eq!(schedule(17, 600, &[]), []);
    }
}
