//! Tests `take` and `lease` in SQL with a wait. They return a message, end in time, and block no
//! other session in the meantime.

use std::time::{Duration, Instant};

use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::{CancelToken, Client, Error, NoTls, Row};
use trunkline::Settings;

use crate::fixture::{Place, SOON, connect, eventually, place, run_out, within};

const LONG: [&str; 2] = [
    "select payload, attempt from trunkline.take('q', 9, wait => '1 minute')",
    "select payload, attempt from trunkline.lease('q', 9, wait => '1 minute')",
];

/// A waiting call on its own connection.
struct Waiting {
    pid: i32,
    cancel: CancelToken,
    call: JoinHandle<Result<Vec<Row>, Error>>,
}

impl Waiting {
    /// Starts the call, and returns once the call sleeps between two probes.
    async fn begin(url: &str, sql: &Client, call: &'static str) -> Self {
        let session = connect(url).await;
        let pid = session.query_one("select pg_backend_pid()", &[]).await.expect("known").get(0);
        let cancel = session.cancel_token();
        let call = tokio::spawn(async move { session.query(call, &[]).await });
        let waiting = Self { pid, cancel, call };
        eventually("it sleeps", || waiting.is(sql, "wait_event = 'PgSleep'")).await;
        waiting
    }

    async fn is(&self, sql: &Client, condition: &str) -> bool {
        let query = format!("select exists (select from pg_stat_activity where pid = $1 and {condition})");
        sql.query_one(&query, &[&self.pid]).await.expect("activity is visible").get(0)
    }

    async fn end(self) -> Result<Vec<Row>, Error> {
        timeout(SOON, self.call).await.expect("in time").expect("no panic")
    }
}

