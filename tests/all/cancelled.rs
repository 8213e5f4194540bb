//! Callers drop their calls at any poll: nothing is lost, nothing is repeated, and each remaining
//! caller receives its own answer.

use std::{
    collections::{HashMap, HashSet},
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use tokio::{task::JoinSet, time::timeout};
use trunkline::{Db, Message, Queue, Settings, postgres::Statement};

use crate::{chaos::Dice, fixture::db};

static INSERT: Statement<(i32,), u64> = Statement::new("insert into t values ($1)");
static ECHO: Statement<(i32,), (i32,)> = Statement::new("select $1::int4");
static SERIES: Statement<(i32,), Vec<(i32,)>> = Statement::new("select generate_series(1, $1)");

const CALLERS: i32 = 24;
const TURNS: i32 = 60;
const SOON: Duration = Duration::from_secs(60);

/// Polls a future at most `times` times, and then drops it.
pub async fn polled<T>(times: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = times;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// The numbers that a caller has inserted, grouped by outcome.
#[derive(Default)]
struct Known {
    there: Vec<i32>,
    /// Groups of numbers that were inserted completely or not at all.
    perhaps: Vec<Vec<i32>>,
    not_there: Vec<i32>,
}

async fn insert(db: &Db, dice: &mut Dice, n: i32, known: &mut Known) {
    match polled(dice.below(4), db.run(&INSERT, (n,))).await {
        Some(inserted) => {
            assert_eq!(inserted.expect("inserted"), 1);
            known.there.push(n);
        }
        None => known.perhaps.push(vec![n]),
    }
}

async fn transact(db: &Db, dice: &mut Dice, n: i32, known: &mut Known) {
    let transaction = db.begin().await.expect("begun");
    let mut numbers = Vec::new();
    for n in n..n + 5 {
        match dice.below(3) {
            0 => drop(transaction.send(&INSERT, (n,)).await.expect("sent")),
            1 => drop(transaction.run(&INSERT, (n,)).await.expect("inserted")),
            _ => {
                // Drops a call whose statement may or may not have been sent. The statement inserts
                // nothing, so the result of the transaction is still known.
                let gone = polled(dice.below(3), transaction.run(&ECHO, (n,))).await;
                assert!(gone.is_none_or(|echo| echo.expect("echoed") == (n,)));
                continue;
            }
        }
        numbers.push(n);
    }
    assert_eq!(transaction.run(&ECHO, (n,)).await.expect("echoed"), (n,), "its own answer");
    if dice.below(4) == 0 {
        known.not_there.extend(numbers); // dropping the transaction rolls it back
        return;
    }
    match polled(dice.below(4), transaction.commit()).await {
        Some(committed) => {
            committed.expect("committed");
            known.there.extend(numbers);
        }
        None => known.perhaps.push(numbers),
    }
}

/// Drops calls that read chunks; the next call returns the chunk of a dropped call.
async fn stream(db: &Db, dice: &mut Dice) {
    let transaction = db.begin().await.expect("begun");
    let mut stream = transaction.stream(&SERIES, (200,), 1 + dice.below(50)).await.expect("sent");
    let mut seen = 0;
    loop {
        let chunk = match polled(dice.below(3), stream.next_chunk()).await {
            Some(chunk) => chunk,
            None if dice.below(20) == 0 => return, // drops the transaction, too
            None => stream.next_chunk().await,
        };
        let Some(rows) = chunk.expect("read") else { break };
        assert!(rows.iter().map(|(n,)| *n).eq(seen + 1..=seen + rows.len() as i32), "after {seen}: {rows:?}");
        seen += rows.len() as i32;
    }
    assert_eq!(seen, 200);
    transaction.commit().await.expect("committed");
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_transactions_and_streams_survive_callers_who_go_away() {
    let db = db().await;
    db.run(&Statement::<(), ()>::new("create table t (n int)"), ()).await.expect("created");
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (db, mut dice) = (db.clone(), Dice(caller as u64));
        callers.spawn(async move {
            let mut known = Known::default();
            for turn in 0..TURNS {
                let n = (caller * TURNS + turn) * 10;
                match dice.below(4) {
                    0 => insert(&db, &mut dice, n, &mut known).await,
                    1 => transact(&db, &mut dice, n, &mut known).await,
                    2 => stream(&db, &mut dice).await,
                    _ => {
                        let echo = polled(1 + dice.below(3), db.run_many(&ECHO, [(n,), (n + 1,)])).await;
                        assert!(echo.is_none_or(|echo| echo.expect("echoed") == [(n,), (n + 1,)]), "its own answer");
                    }
                }
                assert_eq!(db.run(&ECHO, (n,)).await.expect("echoed"), (n,), "its own answer");
            }
            known
        });
    }
    let mut all = Vec::new();
    while let Some(known) = timeout(SOON, callers.join_next()).await.expect("no call waits without an end") {
        all.push(known.expect("no panic"));
    }
    let counts = Statement::<(), Vec<(i32, i64)>>::new("select n, count(*) from t group by n");
    let there: HashMap<i32, i64> = db.run(&counts, ()).await.expect("read").into_iter().collect();
    assert!(there.values().all(|count| *count == 1), "nothing is there twice");
    for known in all {
        assert!(known.there.iter().all(|n| there.contains_key(n)), "nothing is lost");
        assert!(!known.not_there.iter().any(|n| there.contains_key(n)), "what was dropped is not there");
        for numbers in known.perhaps {
            let count = numbers.iter().filter(|n| there.contains_key(n)).count();
            assert!(count == 0 || count == numbers.len(), "all of a transaction, or nothing: {numbers:?}");
        }
    }
}

/// No lease expires here, so a message is delivered again only if it was given back.
#[tokio::test(flavor = "multi_thread")]
async fn leases_of_callers_who_go_away_are_given_back() {
    const COUNT: i64 = 2000;
    let db = db().await;
    let settings = Settings::new("int8").lease(Duration::from_secs(3600)).max_batch(16).max_attempts(1);
    db.create_queue("q", &settings).await.expect("created");
    let queue: Queue<i64> = db.queue("q").await.expect("opened");
    queue.enqueue_many(&(0..COUNT).collect::<Vec<_>>()).await.expect("enqueued");
    let received = Arc::new(Mutex::new(HashSet::new()));
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (queue, received, mut dice) = (queue.clone(), received.clone(), Dice(caller as u64));
        callers.spawn(async move {
            let mut held: Vec<Message<i64>> = Vec::new();
            while received.lock().expect("no panic").len() < COUNT as usize || !held.is_empty() {
                let exchanged = polled(dice.below(5), queue.ack_and_lease(&held, 1 + dice.below(20))).await;
                let Some(exchanged) = exchanged else {
                    // Acknowledges again, because the dropped call may or may not have ended the
                    // leases. After this call, they have ended in any case.
                    let again = queue.ack(&held).await;
                    assert!(again.is_ok() || again.is_err_and(|error| error.is_lease_lost()));
                    held.clear();
                    continue;
                };
                let (next, lost) = exchanged.expect("exchanged");
                assert!(lost.is_empty(), "no other caller had them: {lost:?}");
                for message in &next {
                    assert!(received.lock().expect("no panic").insert(message.payload), "twice: {message:?}");
                }
                held = next;
            }
        });
    }
    while let Some(ended) = timeout(SOON, callers.join_next()).await.expect("nothing is lost") {
        ended.expect("no panic");
    }
    let stats = queue.stats().await.expect("counted");
    assert_eq!((stats.messages, stats.dead), (0, 0), "what is given back is not charged");
}
