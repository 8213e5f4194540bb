//! A connection ends after any byte of the answer, or within the request. The call returns the true
//! result or an unknown outcome, or fails before its statement was sent, and the next call works.

use std::{
    fmt::Debug,
    sync::atomic::{AtomicI32, Ordering},
    time::Duration,
};

use tokio::{sync::Mutex, time::timeout};
use tokio_postgres::Client;
use trunkline::{Db, Dequeue, Draft, Error, Lease, Message, Queue, Result, Settings, Wait, postgres::Statement};
use trunkline_embedded::DelayProxy;

use crate::fixture::{SOON, cluster, connect, database, through, until_asleep};

static INSERT: Statement<(i32,), u64> = Statement::new("insert into t values ($1)");
static SERIES: Statement<(i32,), Vec<(i32,)>> = Statement::new("select generate_series(1, $1)");

/// A database behind a proxy that cuts connections, and a direct connection to the same database.
struct Place {
    proxy: DelayProxy,
    url: String,
    db: Db,
    sql: Client,
    round: AtomicI32,
}

#[derive(Debug, Clone, Copy)]
enum Side {
    Answers,
    Requests,
}

async fn place() -> Place {
    let proxy = DelayProxy::start("127.0.0.1:0", cluster(), Duration::ZERO).expect("started");
    let url = database().await;
    let address = through(&url, &format!("host=127.0.0.1 port={} sslmode=disable", proxy.addr().port()));
    let sql = connect(&url).await;
    sql.batch_execute("create table t (n int)").await.expect("created");
    Place { db: Db::connect(&address).await.expect("connected"), proxy, url, sql, round: AtomicI32::new(0) }
}

impl Place {
    fn cut(&self, side: Side, after: Option<usize>) {
        match side {
            Side::Answers => self.proxy.cut_answers_after(after),
            Side::Requests => self.proxy.cut_requests_after(after),
        }
    }

    /// Runs `act` with a cut after an increasing number of bytes, until it completes before the
    /// cut. `check` receives the result, and whether the outcome is unknown. Then `next` must work
    /// on the same `Db`.
    async fn after_every_byte<S, R: Debug>(
        &self,
        side: Side,
        before: impl AsyncFn() -> S,
        act: impl AsyncFn(S) -> Result<R>,
        check: impl AsyncFn(&str, Option<R>, bool),
        next: impl AsyncFn() -> Result<()>,
    ) {
        let (mut bytes, mut unknown) = (0, 0);
        loop {
            let ready = before().await;
            self.cut(side, Some(bytes));
            let outcome = timeout(SOON, act(ready)).await;
            let what = format!("{side:?} cut after {bytes} bytes");
            let outcome = outcome.unwrap_or_else(|_| panic!("{what}: no answer"));
            let reached = !self.proxy.is_cut_ahead();
            self.cut(side, None);
            let result = outcome.inspect_err(|error| assert!(reached && error.is_closed(), "{what}: {error}"));
            let (lost, is_unknown) = (result.is_err(), result.as_ref().is_err_and(Error::is_outcome_unknown));
            unknown += usize::from(is_unknown);
            check(&what, result.ok(), is_unknown).await;
            // Allows a second try: a connection that ended after a complete answer may not have
            // reported its end yet.
            let soon = async || timeout(SOON, next()).await.expect("in time");
            let outcome = soon().await;
            assert!(outcome.is_ok() || !lost && soon().await.is_ok(), "{what}: and the next call: {outcome:?}");
            if !reached {
                break;
            }
            // Answers are cut at every byte. Requests are cut at every fourth byte, which still
            // reaches every part of every message.
            bytes += if let Side::Answers = side { 1 } else { 4 };
        }
        // A cut while the statement is prepared is no failure: the library sends it on another
        // connection.
        assert!(bytes > 100 && unknown > 20, "{side:?}: it was only {bytes} bytes, and {unknown} times unknown");
    }

    async fn runs(&self) -> Result<()> {
        self.db.run(&SERIES, (0,)).await.map(drop)
    }

    async fn transacts(&self) -> Result<()> {
        let transaction = self.db.begin().await?;
        transaction.send(&SERIES, (0,)).await?;
        transaction.commit().await
    }

