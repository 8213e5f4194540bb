//! Makes the schedule of faults, which depends only on a seed.

use clap::ValueEnum;

use super::{Fault, Happened};
use crate::random::Random;

/// The time until the first fault. By then all processes have started.
const FIRST_MS: u64 = 3_000;
/// The time without faults at the end of the run.
pub const LAST_MS: u64 = 4_000;
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

/// Returns the names of the faults for which a schedule has no time.
pub fn without_time(planned: &[Planned], faults: &[Fault]) -> Vec<String> {
    let is_planned = |fault: &&Fault| planned.iter().any(|one| one.fault == **fault);
    faults.iter().filter(|fault| !is_planned(fault)).map(|fault| fault.name()).collect()
}

/// Returns the faults that happened less often than planned, each with the number of times.
pub fn left_out(planned: &[Planned], happened: &[Happened]) -> Vec<String> {
    let missing = |fault: &Fault| {
        let wanted = planned.iter().filter(|one| one.fault == *fault).count();
        let struck = happened.iter().filter(|one| one.fault == fault.name()).count();
        let missing = wanted.saturating_sub(struck);
        (missing > 0).then(|| format!("{}: the run ended before {missing} of {wanted}", fault.name()))
    };
    Fault::value_variants().iter().filter_map(missing).collect()
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

    #[test]
    fn faults_that_did_not_happen_are_named() {
        let planned = schedule(17, 600, &[Fault::Kill, Fault::Crash]);
        let happened =
            |planned: &Planned| Happened { fault: planned.fault.name(), detail: String::new(), from: 0, to: 0 };
        let mut happened: Vec<Happened> = planned.iter().map(happened).collect();
        assert_eq!(left_out(&planned, &happened), Vec::<String>::new());
        happened.retain(|one| one.fault != "kill");
        let kills = planned.len() - happened.len();
        assert_eq!(left_out(&planned, &happened), [format!("kill: the run ended before {kills} of {kills}")]);
    }

    #[test]
    fn faults_without_time_are_named() {
        let all = Fault::value_variants();
        assert_eq!(without_time(&schedule(17, 600, all), all), Vec::<String>::new());
        let short = schedule(1, 60, all);
        let missing = without_time(&short, all);
        assert!(
            ["kill", "crash", "cut", "clock"].iter().all(|name| missing.iter().any(|one| one == name)),
            "{missing:?}"
        );
        assert_eq!(missing.len() + short.len(), all.len());
    }
}
