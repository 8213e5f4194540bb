//! Decides, without I/O, how a consumer waits when nothing is due. After each dequeue, [`Pace`]
//! chooses the next step, and the consumer performs that step.

pub(crate) mod hooks;
pub(crate) mod linger;
mod probes;
mod turns;
pub(super) mod waiter;
pub(super) mod list;

use std::time::{Duration, Instant};

/// The way in which a consumer waits for messages.
///
/// [`Consumer::receive_direct`](crate::Consumer::receive_direct) waits for messages inside the
/// notifications themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Dequeues at this interval. Each dequeue costs a statement; no connection listens.
    Poll(Duration),
    /// Listens for notifications, and sends nothing while idle, except for a slow poll as a safety
    /// net.
    Notify,
    /// Listens for notifications, but dequeues a few more times before it relies on them. Stops
    /// listening when traffic has had no pause for a second. Also stops while other processes send
    /// thousands of notifications a second, because commits that notify wait for each other.
    #[default]
    Adaptive,
}

impl Wait {
    /// Polls ten times a second.
    #[must_use]
    pub fn poll() -> Self {
        Self::Poll(DEAF_POLL)
    }
}

/// The poll interval of a consumer that listens.
pub(crate) const SAFETY_POLL: Duration = Duration::from_secs(30);
/// The poll interval of a consumer that should listen but receives no notifications.
const DEAF_POLL: Duration = Duration::from_millis(100);
/// The maximum interval of a consumer that polls. A longer interval could overflow an `Instant`.
const LONGEST_POLL: Duration = Duration::from_secs(365 * 86_400);
/// The pauses of an adaptive consumer before it relies on notifications. After each pause it
/// dequeues again, unless a notification arrives first. Another process sends notifications only
/// every few milliseconds.
const SPINS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(2)];
/// The duration of traffic without a pause after which an adaptive consumer stops listening.
const TRAFFIC: Duration = Duration::from_secs(1);
/// The rate of notifications per second from other processes (a flood) at which an adaptive
/// consumer stops listening. Commits that notify wait for each other, so this rate is close to the
/// maximum of a server.
const FLOOD: f64 = 2_000.0;
/// The number of successful dequeues per second below which a flood is over.
const TRICKLE: f64 = 250.0;
/// The number of consecutive empty dequeues after which a flood is over: 15 ms.
const DRY: usize = 8;
/// The first and the longest pause while other sessions have locked all due messages.
const LOCKED: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(250));

/// The next step after an empty dequeue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Dequeue again after each interval.
    Poll(Duration),
    /// Dequeue again after a pause.
    Pause(Duration),
    /// Start listening, then dequeue again at once.
    Listen,
    /// Check when the next message is due, then wait for that time or for a notification.
    Look,
}

/// The state of a waiting consumer.
#[derive(Debug)]
pub(crate) struct Pace {
    wait: Wait,
    /// The number of pauses since the last message.
    empty: usize,
    /// The number of consecutive probes that found a message that is due but locked.
    locked: u32,
    busy_since: Option<Instant>,
    /// The start of a wait that is longer than a short pause.
    looking_since: Option<Instant>,
    /// True if the last two messages were too far apart for pauses to find the next one.
    is_quiet: bool,
    flood: Flood,
}

/// A detector of floods. In a flood, notifications from other processes are so frequent that the
/// consumer finds messages sooner by polling.
#[derive(Debug, Default)]
struct Flood {
    is_on: bool,
    /// The start of the current second.
    since: Option<Instant>,
    /// The number of notifications from other processes at the start of the current second.
    notified: Option<u64>,
    /// The number of dequeues in the current second that found something.
    found: u32,
}

impl Flood {
    /// Records that a dequeue found something. `notified` is the number of notifications so far, if
    /// the consumer listens.
    fn found(&mut self, now: Instant, notified: Option<u64>) {
        self.found += 1;
        let since = *self.since.get_or_insert(now);
        let is_new = !self.is_on && (self.notified.is_none() || notified.is_none());
        if is_new {
            (self.since, self.notified, self.found) = (Some(now), notified, 0);
        } else if now.duration_since(since) >= TRAFFIC {
            // Uses the actual time: a handler may have kept the consumer busy for much longer than
            // a second.
            let seconds = now.duration_since(since).as_secs_f64();
            self.is_on = match self.is_on {
                true => f64::from(self.found) >= TRICKLE * seconds,
                false => notified
                    .zip(self.notified)
                    .is_some_and(|(notified, before)| notified.saturating_sub(before) as f64 >= FLOOD * seconds),
            };
            (self.since, self.notified, self.found) = (Some(now), notified, 0);
        }
    }
}

