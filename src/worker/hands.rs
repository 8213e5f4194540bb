//! Limits how many handlers run at the same time, and divides them among queues. A "hand" is a task
//! that may run one handler at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The handlers that may run at the same time. Each queue owns one, so it never has to wait for
/// another queue's slow handlers. The rest are divided by weight among the queues that have work.
pub(super) struct Hands {
    limit: usize,
    queues: Mutex<Vec<Share>>,
}

struct Share {
    weight: u32,
    /// True if the queue's last lease found a message.
    busy: bool,
    /// The number of tasks that run, or that are reserved for a lease being sent.
    used: usize,
    /// True if the queue has left and is no longer counted.
    has_left: bool,
    /// True if the queue's last reservation got fewer tasks than the queue is entitled to, and the
    /// queue has not been notified since.
    was_refused: bool,
    changed: Arc<Notify>,
}

impl Hands {
    pub fn new(limit: usize) -> Self {
        Self { limit, queues: Mutex::default() }
    }

    /// Returns the maximum number of handlers that run at the same time, for all queues together.
    pub fn most(&self) -> usize {
        self.limit
    }

    fn queues(&self) -> MutexGuard<'_, Vec<Share>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a queue and returns its number. `changed` is notified when more tasks may start.
    pub fn join(&self, weight: u32, changed: Arc<Notify>) -> usize {
        let mut queues = self.queues();
        let weight = weight.max(1);
        queues.push(Share { weight, busy: false, used: 0, has_left: false, was_refused: false, changed });
        queues.len() - 1
    }

    /// Removes a queue. The other queues can then use its tasks.
    pub fn leave(&self, nr: usize) {
        let mut queues = self.queues();
        (queues[nr].busy, queues[nr].has_left) = (false, true);
        tell_others(&queues, nr);
    }

    /// Reserves tasks for a lease. They stay reserved until they start or the result is dropped.
    pub fn reserve(&self, nr: usize) -> Reserved<'_> {
        Reserved { hands: self, nr, count: self.grant(nr) }
    }

    /// Takes the free tasks to which this queue is entitled by its weight, and returns their
    /// number.
    fn grant(&self, nr: usize) -> usize {
        let mut queues = self.queues();
        let others: usize = queues
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != nr)
            .map(|(_, queue)| queue.used.max(usize::from(!queue.has_left)))
            .fold(0, usize::saturating_add);
        let used = queues[nr].used;
        let free = self.limit.max(there(&queues)).saturating_sub(others.saturating_add(used));
        let entitled = share(self.limit, &queues, nr).saturating_sub(used);
        let granted = free.min(entitled);
        queues[nr].used += granted;
        queues[nr].was_refused = granted < entitled;
        granted
    }

    /// Returns true if a task of this queue may take another message. Returns false if another
    /// queue is entitled to the task.
    pub fn goes_on(&self, nr: usize) -> bool {
        let queues = self.queues();
        there(&queues) == 1 || queues[nr].used <= share(self.limit, &queues, nr)
    }

    /// Gives tasks back. Notifies only queues that were refused tasks. Other queues are entitled to
    /// no more tasks until their shares change, which notifies them as well. Without this rule, two
    /// idle queues would wake each other again and again.
    pub fn give_back(&self, nr: usize, hands: usize) {
        let mut queues = self.queues();
        queues[nr].used -= hands;
        for (_, queue) in queues.iter_mut().enumerate().filter(|(other, _)| *other != nr) {
            if std::mem::take(&mut queue.was_refused) {
                queue.changed.notify_one();
            }
        }
    }

    /// Records whether the queue's last lease found a message.
    pub fn found(&self, nr: usize, something: bool) {
        let mut queues = self.queues();
        if std::mem::replace(&mut queues[nr].busy, something) != something {
            tell_others(&queues, nr);
        }
    }
}

pub(super) struct Reserved<'a> {
    hands: &'a Hands,
    nr: usize,
    count: usize,
}

impl Reserved<'_> {
    pub fn count(&self) -> usize {
        self.count
    }

    /// Gives all tasks but `most` back.
    pub fn keep(&mut self, most: usize) {
        let rest = self.count.saturating_sub(most);
        if rest > 0 {
            self.count -= rest;
            self.hands.give_back(self.nr, rest);
        }
    }

    /// Removes `hands` started tasks from the reservation, so that dropping it does not give them
    /// back. Each task is given back when it ends.
    pub fn start(&mut self, hands: usize) {
        self.count -= hands;
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        // If there is nothing to give back, no queue is woken: it would wake this one in turn.
        if self.count > 0 {
            self.hands.give_back(self.nr, self.count);
        }
    }
}

fn tell_others(queues: &[Share], nr: usize) {
    for (_, queue) in queues.iter().enumerate().filter(|(other, _)| *other != nr) {
        queue.changed.notify_one();
    }
}

fn there(queues: &[Share]) -> usize {
    queues.iter().filter(|queue| !queue.has_left).count()
}

