//! Samples that are reused between scrapes. They cost the server at most one per cent of a core,
//! regardless of how many clients scrape and how large the queues are.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::ask::{Alarms, Counts, Database, Queue, Store};

/// All quick samples together may take 1/`SHARE` of the time, a third of a per cent. All slow
/// samples together may take the same share. Half of the remaining third is for alarms, and half
/// for the statements that run at each scrape.
const SHARE: u32 = 300;
/// The same for alarms.
const SHARE_OF_ALARMS: u32 = 4 * SHARE;
/// The pause between two counts above which the alarms of a queue are sampled in between.
const LONG: Duration = Duration::from_secs(60);
/// The minimum duration of a slow sample.
const SLOW: Duration = Duration::from_millis(10);
/// The cost of a sample's transaction and plan, in addition to the cost of the count itself.
pub const BESIDES: Duration = Duration::from_micros(300);

/// A result, the time at which it arrived, and how long it took.
#[derive(Debug, Clone)]
pub struct Kept<T> {
    pub answer: T,
    pub at: Instant,
    pub took: Duration,
}

impl<T> Kept<T> {
    pub fn now(answer: T, took: Duration) -> Self {
        Self { answer, at: Instant::now(), took }
    }
}

/// The latest samples.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    pub queues: Vec<Queue>,
    pub database: Option<Kept<Database>>,
    pub stores: Option<Kept<Vec<Store>>>,
    /// The counts, by the queue's name. `None` if the role may not count, or if the count failed.
    pub counts: BTreeMap<String, Kept<Option<Counts>>>,
    /// The alarms of queues that are rarely counted, or were not counted yet. `None` as for the
    /// counts.
    pub alarms: BTreeMap<String, Kept<Option<Alarms>>>,
    /// The times at which samples of queues were dropped because the queues had changed.
    forgotten: BTreeMap<String, Instant>,
    /// The reason why the latest samples could not be taken, if they could not.
    pub problem: Option<String>,
    /// The same for the latest counts, while no count runs.
    pub uncounted: Option<String>,
    /// The reason that was logged last, if the metrics are not available.
    pub reported: Option<String>,
}

impl Picture {
    /// Sets the list of queues, and drops the samples of all other queues.
    pub fn with(&mut self, mut queues: Vec<Queue>) {
        queues.sort(); // sorted as Rust compares names, because the server sorts by its locale
        let is_there = |name: &String| queues.binary_search_by(|(queue, ..)| queue.cmp(name)).is_ok();
        self.counts.retain(|name, _| is_there(name));
        self.alarms.retain(|name, _| is_there(name));
        self.forgotten.retain(|name, _| is_there(name));
        if let Some(stores) = &mut self.stores {
            stores.answer.retain(|(name, ..)| is_there(name));
        }
        self.queues = queues;
    }

    /// Drops the counts and alarms of a queue, so that they are sampled again at once.
    pub fn forget(&mut self, queue: &str) {
        self.counts.remove(queue);
        self.alarms.remove(queue);
        self.forgotten.insert(queue.to_owned(), Instant::now());
    }

    /// Returns false for a sample that began at this time, if the queue's samples were dropped in
    /// the meantime: it may be from before the change.
    pub fn fits(&self, queue: &str, began: Instant) -> bool {
        self.forgotten.get(queue).is_none_or(|at| *at <= began)
    }

    /// Returns the cost of all samples.
    pub fn budget(&self) -> Budget {
        let two = [self.database.as_ref().map(|kept| kept.took), self.stores.as_ref().map(|kept| kept.took)];
        Budget::of(SHARE, two.into_iter().flatten().chain(self.counts.values().map(|kept| kept.took)))
    }

    /// Returns the queues whose alarms are due, with the number of their priorities: those that are
    /// rarely counted or were not counted yet, and those whose count waits for a slow one.
    pub fn next_alarms(&self) -> Vec<(String, i32)> {
        let counting = self.budget();
        let is_rare = |name: &String| {
            let counts = self.counts.get(name);
            counts.is_none_or(|counts| counting.pause(counts.took) > LONG || counts.at.elapsed() > 2 * LONG)
        };
        let rare: Vec<&Queue> = self.queues.iter().filter(|(name, ..)| is_rare(name)).collect();
        let sampled = rare.iter().filter_map(|(name, ..)| self.alarms.get(name));
        let budget = Budget::of(SHARE_OF_ALARMS, sampled.map(|kept| kept.took));
        let is_due = |name: &String| {
            let (counts, sampled) = (self.counts.get(name), self.alarms.get(name));
            let latest = counts.map(|kept| kept.at).max(sampled.map(|kept| kept.at));
            latest.is_none_or(|at| at.elapsed() >= budget.pause(sampled.map_or(BESIDES, |kept| kept.took)))
        };
        let due = rare.into_iter().filter(|(name, ..)| is_due(name));
        due.map(|(name, .., priorities)| (name.clone(), *priorities)).collect()
    }

    /// Returns the alarms of a queue, by its latest sample or count.
    pub fn alarms_of(&self, queue: &str) -> Option<Alarms> {
        let counted = self.counts.get(queue).and_then(|kept| Some((kept.at, kept.answer.as_ref()?.alarms())));
        let sampled = self.alarms.get(queue).and_then(|kept| Some((kept.at, kept.answer?)));
        counted.into_iter().chain(sampled).max_by_key(|(at, _)| *at).map(|(_, alarms)| alarms)
    }

