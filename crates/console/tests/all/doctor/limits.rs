//! The doctor's time limit, and a server with few free connections.

use std::time::Duration;

use tokio::time::{Instant, timeout};
use trunkline::{Db, Settings};
use trunkline_console::doctor::{Doctor, Finding, Severity};

use super::{Ward, connect};

/// The doctor's limit, and some time for a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

async fn in_time(db: &Db) -> Vec<Finding> {
    timeout(LIMIT, Doctor::new().examine(db)).await.expect("in time").expect("examined")
}

/// The role has two connections, so the doctor cannot open the connection that listens, nor the one
/// that tests it.
#[tokio::test(flavor = "multi_thread")]
async fn two_connections_suffice_for_all_checks_but_listening() {
    let ward = Ward::new().await;
    for n in 0..20 {
        ward.queue(&format!("q{n}"), Settings::new("int8")).await;
    }
    let role = "create role few login connection limit 2; grant pg_monitor to few;
         select trunkline.grant_rights('few', 'operator')";
    ward.say(role).await;
    let url = ward.server.url("postgres").replace("user=trunkline", "user=few");
    let found = in_time(&Db::connect(&url).await.expect("connected")).await;
    let [listening] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((listening.check, listening.severity), ("listening", Severity::Unchecked), "{listening:?}");
    assert!(listening.what.contains("too many connections for role"), "{listening:?}");
    assert!(!listening.why.contains("pooler") && !listening.mend.contains("pooler"), "{listening:?}");
}

#[tokio::test]
async fn examination_ends_at_its_limit_and_names_what_was_not_checked() {
    let ward = Ward::with(&[("max_locks_per_transaction", "1000")]).await;
    let create = "select trunkline.create_queue('q' || n, 'int8') from generate_series(1, 100) n";
    ward.say(create).await;
    // Locks all queues, so that each check of a queue waits for a tenth of a second.
    let holder = connect(&ward.server.url("postgres")).await;
    let tables: Vec<String> = (1..=100).map(|n| format!("trunkline.queue_q{n}")).collect();
    let lock = format!("begin; lock table {} in access exclusive mode", tables.join(", "));
    holder.batch_execute(&lock).await.expect("locked");
    let begun = Instant::now();
    let found = crate::hurried(10, Box::pin(in_time(&ward.db))).await;
    assert!(begun.elapsed() > Duration::from_secs(50), "the locked queues took {:?}", begun.elapsed());
    let late = found.iter().filter(|one| one.what.contains("was not checked within the doctor's limit of 60 s"));
    let late: Vec<&Finding> = late.collect();
    assert!(late.iter().any(|one| one.check == "consumers" && one.queues.len() > 16), "{found:#?}");
    assert!(late.iter().all(|one| one.severity == Severity::Unchecked), "{late:#?}");
    assert!(late.iter().any(|one| one.check == "listening"), "{late:#?}");
}