impl Pace {
    pub fn new(wait: Wait) -> Self {
        Self {
            wait,
            empty: 0,
            locked: 0,
            busy_since: None,
            looking_since: None,
            is_quiet: false,
            flood: Flood::default(),
        }
    }

    /// Records that a dequeue found something. `notified` is the number of notifications from other
    /// processes so far, if the consumer listens. Returns true if the consumer should stop
    /// listening.
    pub fn found(&mut self, now: Instant, notified: Option<u64>) -> bool {
        self.flood.found(now, notified);
        self.empty = 0;
        self.locked = 0;
        self.is_quiet =
            self.looking_since.take().is_some_and(|since| now.duration_since(since) > SPINS.iter().sum::<Duration>());
        let since = *self.busy_since.get_or_insert(now);
        self.wait == Wait::Adaptive && (self.flood.is_on || now.duration_since(since) > TRAFFIC)
    }

    /// Records that a dequeue waited for a notification before it was sent. This shows that the
    /// traffic has pauses, in which polling would find messages too late.
    pub fn lingered(&mut self) {
        self.busy_since = None;
    }

    /// Returns the next step when nothing is due.
    pub fn nothing(&mut self, now: Instant, listening: bool) -> Step {
        self.busy_since = None; // an empty dequeue is a pause in the traffic
        match self.wait {
            Wait::Poll(every) => Step::Poll(every.min(LONGEST_POLL)),
            Wait::Adaptive if self.flood.is_on && self.empty < DRY => {
                self.empty += 1;
                Step::Pause(SPINS[usize::from(self.empty > 1)])
            }
            Wait::Adaptive | Wait::Notify if !listening => {
                self.flood = Flood::default();
                Step::Listen
            }
            Wait::Adaptive if self.empty < SPINS.len() && !self.is_quiet => {
                self.empty += 1;
                Step::Pause(SPINS[self.empty - 1])
            }
            Wait::Adaptive | Wait::Notify => {
                self.looking_since.get_or_insert(now);
                Step::Look
            }
        }
    }

    /// Returns the pause after `times` consecutive probes at which other sessions had locked all
    /// due messages.
    pub fn held(times: u32) -> Duration {
        LOCKED.0.saturating_mul(1 << times.clamp(1, 16) >> 1).min(LOCKED.1)
    }

