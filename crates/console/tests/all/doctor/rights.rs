//! Findings about the rights of the doctor's own role.

use trunkline::{Db, Settings};
use trunkline_console::doctor::{Doctor, Severity};

use super::{Ward, impatient};

#[tokio::test(flavor = "multi_thread")]
async fn what_a_role_may_not_look_at_is_said() {
    let ward = Ward::new().await;
    ward.queue("q", Settings::new("int8")).await.enqueue(1).await.expect("enqueued");
    // Quotes the name, because without quotes it would refer to another role.
    ward.say(
        "create role \"Shop\" login; create role shop; select trunkline.grant_rights('\"Shop\"', 'producer', 'q')",
    )
    .await;
    let url = ward.server.url("postgres").replace("user=trunkline", "user=Shop");
    let db = Db::connect(&url).await.expect("connected");
    let found = impatient(Doctor::new(), &db).await;
    let of = |check: &str| found.iter().filter(|one| one.check == check).map(|one| one.severity).collect::<Vec<_>>();
    assert_eq!(of("rights"), [Severity::Unchecked]);
    assert_eq!(of("hidden_sessions"), [Severity::Unchecked]);
    assert!(of("consumers").contains(&Severity::Unchecked), "{found:#?}");
    assert!(found.iter().all(|one| one.severity == Severity::Unchecked), "{found:#?}");
    let refused = found.iter().find(|one| one.check == "consumers").expect("found above");
    let grants = |right: &str| format!("select trunkline.grant_rights('\"Shop\"', 'operator'{right});");
    assert!(refused.mend.starts_with(&grants(", 'q'")), "{refused:?}");
    ward.mend(found.iter().find(|one| one.check == "rights").expect("found above")).await;
    let found = impatient(Doctor::new(), &db).await;
    let hidden = found.iter().filter(|one| one.severity == Severity::Unchecked).map(|one| one.check);
    assert_eq!(hidden.collect::<Vec<_>>(), ["hidden_sessions", "schedules"], "{found:#?}");
    // Checks that the statement names the role that runs the doctor, and works.
    let schedules = found.iter().find(|one| one.check == "schedules").expect("found above");
    assert!(schedules.mend.starts_with(&grants("")), "{schedules:?}");
    ward.mend(schedules).await;
    let found = impatient(Doctor::new(), &db).await;
    let hidden = found.iter().filter(|one| one.severity == Severity::Unchecked).map(|one| one.check);
    assert_eq!(hidden.collect::<Vec<_>>(), ["hidden_sessions"], "{found:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn role_without_rights_gets_findings_that_name_the_right() {
    let ward = Ward::new().await;
    ward.queue("q", Settings::new("int8")).await.enqueue(1).await.expect("enqueued");
    ward.say("create role nobody_of login").await;
    let url = ward.server.url("postgres").replace("user=trunkline", "user=nobody_of");
    let db = Db::connect(&url).await.expect("connected");
    let found = impatient(Doctor::new(), &db).await;
    assert!(found.iter().all(|one| one.severity == Severity::Unchecked), "{found:#?}");
    let queues = found.iter().find(|one| one.check == "queues").expect("the queues are not listed");
    assert!(queues.mend.starts_with("select trunkline.grant_rights('nobody_of', 'operator');"), "{queues:?}");
    assert!(found.iter().all(|one| !format!("{one:?}").contains("ROLE")), "{found:#?}");
}

/// The owner cannot grant itself rights to a table that it does not own.
#[tokio::test(flavor = "multi_thread")]
async fn table_of_another_role_is_given_to_the_owner_of_the_schema() {
    let ward = Ward::new().await;
    ward.queue("q", Settings::new("int8")).await;
    ward.say("create role stranger; alter table trunkline.queue_q owner to stranger").await;
    let found = ward.mended("rights").await;
    let what = "queue_q belongs to role stranger, and the schema to trunkline";
    assert_eq!((found.severity, found.queue.as_deref(), &*found.what), (Severity::Wrong, Some("q"), what), "{found:?}");
    assert!(!found.mend.contains("grant_rights"), "{found:?}");
    ward.say("alter table trunkline.dead_q owner to stranger; alter view trunkline.messages_q owner to stranger").await;
    assert!(ward.mended("rights").await.what.starts_with("dead_q, messages_q belong to role stranger"));
}
