//! Findings while another session has locked a table against readers.

use tokio::time::timeout;
use trunkline::Settings;
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