/// Returns the number of tasks that a queue may use if it has work. Each queue has one, and the
/// remaining tasks are divided by weight.
fn share(limit: usize, queues: &[Share], nr: usize) -> usize {
    let rest = limit.saturating_sub(there(queues)) as u128;
    let weight = |at: usize, queue: &Share| if queue.busy || at == nr { u128::from(queue.weight) } else { 0 };
    let all: u128 = queues.iter().enumerate().map(|(at, queue)| weight(at, queue)).sum();
    let before: u128 = queues[..nr].iter().enumerate().map(|(at, queue)| weight(at, queue)).sum();
    let until = before + weight(nr, &queues[nr]);
    1 + (rest * until / all - rest * before / all) as usize
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn hands(limit: usize, weights: &[u32]) -> Hands {
        let hands = Hands::new(limit);
        for weight in weights {
            hands.join(*weight, Arc::default());
        }
        hands
    }

    #[test]
    fn a_queue_alone_has_all_hands() {
        let hands = hands(64, &[1]);
        assert_eq!([hands.grant(0), hands.grant(0)], [64, 0]);
        hands.give_back(0, 3);
        assert_eq!(hands.grant(0), 3);
        assert!(hands.goes_on(0));
    }

    #[test]
    fn hands_go_by_weight_and_none_is_left_over() {
        for weights in [&[3, 1][..], &[1, 1, 1], &[5, 2, 9, 1]] {
            let hands = hands(64, weights);
            (0..weights.len()).for_each(|nr| hands.found(nr, true));
            let granted: Vec<usize> = (0..weights.len()).map(|nr| hands.grant(nr)).collect();
            assert_eq!(granted.iter().sum::<usize>(), 64, "{granted:?}");
        }
        let hands = hands(64, &[3, 1]);
        hands.found(0, true);
        hands.found(1, true);
        assert_eq!([hands.grant(0), hands.grant(1)], [47, 17]);
    }

    #[test]
    fn idle_queue_lends_all_its_tasks_but_one() {
        let hands = hands(64, &[3, 1]);
        hands.found(1, true);
        assert_eq!([hands.grant(1), hands.grant(0)], [63, 1]);
        assert!(hands.goes_on(1));
        hands.found(0, true);
        assert!(!hands.goes_on(1), "its next hand that ends is the other's");
        hands.give_back(1, 40);
        assert_eq!(hands.grant(0), 40);
    }

    #[test]
    fn unstarted_reservation_is_free_again() {
        let hands = hands(64, &[1]);
        let mut reserved = hands.reserve(0);
        reserved.start(10);
        assert_eq!((reserved.count(), hands.grant(0)), (54, 0));
        drop(reserved);
        assert_eq!(hands.grant(0), 54);
    }

    #[tokio::test]
    async fn unused_reservation_wakes_only_who_was_refused() {
        let (hands, changed) = (Hands::new(8), Arc::new(Notify::new()));
        hands.join(1, Arc::default());
        hands.join(1, changed.clone());
        hands.found(0, true);
        drop(hands.reserve(0));
        let is_woken = || changed.notified().now_or_never().is_some();
        is_woken(); // consumes the notification about the change of `busy`
        drop(hands.reserve(0));
        assert!(!is_woken());
        let reserved = hands.reserve(0);
        hands.found(1, true);
        assert!(hands.grant(1) < 4, "the other has reserved all but one");
        drop(reserved);
        assert!(is_woken());
        // All tasks are in use, so both queues are refused any more tasks.
        let _used = [hands.grant(0), hands.grant(1)];
        let refused = [hands.reserve(0), hands.reserve(1)].map(|reserved| reserved.count());
        assert_eq!(refused, [0, 0]);
        is_woken();
        drop(hands.reserve(0));
        assert!(!is_woken(), "nothing was given back");
    }

    #[tokio::test]
    async fn task_given_back_wakes_only_who_was_refused() {
        let (hands, changed) = (Hands::new(8), Arc::new(Notify::new()));
        hands.join(1, Arc::default());
        hands.join(1, changed.clone());
        let is_woken = || changed.notified().now_or_never().is_some();
        assert_eq!(hands.grant(0), 7, "all but one");
        hands.give_back(0, 1);
        drop(hands.reserve(0));
        assert!(!is_woken(), "it has asked for none");
        assert_eq!(hands.grant(1), 2, "of seven");
        hands.give_back(0, 1);
        assert!(is_woken());
        hands.give_back(0, 1);
        assert!(!is_woken(), "it has not asked since");
        hands.found(0, true);
        assert!(is_woken(), "its share has changed");
    }

    #[test]
    fn no_number_of_hands_is_too_large() {
        let hands = hands(usize::MAX, &[u32::MAX, u32::MAX]);
        hands.found(0, true);
        hands.found(1, true);
        let granted = [hands.grant(0), hands.grant(1)];
        assert!(granted.iter().all(|granted| *granted > usize::MAX / 4), "{granted:?}");
    }

    #[test]
    fn every_queue_has_a_task_however_few_there_are() {
        let hands = hands(1, &[9, 1]);
        assert_eq!([hands.grant(0), hands.grant(1), hands.grant(0)], [1, 1, 0]);
    }

    #[test]
    fn tasks_of_a_queue_that_left_go_to_others() {
        let hands = hands(4, &[1, 1]);
        hands.found(1, true);
        assert_eq!(hands.grant(0), 2, "as many as the other");
        hands.give_back(0, 2);
        hands.leave(1);
        assert_eq!(hands.grant(0), 4);
        assert!(hands.goes_on(0));
    }
}
