//! Findings while another session has locked a table.

use tokio::time::timeout;
use trunkline::{Db, Settings};
use trunkline_console::doctor::{Doctor, Severity};

use super::{SOON, Ward, connect};

/// The statement of the session that holds a lock begins with comments, as those of the library do.
#[tokio::test(flavor = "multi_thread")]
async fn session_that_blocks_others_is_named_and_they_are_not() {
    let ward = Ward::new().await;
    let queue = ward.queue("load", Settings::new("int8")).await;
    let holder = connect(&ward.server.url("postgres")).await;
    holder.batch_execute("set application_name = 'a report'").await.expect("named");
    let lock = "/* it's; a */ -- comment\n begin; lock table trunkline.queue_load in share mode";
    holder.batch_execute(lock).await.expect("locked");
    let enqueues = tokio::spawn(async move { queue.enqueue(1).await });
    ward.until("select count(*) > 0 from pg_stat_activity where wait_event_type = 'Lock'").await;
    let found = ward.of("snapshots").await;
    let [found] = &found[..] else { panic!("{found:#?}") };
    assert!(found.severity == Severity::Wrong && found.why.starts_with("The sessions that it blocks"), "{found:?}");
    assert!(found.what.contains("(a report, idle in transaction) has had a transaction open for "), "{found:?}");
    assert!(found.what.contains(", and blocks ") && found.what.contains(" on trunkline.queue_load; "), "{found:?}");
    let statement = "its last statement is: begin; lock table trunkline.queue_load in share mode";
    assert!(found.what.ends_with(statement), "{found:?}");
    ward.mend(found).await;
    timeout(SOON, enqueues).await.expect("in time").expect("no panic").expect("enqueued");
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_session_that_blocks_others_is_named() {
    let ward = Ward::new().await;
    let (holder, waits) = (connect(&ward.server.url("postgres")).await, connect(&ward.server.url("postgres")).await);
    holder.batch_execute("select pg_advisory_lock(1)").await.expect("locked");
    let waits = tokio::spawn(async move { waits.batch_execute("select pg_advisory_lock(1)").await });
    ward.until("select count(*) = 1 from pg_stat_activity where wait_event_type = 'Lock'").await;
    let found = ward.mended("snapshots").await;
    assert!(found.what.contains("idle) holds a lock, and blocks 1 other session ("), "{found:?}");
    timeout(SOON, waits).await.expect("in time").expect("no panic").expect("locked");
}

#[tokio::test]
async fn locked_list_of_queues_is_a_finding_and_not_waited_for() {
    let ward = Ward::new().await;
    ward.queue("q", Settings::new("int8")).await;
    let holder = connect(&ward.server.url("postgres")).await;
    holder.batch_execute("begin; lock table trunkline.queue in access exclusive mode").await.expect("locked");
    let examined = crate::hurried(5, Box::pin(timeout(SOON, Doctor::new().examine(&ward.db)))).await;
    let found = examined.expect("in time").expect("examined");
    assert!(found.iter().all(|one| one.severity == Severity::Unchecked), "{found:#?}");
    let listed = found.iter().find(|one| one.check == "queues").expect("a finding about the list");
    assert!(listed.what.contains("did not answer within 15 s"), "{listed:?}");
    holder.batch_execute("rollback").await.expect("let go");
    assert_eq!(Doctor::new().examine(&ward.db).await.expect("examined"), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn short_time_limit_of_the_role_loses_no_finding() {
    let ward = Ward::with(&[("fsync", "off")]).await;
    ward.queue("q", Settings::new("int8")).await;
    let url = ward.server.url("postgres");
    let db = Db::connect(&format!("{url} options='-c statement_timeout=2s'")).await.expect("connected");
    let holder = connect(&url).await;
    holder.batch_execute("begin; lock table trunkline.queue in access exclusive mode").await.expect("locked");
    let examined = timeout(SOON, Doctor::new().examine(&db)).await;
    let found = examined.expect("in time").expect("examined");
    let listed = found.iter().find(|one| one.check == "queues").expect("a finding about the list");
    assert!(listed.severity == Severity::Unchecked && listed.what.contains("statement timeout"), "{listed:?}");
    assert!(found.iter().any(|one| one.check == "settings" && one.severity == Severity::Wrong), "{found:#?}");
    holder.batch_execute("rollback").await.expect("let go");
}
