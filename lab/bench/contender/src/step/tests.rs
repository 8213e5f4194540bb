use std::cell::Cell;

use tokio::sync::watch;

use super::*;
use crate::{Ready, Timed, Wait};

thread_local! {
    /// The simulated allocations of this test's contender.
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
    /// The number of sends to this test's contender, for a reader that waits for them.
    static SENT: watch::Sender<u64> = watch::Sender::new(0);
    /// The number of reads that find fewer messages, because other callers lock the rest.
    static LOCKED: Cell<usize> = const { Cell::new(0) };
}

const COUNTED: Measure = Some(|| (ALLOCATED.get(), 10 * ALLOCATED.get()));

/// A queue in memory. Each read returns this number of messages too many, or too few if the number
/// is negative.
struct Fake(isize);

/// Returns true for a read that finds fewer messages.
fn is_locked() -> bool {
    LOCKED.replace(LOCKED.get().saturating_sub(1)) > 0
}

impl Fake {
    fn some(&self, n: usize) -> usize {
        n.checked_add_signed(self.0).expect("no less than none")
    }
}

fn allocate(count: u64) {
    ALLOCATED.set(ALLOCATED.get() + count);
}

impl Contender for Fake {
    type Handle = ();

    async fn install(_: &Settings) -> Result<(Self, Ready), Failure> {
        Err("this contender is never installed".into())
    }

    async fn send(&self, _: usize, _: Vec<String>) -> Result<(), Failure> {
        allocate(1000);
        SENT.with(|all| all.send_modify(|sent| *sent += 1));
        // Lets a waiting reader receive the messages before the sender's call returns.
        tokio::task::yield_now().await;
        Ok(())
    }

    async fn consume(self: Arc<Self>, _: Arc<Tally>) -> Result<(), Failure> {
        Err("this contender never consumes".into())
    }

    async fn read(&self, _: usize, n: usize) -> Result<Vec<()>, Failure> {
        allocate(100);
        Ok(vec![(); if is_locked() { n / 3 } else { self.some(n) }])
    }

    async fn delete(&self, _: usize, _: Vec<()>) -> Result<(), Failure> {
        allocate(1);
        Ok(())
    }

    async fn archive(&self, _: usize, _: Vec<()>) -> Result<(), Failure> {
        allocate(2);
        Ok(())
    }

    async fn pop(&self, _: usize, n: usize) -> Result<usize, Failure> {
        allocate(3);
        Ok(if is_locked() { n / 3 } else { self.some(n) })
    }

    /// Returns nothing until a message is sent after the wait has begun.
    async fn read_with_poll(&self, _: usize, n: usize, patience: Duration) -> Result<Vec<()>, Failure> {
        let mut sent = SENT.with(watch::Sender::subscribe);
        tokio::time::timeout(patience, sent.changed()).await.map_err(|_| "nothing was sent while it waited")??;
        Ok(vec![(); self.some(n)])
    }
}

async fn once(contender: &Fake, case: &str) -> Result<Cost, Failure> {
    let settings = Settings {
        url: String::new(),
        case: case.to_owned(),
        payload: 100,
        batch: 10,
        dequeue_batch: 0,
        threads: 1,
        producers: 1,
        consumers: 0,
        rate: None,
        backlog: 0,
        messages: 0,
        keys: 0,
        timed: Timed::All,
        dead: 0,
        windows: 1,
        time: Duration::ZERO,
        wait: Wait::Best,
    };
    Step::parse(case)?.once(contender, 0, &settings, COUNTED).await
}

const READERS: [&str; 6] =
    ["read-batch-10", "read-with-poll-1s-10", "delete-batch-10", "archive-batch-10", "pop-batch-10", "full-cycle"];

#[tokio::test]
async fn step_with_wrong_number_of_messages_fails() {
    for case in READERS {
        for (off, had) in [(-10, 0), (-1, 9), (1, 11)] {
            let failure = once(&Fake(off), case).await.expect_err(case);
            assert_eq!(failure.to_string(), format!("asked for 10 messages and had {had}"), "{case}");
        }
    }
}

#[tokio::test]
async fn a_step_that_had_what_it_asked_for_passes() {
    for case in READERS {
        once(&Fake(0), case).await.expect(case);
    }
}

#[tokio::test]
async fn reader_asks_again_for_what_others_have_locked() {
    for case in READERS {
        LOCKED.set(7);
        once(&Fake(0), case).await.expect(case);
        LOCKED.set(TRIES + 1);
        let failure = once(&Fake(0), "read-batch-1").await.expect_err("the last two stay locked");
        assert_eq!(failure.to_string(), "asked for 10 messages and had 8");
    }
}

#[tokio::test]
async fn preparation_of_a_step_is_not_measured() {
    for (case, own) in [
        ("send-single", 1000),
        ("send-batch-10", 1000),
        ("send-payload-100", 1000),
        ("read-single", 100),
        ("read-batch-10", 100),
        ("delete-single", 1),
        ("delete-batch-10", 1),
        ("archive-single", 2),
        ("archive-batch-10", 2),
        ("pop-batch-10", 3),
        ("full-cycle", 1101),
    ] {
        let cost = once(&Fake(0), case).await.expect(case);
        assert_eq!((cost.allocations, cost.bytes), (own, 10 * own), "{case}");
    }
}

#[tokio::test]
async fn waiting_reader_is_timed_from_the_send() {
    for case in ["read-with-poll-1s-10", "read-with-poll-5s-10"] {
        let began = Instant::now();
        let cost = once(&Fake(0), case).await.expect(case);
        assert!(began.elapsed() >= Duration::from_millis(100), "{case}: it did not wait");
        assert!(cost.time + Duration::from_millis(90) < began.elapsed(), "{case}: {cost:?} is the whole time");
        assert!(cost.time > Duration::ZERO, "{case}: they were there before they were sent");
    }
}

#[tokio::test]
async fn unknown_step_is_refused() {
    for case in ["", "send", "delete", "reading-batch-10", "sends-single", "read-with-poll-10"] {
        let failure = once(&Fake(0), case).await.expect_err(case);
        assert!(failure.to_string().contains("no such case"), "{failure}");
    }
}

#[test]
fn callers_claim_no_more_messages_than_are_left() {
    let left = Left::of(25);
    assert_eq!([10, 10, 10, 10].map(|n| left.claim(n)), [10, 10, 5, 0]);
    let endless = Left::of(0);
    assert_eq!([10, 10].map(|n| endless.claim(n)), [10, 10]);
}