    /// Returns a new number for the next inserts, because an earlier request that was cut off may
    /// still arrive.
    fn next_round(&self) -> i32 {
        self.round.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Checks that either all five rows of this round exist, or none. After a failure whose outcome
    /// is known, there are none.
    async fn all_or_nothing(&self, what: &str, success: bool, is_unknown: bool) {
        let text = "select count(*) from t where n / 5 = $1";
        let round = self.round.load(Ordering::Relaxed);
        let count: i64 = self.sql.query_one(text, &[&round]).await.expect("counted").get(0);
        let is_true = if success { count == 5 } else { count == 0 || count == 5 && is_unknown };
        assert!(is_true, "{what}: {count} of 5, success: {success}, unknown: {is_unknown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_off_statements_happen_or_not_and_report_truthfully() {
    let place = place().await;
    for side in [Side::Answers, Side::Requests] {
        place
            .after_every_byte(
                side,
                async || place.next_round(),
                async |round| place.db.run_many(&INSERT, (0..5).map(|n| (5 * round + n,))).await,
                async |what, inserted, is_unknown| {
                    place.all_or_nothing(what, inserted == Some(vec![1; 5]), is_unknown).await;
                },
                async || place.runs().await,
            )
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_off_transaction_happens_or_not_and_reports_truthfully() {
    let place = place().await;
    for side in [Side::Answers, Side::Requests] {
        place
            .after_every_byte(
                side,
                async || place.next_round(),
                async |round| {
                    let transaction = place.db.begin().await?;
                    for n in 0..5 {
                        transaction.send(&INSERT, (5 * round + n,)).await?;
                    }
                    transaction.commit().await
                },
                async |what, committed, is_unknown| {
                    place.all_or_nothing(what, committed.is_some(), is_unknown).await;
                },
                async || place.transacts().await,
            )
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_cut_off_brings_no_wrong_row() {
    let place = place().await;
    for side in [Side::Answers, Side::Requests] {
        place
            .after_every_byte(
                side,
                async || (),
                async |()| {
                    let transaction = place.db.begin().await?;
                    let mut stream = transaction.stream(&SERIES, (10,), 3).await?;
                    let mut seen = 0;
                    while let Some(rows) = stream.next_chunk().await? {
                        assert!(rows.iter().map(|(n,)| *n).eq(seen + 1..=seen + rows.len() as i32), "{rows:?}");
                        seen += rows.len() as i32;
                    }
                    assert_eq!(seen, 10, "an end that is none");
                    transaction.commit().await
                },
                async |_, _, _| {},
                async || place.transacts().await,
            )
            .await;
    }
}

async fn exchanged(side: Side) {
    let place = place().await;
    place.db.create_queue("q", &Settings::new("int8").max_batch(2)).await.expect("created");
    let queue: Queue<i64> = place.db.queue("q").await.expect("opened");
    let left = "select count(*)::int, coalesce(sum(size) filter (where attempt > 0), 0)::int from trunkline.queue_q";
    let counted = async || {
        let row = place.sql.query_one(left, &[]).await.expect("counted");
        (row.get::<_, i32>(0), row.get::<_, i32>(1))
    };
    let refill = "delete from trunkline.queue_q; select trunkline.enqueue_many('q', array[1, 2, 3, 4]::int8[])";
    place
        .after_every_byte(
            side,
            async || loop {
                place.sql.batch_execute(refill).await.expect("enqueued");
                let done = queue.lease(2).await.expect("leased");
                // Tries again if a cut request of an earlier round still ran, and leased these rows
                // first.
                if done.len() == 2 && counted().await == (2, 2) {
                    break done.iter().map(Message::lease).collect::<Vec<Lease>>();
                }
            },
            async |done| queue.ack_and_lease(done, 2).await,
            async |what, exchanged, is_unknown| {
                // Two messages are leased in any case. The number of rows with two messages shows
                // whether they are the same ones as before the call.
                let (rows, leased) = counted().await;
                assert_eq!(leased, 2, "{what}: both, or neither");
                match exchanged {
                    Some((next, lost)) => assert!(rows == 1 && next.len() == 2 && lost.is_empty(), "{what}"),
                    None => assert!(rows == 1 && is_unknown || rows == 2, "{what}"),
                }
            },
            async || queue.peek(1).await.map(drop),
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_exchange_with_a_cut_answer_happened_or_not() {
    exchanged(Side::Answers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_exchange_with_a_cut_request_happened_or_not() {
    exchanged(Side::Requests).await;
}

/// A consumer retries a dequeue whose answer was lost, but not after the end of its wait.
#[tokio::test(flavor = "multi_thread")]
async fn consumer_whose_time_is_up_reports_a_lost_answer() {
    let place = place().await;
    place.db.create_queue("q", &Settings::new("int8").max_batch(2)).await.expect("created");
    let queue: Queue<i64> = place.db.queue("q").await.expect("opened");
    let consumer = Mutex::new(queue.consumer(Wait::poll()));
    let refill = "delete from trunkline.queue_q; select trunkline.enqueue_many('q', array[1, 2]::int8[])";
    for is_offer in [false, true] {
        place
            .after_every_byte(
                Side::Answers,
                async || place.sql.batch_execute(refill).await.expect("enqueued"),
                async |()| {
                    let request = Dequeue::up_to(2).within(Duration::ZERO);
                    let mut consumer = consumer.lock().await;
                    match is_offer {
                        true => consumer.offer_lease(request).await?.accept(Ok),
                        false => consumer.lease(request).await,
                    }
                },
                async |what, leased, _| {
                    // Accepts an empty result: a statement that was cut off in an earlier round
                    // may still run, and may lease the new row first.
                    let all_or_nothing = |leased: Vec<Message<i64>>| leased.len() == 2 || leased.is_empty();
                    assert!(leased.is_none_or(all_or_nothing), "{what}");
                },
                async || queue.stats().await.map(drop), // the next call uses the same connection
            )
            .await;
    }
}

/// The server has committed, and its answer is lost. Consumers of other processes must not wait for
/// their next look, which is half a minute away.
#[tokio::test(flavor = "multi_thread")]
async fn change_whose_answer_was_lost_wakes_consumers() {
    let place = place().await;
    place.db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let queue: Queue<i64> = place.db.queue("q").await.expect("opened");
    let other = Db::connect(&place.url).await.expect("connected").queue::<i64>("q").await.expect("opened");
    let lost = async |change: &str| {
        // Prepares all statements, whose first answer then follows the commit.
        queue.reschedule(&[0], Duration::ZERO).await.expect("answered");
        queue.replay_all().await.expect("answered");
        let absent = Lease { id: 1 << 40, attempt: 1 };
        assert!(queue.release([absent]).await.expect_err("no such lease").is_lease_lost());
        assert!(queue.retry([absent], Duration::ZERO, "no").await.expect_err("no such lease").is_lease_lost());
        let id = queue.enqueue(Draft::new(1).after(Duration::from_secs(3600))).await.expect("enqueued").id();
        let mut leased = Vec::new();
        if change != "reschedule" {
            queue.reschedule(&[id], Duration::ZERO).await.expect("due");
            leased = queue.lease(1).await.expect("leased");
        }
        if change == "replay" {
            queue.bury(&leased, "no").await.expect("buried");
        }
        let mut consumer = other.consumer(Wait::Notify);
        let waiting = tokio::spawn(async move { consumer.take(1).await });
        until_asleep(&place.sql).await;
        place.cut(Side::Answers, Some(0));
        let changed = match change {
            "replay" => queue.replay_all().await.map(drop),
            "release" => queue.release(&leased).await,
            "retry" => queue.retry(&leased, Duration::ZERO, "no").await,
            _ => queue.reschedule(&[id], Duration::ZERO).await.map(drop),
        };
        place.cut(Side::Answers, None);
        assert!(changed.expect_err("its answer is lost").is_outcome_unknown(), "{change}");
        let taken = timeout(SOON, waiting).await.unwrap_or_else(|_| panic!("{change}: the consumer sleeps on"));
        assert_eq!(taken.expect("no panic").expect("taken").len(), 1, "{change}");
    };
    for change in ["reschedule", "replay", "release", "retry"] {
        lost(change).await;
    }
}

/// A taken message whose caller is gone goes back, and the answer to its insert is lost.
#[tokio::test(flavor = "multi_thread")]
async fn return_of_a_message_whose_answer_was_lost_wakes_consumers() {
    let place = place().await;
    place.db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let queue: Queue<i64> = place.db.queue("q").await.expect("opened");
    let other = Db::connect(&place.url).await.expect("connected").queue::<i64>("q").await.expect("opened");
    queue.enqueue(1).await.expect("enqueued");
    // Prepares the statement, whose first answer then follows the commit.
    drop(queue.offer_take(1).await.expect("taken"));
    queue.consumer(Wait::poll()).close_direct().await; // waits until the message is back
    let offer = queue.offer_take(1).await.expect("taken");
    assert_eq!(offer.len(), 1);
    let mut consumer = other.consumer(Wait::Notify);
    let waiting = tokio::spawn(async move { consumer.take(1).await });
    until_asleep(&place.sql).await;
    place.cut(Side::Answers, Some(0));
    drop(offer);
    let taken = timeout(SOON, waiting).await.expect("the consumer sleeps on");
    assert_eq!(taken.expect("no panic").expect("taken").len(), 1);
    assert!(!place.proxy.is_cut_ahead(), "the answer was lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn version_of_the_schema_is_read_again_after_a_cut() {
    let place = place().await;
    for _ in 0..4 {
        place.db.schema_version().await.expect("prepared");
    }
    place.cut(Side::Answers, Some(0));
    let version = timeout(SOON, place.db.schema_version()).await.expect("in time").expect("read again");
    assert!(version > 0 && !place.proxy.is_cut_ahead(), "or else nothing was cut");
}
