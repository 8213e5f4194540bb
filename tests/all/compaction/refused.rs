//! Compactions that are refused or undone.

use tokio::time::timeout;
use tokio_postgres::Client;
use trunkline::Settings;

use super::{burn, compact, freed, frees_nothing, waste};
use crate::fixture::{Place, SOON, connect, eventually, one_waits, place, superuser};

#[tokio::test(flavor = "multi_thread")]
async fn compaction_is_refused_with_its_reason() {
    let Place { queue, url, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    let admin = superuser(&url).await;
    queue.enqueue(1).await.expect("enqueued");
    let says = async |what: &str| {
        waste(&sql).await;
        eventually(what, || async {
            let (freed, refused) = compact(&sql).await;
            assert_eq!(freed, 0, "{what}");
            refused.is_some_and(|refused| refused.contains(what))
        })
        .await;
    };
    // Uses sessions of two roles, because an ordinary role sees the start times only of its own
    // sessions, and not of a superuser's.
    let (same, powerful) = (connect(&url).await, superuser(&url).await);
    for (act, what, undo) in [
        ("begin; select from trunkline.queue_q", "uses it in a transaction that began at", "rollback"),
        (
            "begin; update trunkline.queue_q set size = size; prepare transaction 'p'",
            "a prepared transaction uses it",
            "rollback prepared 'p'",
        ),
        (
            "begin; lock table trunkline.queue_q in share update exclusive mode",
            "a vacuum or another compaction",
            "rollback",
        ),
        (
            "set application_name = 'pg_dump'; begin isolation level repeatable read; select from trunkline.queue",
            "is pg_dump",
            "rollback; reset application_name",
        ),
        (
            "create table public.refers (id bigint references trunkline.queue_q)",
            "a foreign key refers to its table",
            "drop table public.refers",
        ),
        (
            "create publication p for table trunkline.queue_q with (publish = 'insert')",
            "a publication contains its table",
            "drop publication p",
        ),
    ] {
        let other = if act.contains("publication") || act.contains("prepare") { &powerful } else { &same };
        other.batch_execute(act).await.expect(act);
        if what.contains("prepared") {
            // Does not call `says`, whose update would wait for the prepared transaction.
            eventually(what, || async { compact(&sql).await.1.is_some_and(|refused| refused.contains(what)) }).await;
        } else if what.contains("vacuum") {
            assert_eq!(compact(&sql).await.1.as_deref(), Some("a vacuum or another compaction is running"));
        } else {
            says(what).await;
        }
        other.batch_execute(undo).await.expect(undo);
    }
    waste(&admin).await;
    freed(&sql).await;

    let failing = [
        ("begin isolation level repeatable read; select trunkline.compact('q', 0)", "is read committed"),
        ("select trunkline.compact('r')", "there is no queue 'r'"),
        ("select trunkline.compact('q', null)", "at_least must not be null"),
        ("select trunkline.compact('q', 0, '0 s')", "max_pause must be more than zero"),
        ("select trunkline.compact('q', 0, '36501 days')", "a max_pause of 36501 days is out of bounds"),
        ("select trunkline.compact('q', 0, '178000000 years')", "is out of bounds"),
        (
            "select trunkline.rewrite(null::trunkline.queue_q[], 'trunkline.queue_q', 0, '1 s')",
            "only trunkline.compact rewrites a table",
        ),
        (
            "begin; lock table trunkline.queue_q in share update exclusive mode;
             select trunkline.rewrite(null::trunkline.dead_q[], 'trunkline.queue_q', 0, '1 s')",
            "only trunkline.compact rewrites a table",
        ),
    ];
    for (call, error) in failing {
        let said = sql.batch_execute(call).await.expect_err(call);
        assert!(said.as_db_error().is_some_and(|said| said.message().contains(error)), "{call}: {said:?}");
        sql.batch_execute("rollback").await.expect("rolled back");
    }
    // Fills most of the table with messages, so that a compaction frees nothing.
    queue.enqueue_many(&vec![7; 100_000]).await.expect("enqueued");
    frees_nothing(&sql).await;
    // Checks that a compaction is not started if it would take too long.
    let long = "select freed, refused from trunkline.compact('q', 0, '1 us')";
    eventually("it would take too long", || async {
        let row = sql.query_one(long, &[]).await.expect("called");
        assert_eq!(row.get::<_, i64>(0), 0);
        row.get::<_, Option<&str>>(1).is_some_and(|refused| refused.contains("would take longer than"))
    })
    .await;
}

/// The sessions that wait for the same lock are not named.
#[tokio::test(flavor = "multi_thread")]
async fn session_that_has_locked_the_table_is_named_at_once() {
    let Place { queue, url, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    waste(&sql).await;
    let holder = connect(&format!("{url} application_name=psql")).await;
    let pid: i32 = holder.query_one("select pg_backend_pid()", &[]).await.expect("asked").get(0);
    for mode in ["share", "access exclusive"] {
        let lock = format!("begin; lock table trunkline.queue_q in {mode} mode");
        holder.batch_execute(&lock).await.expect("locked");
        let waiter = connect(&url).await;
        let waits = tokio::spawn(async move { waiter.batch_execute("update trunkline.queue_q set size = size").await });
        eventually("it waits", || one_waits(&sql)).await;
        let compacted = timeout(SOON, compact(&sql)).await.expect("it does not wait for the lock");
        assert_eq!(compacted, (0, Some(format!("session {pid} (psql) has locked its table"))), "{mode}");
        holder.batch_execute("rollback").await.expect("released");
        waits.await.expect("no panic").expect("updated");
    }
}

/// A dump that connects while a compaction runs takes its snapshot before the table is ready.
#[tokio::test(flavor = "multi_thread")]
async fn compaction_is_undone_if_a_dump_begins_meanwhile() {
    let Place { queue, url, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    waste(&sql).await;
    let compacting = connect(&url).await;
    // Makes each insert poll for a lock. A function that waits for the lock would end with the
    // compaction's own limit of 20 ms.
    sql.batch_execute(
        "create function public.wait() returns bool language plpgsql as
             'begin while not pg_try_advisory_xact_lock_shared(7) loop perform pg_sleep(0.001); end loop; return true; end';
         alter table trunkline.queue_q add constraint wait check (public.wait())",
    )
    .await
    .expect("created");
    sql.batch_execute("select pg_advisory_lock(7)").await.expect("locked");
    let before = contents_of_rows(&sql).await;
    let compacts = tokio::spawn(async move {
        loop {
            let (freed, refused) = compact(&compacting).await;
            // Ignores refusals for other reasons: a vacuum or a floor probe may use the table.
            if freed > 0 || refused.as_ref().is_some_and(|refused| refused.contains("pg_dump")) {
                return (freed, refused);
            }
        }
    });
    let waits =
        "select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')";
    eventually("it copies", || async { sql.query_one(waits, &[]).await.expect("asked").get(0) }).await;
    let _dump = connect(&format!("{url} application_name=pg_dump")).await;
    sql.batch_execute("select pg_advisory_unlock(7)").await.expect("unlocked");
    assert_eq!(compacts.await.expect("no panic"), (0, Some("pg_dump has begun".to_owned())));
    assert_eq!(contents_of_rows(&sql).await, before);
}

/// Returns the rows with their positions in the file.
async fn contents_of_rows(sql: &Client) -> Vec<String> {
    let text = "select ctid::text || q::text from trunkline.queue_q q order by 1";
    sql.query(text, &[]).await.expect("read").iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_compacted_if_held_while_vacuum_can_do_it() {
    let Place { queue, url, sql, db: _db } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue(1).await.expect("enqueued");
    waste(&sql).await;
    let if_held = "select freed, refused from trunkline.compact('q', 0, if_held => true)";
    let row = sql.query_one(if_held, &[]).await.expect("called");
    assert_eq!((row.get::<_, i64>(0), row.get::<_, Option<&str>>(1)), (0, None));
    let old = superuser(&url).await;
    old.batch_execute("begin; create table public.t (); prepare transaction 'held'").await.expect("prepared");
    burn(&sql).await;
    eventually("it is compacted", || async { sql.query_one(if_held, &[]).await.expect("called").get::<_, i64>(0) > 0 })
        .await;
    old.batch_execute("rollback prepared 'held'").await.expect("ended");
}

/// A table's TOAST table is vacuumed apart from it, and a truncate locks both.
#[tokio::test(flavor = "multi_thread")]
async fn compaction_is_refused_while_another_session_keeps_the_toast_table() {
    let Place { queue, url, sql, db: _db } = place::<Vec<u8>>(Settings::new("bytea")).await;
    sql.batch_execute(
        "alter table trunkline.queue_q set (autovacuum_enabled = off, toast.autovacuum_enabled = off);
         alter table trunkline.queue_q alter payload set storage external",
    )
    .await
    .expect("altered");
    queue.enqueue_many(&vec![vec![7; 1 << 20]; 20]).await.expect("enqueued");
    sql.batch_execute("delete from trunkline.queue_q").await.expect("deleted");
    queue.enqueue(vec![1]).await.expect("enqueued");
    let name = "select reltoastrelid::regclass::text from pg_class where oid = 'trunkline.queue_q'::regclass";
    let toast: String = sql.query_one(name, &[]).await.expect("named").get(0);
    let other = superuser(&url).await;

    // A vacuum that pauses at each of some thousand pages.
    other.batch_execute("set vacuum_cost_delay = '100 ms'; set vacuum_cost_limit = 1").await.expect("set");
    let (cancel, vacuum) = (other.cancel_token(), format!("vacuum {toast}"));
    let vacuums = tokio::spawn(async move { other.batch_execute(&vacuum).await });
    let locked = "select exists (select from pg_locks l join pg_class c on c.reltoastrelid = l.relation
                                 where c.oid = 'trunkline.queue_q'::regclass and l.mode = 'ShareUpdateExclusiveLock' and l.granted
                                   and l.database = (select oid from pg_database where datname = current_database()))";
    eventually("it vacuums", || async { sql.query_one(locked, &[]).await.expect("asked").get(0) }).await;
    eventually("it is refused", || async {
        compact(&sql).await == (0, Some("a vacuum of its TOAST table is running".to_owned()))
    })
    .await;
    cancel.cancel_query(tokio_postgres::NoTls).await.expect("cancelled");
    vacuums.await.expect("no panic").expect_err("it was cancelled");

    // A lock that the function does not look for, as that of a vacuum that begins during the copy.
    let other = superuser(&url).await;
    other.batch_execute(&format!("begin; select count(*) from {toast}")).await.expect("locked");
    sql.batch_execute("begin").await.expect("begun");
    eventually("it is undone", || async {
        compact(&sql).await == (0, Some("other sessions used it for longer than 20 ms".to_owned()))
    })
    .await;
    // The transaction that called it keeps no lock that stops consumers.
    let taken = queue.take(9).await.expect("taken");
    assert_eq!(taken.iter().map(|message| &message.payload[..]).collect::<Vec<_>>(), [[1_u8]]);
    sql.batch_execute("rollback").await.expect("ended");
    other.batch_execute("rollback").await.expect("ended");
    queue.enqueue(vec![2]).await.expect("enqueued");
    freed(&sql).await;
    assert_eq!(queue.take(9).await.expect("taken").len(), 1);
}

/// PostgreSQL treats this isolation level as `read committed`.
#[tokio::test(flavor = "multi_thread")]
async fn queue_is_compacted_and_its_floor_kept_at_read_uncommitted() {
    let Place { queue, sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    sql.batch_execute("set default_transaction_isolation = 'read uncommitted'").await.expect("set");
    sql.batch_execute("select trunkline.keep_floor('q', now() - interval '1 minute')").await.expect("kept");
    let kept = "select reached > '-infinity' from trunkline.floor where queue = 'q'";
    assert!(sql.query_one(kept, &[]).await.expect("read").get::<_, bool>(0));
    queue.enqueue(1).await.expect("enqueued");
    waste(&sql).await;
    freed(&sql).await;
    assert_eq!(queue.take(9).await.expect("taken").len(), 1);
}

/// Since PostgreSQL 18, a generated column can be large without being stored.
#[tokio::test(flavor = "multi_thread")]
async fn messages_that_exceed_an_array_are_not_copied() {
    let Place { sql, db: _db, .. } = place::<i64>(Settings::new("int8")).await;
    let version = "select current_setting('server_version_num')::int >= 180000";
    if sql.query_one(version, &[]).await.expect("asked").get::<_, bool>(0) {
        exceeds_an_array(&sql).await;
    }
}

async fn exceeds_an_array(sql: &Client) {
    sql.batch_execute(
        "insert into trunkline.queue_q (size, payload) select 1, '{1}' from generate_series(1, 12);
         alter table trunkline.queue_q add column wide text generated always as (repeat('x', 100000000)) virtual",
    )
    .await
    .expect("filled");
    // Messages fill the table. With a negative minimum, the function compacts it nevertheless.
    let call = "select freed, refused from trunkline.compact('q', -100000000000, '1 hour')";
    eventually("it is refused", || async {
        let row = sql.query_one(call, &[]).await.expect("no error");
        assert_eq!(row.get::<_, i64>(0), 0);
        row.get::<_, Option<&str>>(1).is_some_and(|refused| refused.contains("and a compaction copies at most 763 MB"))
    })
    .await;
}