async fn refused(sql: &Client, call: &str) -> (String, String) {
    let error = sql.query(&format!("select * from trunkline.{call}"), &[]).await.expect_err(call);
    let error = error.as_db_error().expect("the server's");
    (error.code().code().to_owned(), error.hint().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_gets_what_others_enqueue() {
    let Place { url, sql, db: _db, .. } = place::<String>(Settings::new("text")).await;
    for (call, attempt) in LONG.into_iter().zip([0, 1]) {
        let waiting = Waiting::begin(&url, &sql, call).await;
        sql.batch_execute("select trunkline.enqueue_many('q', array['a', 'b'])").await.expect("enqueued");
        let rows = waiting.end().await.expect("it came");
        let got: Vec<(String, i32)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        assert_eq!(got, [("a".to_owned(), attempt), ("b".to_owned(), attempt)], "{call}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_ends_returns_no_rows_in_its_time() {
    let Place { sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    for call in ["take('q', wait => '400 ms')", "lease('q', 5, '1 s', '400 ms')"] {
        let began = Instant::now();
        let rows = sql.query(&format!("select * from trunkline.{call}"), &[]).await.expect("nothing came");
        let took = began.elapsed();
        assert!(
            rows.is_empty() && took.as_millis() >= 400 && took < SOON,
            "{call}: {} rows after {took:?}",
            rows.len()
        );
    }
    let at_once = sql.query("select * from trunkline.take('q', 0, wait => '1 minute')", &[]);
    assert!(timeout(SOON, at_once).await.expect("a take of nothing does not wait").expect("called").is_empty());
    // If a message already exists, there is no wait. A wait of zero ends immediately.
    sql.batch_execute("select trunkline.enqueue_many('q', array[1, 2]::int8[])").await.expect("enqueued");
    for call in ["take('q', wait => '1 minute')", "take('q', wait => '0')", "lease('q', wait => '0 s')"] {
        let rows = timeout(SOON, sql.query(&format!("select * from trunkline.{call}"), &[])).await.expect("at once");
        assert_eq!(rows.expect("called").len(), usize::from(!call.starts_with("lease")), "{call}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_has_bounds_and_needs_a_transaction_with_fresh_snapshots() {
    let Place { sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    for verb in ["take", "lease"] {
        for wait in ["'-1 ms'", "'61 s'", "'1 month'", "'1 year -359 days -23:59:50'", "null"] {
            let (code, hint) = refused(&sql, &format!("{verb}('q', wait => {wait})")).await;
            assert!(code == "22023" && hint.contains("1 minute"), "{verb} {wait}: {code}, {hint}");
        }
        let call = format!("{verb}('q', wait => '1 s')");
        for level in ["repeatable read", "serializable"] {
            sql.batch_execute(&format!("begin isolation level {level}")).await.expect("begun");
            let (code, hint) = refused(&sql, &call).await;
            assert!(code == "25000" && hint.contains("read committed"), "{level}: {code}, {hint}");
            sql.batch_execute("rollback").await.expect("rolled back");
        }
        sql.batch_execute("begin; select pg_current_xact_id()").await.expect("as after any write");
        let (code, hint) = refused(&sql, &call).await;
        assert!(code == "25000" && hint.contains("Commit before"), "{code}, {hint}");
        sql.batch_execute("rollback; begin isolation level repeatable read").await.expect("begun");
        let looks = sql.query(&format!("select * from trunkline.{verb}('q')"), &[]).await;
        assert!(looks.expect("without a wait it looks").is_empty());
        sql.batch_execute("rollback").await.expect("rolled back");
        assert_eq!(refused(&sql, &format!("{verb}('nowhere', wait => '1 s')")).await.0, "42P01");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_call_holds_no_lock_and_no_transaction_id() {
    let Place { url, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    for call in LONG {
        let waiting = Waiting::begin(&url, &sql, call).await;
        // Runs a statement between two probes. If the call held a lock, the statement would be
        // blocked until the end of the wait.
        sql.batch_execute("set lock_timeout = '15 s'; alter table trunkline.queue_q add note text").await.expect(call);
        assert!(waiting.is(&sql, "backend_xid is null").await, "it would hold up every floor");
        sql.batch_execute("alter table trunkline.queue_q drop note; select trunkline.enqueue('q', 7::int8)")
            .await
            .expect(call);
        assert_eq!(waiting.end().await.expect("it looks on, in the table as it is now").len(), 1, "{call}");
    }
    sql.batch_execute("select trunkline.purge('q')").await.expect("purged");
    let waiting = Waiting::begin(&url, &sql, LONG[0]).await;
    sql.batch_execute("select trunkline.drop_queue('q')").await.expect("no lock is in the way");
    let error = waiting.end().await.expect_err("its queue is gone");
    assert_eq!(error.code().map(tokio_postgres::error::SqlState::code), Some("42P01"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_can_be_cancelled() {
    let Place { url, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    for call in LONG {
        let waiting = Waiting::begin(&url, &sql, call).await;
        waiting.cancel.cancel_query(NoTls).await.expect("sent");
        let error = waiting.end().await.expect_err("cancelled");
        assert_eq!(error.code().map(tokio_postgres::error::SqlState::code), Some("57014"), "{error:?}");
    }
}

/// A call returns if its probe has to write, so that other sessions see the change immediately.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_had_to_bury_something_waits_no_longer() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8").max_attempts(1)).await;
    for (dead, call) in LONG.into_iter().enumerate() {
        queue.enqueue(1).await.expect("enqueued");
        queue.lease(1).await.expect("leased");
        run_out(&sql).await;
        let rows = timeout(SOON, sql.query(call, &[])).await.expect("no wait").expect("called");
        assert!(rows.is_empty(), "{call}");
        assert_eq!(queue.stats().await.expect("counted").dead, dead as u64 + 1, "{call}");
    }
}

/// During a pause or at a limit, no message can be leased. The call waits for the end of that state
/// as it waits for a message, and holds no locks in the meantime.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_call_goes_on_after_a_pause_or_limit_ends() {
    let holding = [
        ("pause_queue('q')", "resume_queue('q')"),
        ("limit_queue('q', per_second => 1e-6, burst => 1)", "limit_queue('q', per_second => 1000)"),
        (
            "limit_queue('q', max_leased => 1)",
            "ack_many('q', array(select id from trunkline.messages('q') where attempt = 1), '{1}')",
        ),
    ];
    for (hold, free) in holding {
        for call in LONG {
            let Place { queue, url, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
            sql.batch_execute(&format!("select trunkline.{hold}")).await.expect(hold);
            queue.enqueue_many(&[1, 2]).await.expect("enqueued");
            if !hold.starts_with("pause") {
                assert_eq!(queue.lease(1).await.expect("leased").len(), 1, "that is allowed: {hold}");
            }
            let waiting = Waiting::begin(&url, &sql, call).await;
            eventually("it has looked more than once", || waiting.is(&sql, "now() > query_start + interval '100 ms'"))
                .await;
            eventually("it sleeps again", || waiting.is(&sql, "wait_event = 'PgSleep'")).await;
            // Checks with one query, because the call may probe between two queries. A waiting call
            // with a transaction id would hold up every floor. The call's only lock is the one on
            // its own virtual transaction id, which every statement has.
            let holds_nothing = "wait_event = 'PgSleep' and backend_xid is null and not exists (
                select from pg_locks l where l.pid = pg_stat_activity.pid and l.locktype <> 'virtualxid')";
            eventually("it holds nothing while it sleeps", || waiting.is(&sql, holds_nothing)).await;
            sql.batch_execute(&format!("select trunkline.{free}")).await.expect(free);
            let rows = waiting.end().await.expect("it came");
            assert_eq!(rows.len(), if hold.starts_with("pause") { 2 } else { 1 }, "{free}: {call}");
        }
    }
}

/// Two calls wait for one message. The call that does not receive it continues to wait.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_calls_under_a_limit_do_not_end_each_other() {
    let Place { queue, url, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute("select trunkline.limit_queue('q', max_leased => 100, per_second => 1000)")
        .await
        .expect("limited");
    let mut waiting = Vec::new();
    for call in LONG.into_iter().cycle().take(6) {
        waiting.push(Waiting::begin(&url, &sql, call).await);
    }
    for nr in 0..6 {
        queue.enqueue(nr).await.expect("enqueued");
        let ended = async || queue.stats().await.expect("counted").due == 0;
        eventually("one of them has it", ended).await;
    }
    for waiting in waiting {
        assert_eq!(waiting.end().await.expect("it came").len(), 1);
    }
}

/// The session stores its floor in a setting. The floor rises while the call waits, although each
/// probe is rolled back.
#[tokio::test(flavor = "multi_thread")]
async fn the_floor_of_a_session_rises_while_it_waits() {
    let Place { sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let reached = "select (current_setting('trunkline.floor_' || 'trunkline.queue_q'::regclass::oid)::bigint[])[1]
                   > extract(epoch from now() - interval '1 minute') * 1000000";
    let rises = async || {
        sql.query("select * from trunkline.take('q', wait => '300 ms')", &[]).await.expect("waited");
        sql.query_one(reached, &[]).await.expect("kept").get(0)
    };
    // Waits long, because the floor rises later if another test keeps a transaction open.
    within(Duration::from_secs(120), "it rises", rises).await;
}
