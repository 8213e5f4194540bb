//! Many queues with few findings, and skipped checks and queues.

use std::time::{Duration, Instant};

use trunkline::{Db, Settings};
use trunkline_console::doctor::{Doctor, Severity};

use super::{Ward, connect, impatient, only};

#[tokio::test(flavor = "multi_thread")]
async fn many_queues_without_a_consumer_are_one_finding() {
    let ward = Ward::new().await;
    for n in 0..12 {
        ward.queue(&format!("nightly_{n:02}"), Settings::new("int8")).await.enqueue(n).await.expect("enqueued");
    }
    ward.queue("orders", Settings::new("int8")).await.enqueue(1).await.expect("enqueued");
    let found = ward.of("consumers").await;
    assert!(found.len() == 1 && found[0].queue.is_none() && found[0].queues.len() == 13, "{found:#?}");
    assert!(found[0].what.starts_with("13 queues (nightly_00, nightly_01, nightly_02 and 10 more); in "), "{found:?}");
    let examine = async |doctor: Doctor| impatient(doctor, &ward.db).await;
    let found = examine(Doctor::new().skip_queue("nightly_*")).await;
    assert!(found.len() == 1 && found[0].queue.as_deref() == Some("orders"), "{found:#?}");
    assert_eq!(examine(Doctor::new().skip_check("consumers")).await, []);
    assert_eq!(examine(Doctor::new().skip_queue("nightly_*").skip_queue("orders")).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn remedy_of_many_queues_mends_each_of_them() {
    let ward = Ward::new().await;
    for n in 0..5 {
        ward.queue(&format!("q{n}"), Settings::new("int8")).await;
        ward.say(&format!("alter table trunkline.queue_q{n} set (autovacuum_enabled = off)")).await;
    }
    let found = ward.mended("vacuum_off").await;
    assert_eq!((found.queues.len(), found.mend.lines().count()), (5, 5), "{found:?}");
}

/// The doctor does not wait for the locks of other sessions.
#[tokio::test(flavor = "multi_thread")]
async fn locked_queue_is_unchecked_in_time() {
    let ward = Ward::new().await;
    ward.queue("locked", Settings::new("int8")).await;
    let holder = connect(&ward.server.url("postgres")).await;
    holder.batch_execute("begin; lock table trunkline.queue_locked in access exclusive mode").await.expect("locked");
    let begun = Instant::now();
    let found = Doctor::new().examine(&ward.db).await.expect("examined");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    let unchecked = found.iter().filter(|one| one.severity == Severity::Unchecked && one.what.contains("lock timeout"));
    let unchecked: Vec<_> = unchecked.collect();
    assert!(!unchecked.is_empty(), "{found:#?}");
    // The remedy shows the session that holds the lock.
    for one in unchecked {
        let rows = ward.sql.query(&*one.mend, &[]).await.expect("the remedy runs");
        let statements: Vec<Option<&str>> = rows.iter().map(|row| row.get(5)).collect();
        assert!(statements.iter().flatten().any(|text| text.contains("lock table trunkline.queue_locked")), "{one:?}");
    }
}

/// Many rows die between two vacuums, even in a healthy queue.
#[tokio::test(flavor = "multi_thread")]
async fn dead_rows_of_a_moment_are_no_finding() {
    let ward = Ward::with(&[("autovacuum_naptime", "1d")]).await;
    ward.queue("q", Settings::new("int8")).await;
    let churn = "insert into trunkline.queue_q (id, due_at, size, payload) select i * 1024, now(), 1, '{1}' from generate_series(1, 60000) i;
         delete from trunkline.queue_q";
    ward.say(churn).await;
    ward.until("select pg_stat_get_dead_tuples('trunkline.queue_q'::regclass) >= 60000").await;
    let of = async |patience| {
        let found = only("dead_rows").patience(patience).examine(&ward.db).await.expect("examined");
        found.into_iter().filter(|one| one.check == "dead_rows").collect::<Vec<_>>()
    };
    let (long, none) = (Duration::from_secs(3600), Duration::ZERO);
    assert_eq!(of(long).await, [], "the queue is new, and autovacuum has yet to come");
    assert_eq!(of(none).await.len(), 1);
    // Holds a snapshot, so that the vacuum below cannot remove the rows.
    let holder = connect(&ward.server.url("postgres")).await;
    holder.batch_execute("begin isolation level repeatable read; select 1").await.expect("held");
    ward.say("vacuum trunkline.queue_q").await;
    ward.say(churn).await;
    ward.say("vacuum trunkline.queue_q").await;
    // Before PostgreSQL 15, statistics may lag by half a second, and the number of dead rows alone
    // would also match before the first vacuum.
    ward.until("select n_dead_tup >= 60000 and vacuum_count = 2 from pg_stat_user_tables where relname = 'queue_q'")
        .await;
    let found = of(long).await;
    assert!(found.len() == 1 && found[0].why.contains("an old transaction holds the rows"), "{found:?}");
    assert!(found[0].why.contains("up to ten seconds") && found[0].mend.contains("max_pause => '10 s'"), "{found:?}");
    // A compaction removes the rows that vacuum cannot remove.
    let row = ward.sql.query_one(&*found[0].mend, &[]).await.expect("the remedy runs");
    assert!(row.get::<_, i64>(0) == 0 && row.get::<_, Option<&str>>(1).is_none(), "it is not worth it: {row:?}");
    let again = found[0].mend.replace("max_pause", "at_least => 0, max_pause");
    assert!(ward.sql.query_one(&*again, &[]).await.expect("it runs").get::<_, i64>(0) > 0, "{again}");
    ward.until("select n_dead_tup = 0 from pg_stat_user_tables where relname = 'queue_q'").await;
    assert_eq!(of(long).await, []);
    holder.batch_execute("commit").await.expect("let go");
    assert_eq!(of(long).await, []);
}

/// The doctor asks about many queues with one statement, so that the network costs little.
#[tokio::test(flavor = "multi_thread")]
async fn sixty_queues_need_few_transactions() {
    let ward = Ward::with(&[("autovacuum", "off")]).await;
    for n in 0..60 {
        let settings = Settings::new("int8");
        let settings = match n % 4 {
            0 => settings.priorities(3),
            1 => settings.partitions(2),
            2 => settings.uniqueness(true),
            _ => settings,
        };
        ward.db.create_queue(&format!("q{n:02}"), &settings).await.expect("created");
    }
    // The test's own queries run in another database, so that they are not counted.
    let elsewhere = connect(&ward.server.url("template1")).await;
    let sessions = "select count(*) from pg_stat_activity where backend_type = 'client backend'";
    let transactions = "select xact_commit + xact_rollback from pg_stat_database where datname = 'postgres'";
    let number = async |query| elsewhere.query_one(query, &[]).await.expect("counted").get::<_, i64>(0);
    let (before, open) = (number(transactions).await, number(sessions).await);
    let own = Db::connect(&ward.server.url("postgres")).await.expect("connected");
    let found = Doctor::new().examine(&own).await.expect("examined");
    assert!(!found.iter().any(|one| one.severity == Severity::Unchecked), "{found:#?}");
    drop(own);
    let deadline = Instant::now() + super::SOON;
    while number(sessions).await > open {
        assert!(Instant::now() < deadline, "the doctor's sessions have ended");
        crate::until_next_poll().await;
    }
    let used = number(transactions).await - before;
    // Separate checks would need at least five transactions for each of the sixty queues, so 300.
    assert!(used < 180, "{used} transactions");
}