    /// Returns the queues whose count is due, the quickest first.
    pub fn next(&self) -> Vec<String> {
        let budget = self.budget();
        let mut due: Vec<(Duration, String)> = Vec::new();
        for (name, ..) in &self.queues {
            let kept = self.counts.get(name);
            if budget.is_due(kept) {
                due.push((kept.map_or(Duration::ZERO, |kept| kept.took), name.clone()));
            }
        }
        due.sort();
        due.into_iter().map(|(_, name)| name).collect()
    }
}

/// The cost of samples, which determines the pauses between them.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// The quick samples, and the slow ones, may each take 1/`share` of the time.
    share: u32,
    /// The total duration of all quick samples.
    quick: Duration,
    /// The number of slow samples.
    slow: u32,
}

impl Budget {
    fn of(share: u32, took: impl Iterator<Item = Duration>) -> Self {
        took.fold(Self { share, quick: Duration::ZERO, slow: 0 }, |budget, took| match took {
            slow if slow >= SLOW => Self { slow: budget.slow + 1, ..budget },
            quick => Self { quick: budget.quick + quick, ..budget },
        })
    }

    /// Returns how long to wait after a sample that took the time `took`.
    fn pause(self, took: Duration) -> Duration {
        if took >= SLOW { took * self.share * self.slow } else { self.quick * self.share }
    }

    pub fn is_due<T>(self, kept: Option<&Kept<T>>) -> bool {
        kept.is_none_or(|kept| kept.at.elapsed() >= self.pause(kept.took))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the share of a core that samples with these durations use.
    fn share(took: &[Duration]) -> f64 {
        let budget = Budget::of(SHARE, took.iter().copied());
        took.iter().map(|took| took.as_secs_f64() / budget.pause(*took).as_secs_f64()).sum()
    }

    #[test]
    fn looks_cost_less_than_one_percent_of_a_core() {
        let quick = vec![Duration::from_micros(400); 500];
        let slow = vec![Duration::from_secs(3), Duration::from_millis(10), Duration::from_millis(70)];
        for took in [&quick[..], &slow, &quick[..1], &slow[..1], &[quick.clone(), slow.clone()].concat()] {
            assert!(share(took) < 0.006_67, "{} of {}", share(took), took.len());
        }
        assert!(share(&slow) > 0.0033 && share(&quick) > 0.0033, "and do not rest without need");
    }

    #[test]
    fn a_slow_queue_does_not_make_the_others_old() {
        let one = Duration::from_micros(500);
        let budget = Budget::of(SHARE, [one, one, Duration::from_secs(20)].into_iter());
        assert_eq!(budget.pause(one), Duration::from_millis(300));
        assert_eq!(budget.pause(Duration::from_secs(20)), Duration::from_secs(6000));
    }

    #[test]
    fn alarms_are_sampled_where_counts_are_rare() {
        fn kept<T>(took: Duration) -> Kept<Option<T>> {
            Kept { answer: None, at: Instant::now(), took }
        }
        let counts = [("often".into(), kept(BESIDES)), ("seldom".into(), kept(Duration::from_secs(1)))].into();
        let mut picture = Picture { counts, ..Picture::default() };
        picture.with(["new", "often", "seldom"].map(|name| (name.into(), false, None, 3)).into());
        let due = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), 3)).collect::<Vec<_>>();
        assert_eq!(picture.next_alarms(), due(&["new", "seldom"]));
        picture.alarms.insert("seldom".into(), kept(BESIDES));
        assert_eq!(picture.next_alarms(), due(&["new"]), "the other rests");
        picture.alarms.insert("new".into(), kept(BESIDES));
        assert_eq!(picture.next_alarms(), [], "both rest");
        picture.counts.insert("new".into(), kept(BESIDES));
        picture.alarms.insert("new".into(), kept(Duration::from_millis(9)));
        let earlier = Instant::now().checked_sub(Duration::from_secs(1)).expect("the clock began before");
        picture.counts.values_mut().for_each(|kept| kept.at = earlier);
        picture.alarms.values_mut().for_each(|kept| kept.at = earlier);
        assert_eq!(picture.next_alarms(), due(&["seldom"]), "queues that are counted often cost no alarms");
        picture.with(Vec::new());
        assert!(picture.alarms.is_empty());
    }

    #[test]
    fn the_quick_come_first_and_the_dropped_are_forgotten() {
        let kept = |took| Kept { answer: None, at: Instant::now(), took: Duration::from_micros(took) };
        let counts = [("a".into(), kept(9)), ("b".into(), kept(0)), ("gone".into(), kept(5))].into();
        let mut picture = Picture { counts, ..Picture::default() };
        picture.with(["a", "b", "new"].map(|name| (name.into(), false, None, 1)).into());
        assert_eq!(picture.counts.keys().collect::<Vec<_>>(), ["a", "b"]);
        picture.counts.values_mut().for_each(|kept| kept.took = Duration::ZERO);
        assert_eq!(picture.next(), ["a", "b", "new"], "those that cost nothing are always due");
        picture.counts.insert("a".into(), kept(60_000_000));
        assert_eq!(picture.next(), ["b", "new"], "a pause is long after a slow look");
    }
}