    /// Returns how long to sleep after a probe if no notification arrives. The oldest visible
    /// message is due in `due_in` seconds.
    pub fn looked(&mut self, due_in: Option<f64>, hearing: bool) -> Duration {
        self.busy_since = None;
        let longest = if hearing { SAFETY_POLL } else { DEAF_POLL };
        match due_in {
            Some(due_in) if due_in <= 0.0 => {
                self.locked += 1;
                Self::held(self.locked)
            }
            // Adds a quarter of a millisecond, so that the consumer wakes after the message is due
            // and not just before.
            Some(due_in) => {
                self.locked = 0;
                Duration::try_from_secs_f64(due_in + 0.000_25).map_or(longest, |due_in| due_in.min(longest))
            }
            None => {
                self.locked = 0;
                longest
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notify_listens_before_it_sleeps() {
        let (mut pace, now) = (Pace::new(Wait::Notify), Instant::now());
        assert_eq!(pace.nothing(now, false), Step::Listen);
        assert_eq!(pace.nothing(now, true), Step::Look);
        assert_eq!(pace.looked(None, true), SAFETY_POLL);
        assert_eq!(pace.looked(None, false), DEAF_POLL);
        assert!(pace.looked(Some(2.0), true) > Duration::from_secs(2));
    }

    #[test]
    fn adaptive_listens_unless_there_is_traffic_without_a_pause() {
        let mut pace = Pace::new(Wait::Adaptive);
        let now = Instant::now();
        assert!(!pace.found(now, None));
        assert_eq!(pace.nothing(now, false), Step::Listen);
        for spin in SPINS {
            assert_eq!(pace.nothing(now, true), Step::Pause(spin));
        }
        assert!(!pace.found(now + TRAFFIC * 2, None), "there was a pause");
        assert_eq!(pace.nothing(now, true), Step::Pause(SPINS[0]));
        assert!(!pace.found(now + TRAFFIC * 4, None), "there was another");
        assert!(pace.found(now + TRAFFIC * 6, None), "traffic went on for longer than a second");
    }

    #[test]
    fn adaptive_listens_on_while_it_lingers_between_messages() {
        let (mut pace, now) = (Pace::new(Wait::Adaptive), Instant::now());
        for after in 0..10 {
            pace.lingered();
            assert!(!pace.found(now + TRAFFIC * after, None), "a notification brought it");
        }
        assert!(pace.found(now + TRAFFIC * 11, None), "nothing was waited for since");
    }

    #[test]
    fn adaptive_does_not_listen_to_a_flood_of_notifications() {
        let (mut pace, began) = (Pace::new(Wait::Adaptive), Instant::now());
        assert_eq!(pace.nothing(began, false), Step::Listen);
        let (mut now, mut notified) = (began, 0);
        let mut second = |pace: &mut Pace, each: u64| {
            let mut stops = false;
            for _ in 0..501 {
                (now, notified) = (now + Duration::from_millis(2), notified + each);
                stops |= pace.found(now, Some(notified));
                pace.nothing(now, true);
            }
            (stops, now)
        };
        assert!(!second(&mut pace, 3).0 && !second(&mut pace, 3).0, "1,500 a second are no flood");
        let (stops, now) = second(&mut pace, 5);
        assert!(stops, "2,500 a second are one");
        // From here the consumer polls, first after a millisecond, instead of listening.
        pace.found(now, None);
        for pause in [SPINS[0], SPINS[1], SPINS[1]] {
            assert_eq!(pace.nothing(now, false), Step::Pause(pause));
        }
        assert!(pace.found(now, None), "it goes on");
        for _ in 0..DRY {
            assert!(matches!(pace.nothing(now, false), Step::Pause(_)));
        }
        assert_eq!(pace.nothing(now, false), Step::Listen, "nothing came for 15 ms");
        assert!(!pace.found(now + TRAFFIC, Some(0)), "a flood has to last for a second again");
    }

    #[test]
    fn flood_ends_when_fewer_dequeues_find_something() {
        let (mut flood, now) = (Flood { is_on: true, ..Flood::default() }, Instant::now());
        let enough = TRICKLE as u32;
        for nr in 0..=enough {
            flood.found(now + TRAFFIC * nr / enough, None);
        }
        assert!(flood.is_on);
        for nr in 1..=enough / 2 {
            flood.found(now + TRAFFIC + TRAFFIC * nr / (enough / 2), None);
        }
        assert!(!flood.is_on);
    }

    #[test]
    fn notifications_of_a_long_time_are_no_flood() {
        let (mut flood, now) = (Flood::default(), Instant::now());
        flood.found(now, Some(0));
        flood.found(now + TRAFFIC * 60, Some(60_000));
        assert!(!flood.is_on, "1,000 a second, while a handler took a minute");
        flood.found(now + TRAFFIC * 62, Some(64_000));
        assert!(flood.is_on, "2,000 a second");
        flood.found(now + TRAFFIC * 122, None);
        assert!(!flood.is_on, "one dequeue in a minute");
    }

    #[test]
    fn adaptive_does_not_poll_between_messages_that_are_far_apart() {
        let (mut pace, now) = (Pace::new(Wait::Adaptive), Instant::now());
        for spin in SPINS {
            assert_eq!(pace.nothing(now, true), Step::Pause(spin));
        }
        assert_eq!(pace.nothing(now, true), Step::Look);
        pace.found(now + Duration::from_secs(1), None);
        assert_eq!(pace.nothing(now, true), Step::Look, "the last one was a second away");
        pace.found(now + Duration::from_millis(1), None);
        assert_eq!(pace.nothing(now, true), Step::Pause(SPINS[0]), "the last one was a millisecond away");
        pace.found(now, None);
        assert_eq!(pace.nothing(now, false), Step::Listen, "a consumer that does not listen would have to ask");
    }

    #[test]
    fn messages_held_by_others_are_polled_ever_less_often() {
        let mut pace = Pace::new(Wait::Notify);
        let pauses: Vec<_> = (0..20).map(|_| pace.looked(Some(-1.0), true)).collect();
        assert!(pauses.is_sorted());
        assert_eq!(pauses[19], LOCKED.1);
    }
}
