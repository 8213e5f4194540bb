//! Findings while another session has locked a table against readers.

use std::{pin::pin, time::Duration};

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
    let doctor = Doctor::new();
    let mut examined = pin!(timeout(SOON, doctor.examine(&ward.db)));
    let found = loop {
        // The doctor's clock runs five times as fast as that of the server with its locks.
        match timeout(Duration::from_millis(100), &mut examined).await {
            Ok(found) => break found.expect("in time").expect("examined"),
            Err(_) => crate::pass(Duration::from_millis(400)).await,
        }
    };
    assert!(found.iter().all(|one| one.severity == Severity::Unchecked), "{found:#?}");
    let listed = found.iter().find(|one| one.check == "queues").expect("a finding about the list");
    assert!(listed.what.contains("did not answer within 15 s"), "{listed:?}");
    holder.batch_execute("rollback").await.expect("let go");
    assert_eq!(Doctor::new().examine(&ward.db).await.expect("examined"), []);
}
