//! Findings while another session has locked a table against readers.

use tokio::time::timeout;
use trunkline::{Db, Settings};
use trunkline_console::doctor::{Doctor, Severity};

use super::{SOON, Ward, connect};

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
