//! Findings from the workers' reports.

use std::time::Duration;

use trunkline::Settings;
use trunkline_console::doctor::{Doctor, Severity};

use super::{Ward, only};

/// Inserts the rows that a worker would have reported in the last minutes.
async fn reports(ward: &Ward, worker: &str, version: &str, handled: i64, running: i64) {
    ward.say(&format!(
        "insert into trunkline.worker (at, worker, queue, name, process, version, started_at, ended, seconds, handled, failed, running, hands)
         select now() - i * interval '10 seconds', md5('{worker}')::uuid, 'q', '{worker}', 17, '{version}', now() - interval '1 hour', false,
                10, case when i = 6 then 5 else {handled} end, 0, {running}, 4 from generate_series(0, 9) i"
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_of_older_version_are_found_until_they_end() {
    let ward = Ward::new().await;
    let queue = ward.queue("q", Settings::new("int8")).await;
    let handler = |_message: trunkline::Message<i64>| async { Ok::<(), trunkline::Failure>(()) };
    trunkline::Worker::new(queue, handler).reports(true).drain().await.expect("it works");
    assert_eq!(ward.of("versions").await, [], "one of this version");
    reports(&ward, "an old one", "0.0.9", 5, 1).await;
    reports(&ward, "odd", "next", 5, 1).await;
    let found = ward.of("versions").await;
    assert!(found.len() == 1 && found[0].severity == Severity::Advice && found[0].since.is_some(), "{found:?}");
    assert!(
        found[0].what.contains("1 worker runs version 0.0.9")
            && found[0].what.contains("an old one on the server, process 17"),
        "{found:?}"
    );
    reports(&ward, "elsewhere", "999.0", 5, 1).await;
    ward.say("update trunkline.worker set queue = 'another' where version = '999.0'").await;
    let found = ward.of("versions").await;
    assert!(found.len() == 1 && !found[0].mend.contains("999"), "what works on another queue says nothing: {found:?}");
    reports(&ward, "a new one", &format!("99.10.2.{}", "9".repeat(80)), 5, 1).await;
    let found = ward.of("versions").await;
    assert!(found.len() == 1 && found[0].mend.contains("99.10.2"), "the newest of all: {found:?}");
    ward.say("update trunkline.worker set ended = true where version = '0.0.9'").await;
    assert_eq!(ward.of("versions").await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_without_progress_and_queues_that_lost_theirs_are_found() {
    let ward = Ward::new().await;
    ward.queue("q", Settings::new("int8")).await;
    let db = &ward.db;
    let of = |patience| {
        let doctor = only("progress").patience(Duration::from_secs(patience));
        async move {
            doctor
                .examine(db)
                .await
                .expect("examined")
                .into_iter()
                .filter(|one| one.check == "progress")
                .collect::<Vec<_>>()
        }
    };
    reports(&ward, "hangs", env!("CARGO_PKG_VERSION"), 0, 3).await;
    assert_eq!(of(90).await, [], "one handler ended a minute ago");
    let found = of(30).await;
    assert!(found.len() == 1 && found[0].severity == Severity::Wrong && found[0].since.is_some(), "{found:?}");
    assert!(
        found[0].what.contains("hangs") && found[0].what.contains("runs 3 handlers, and none has ended for 00:01:"),
        "{found:?}"
    );
    assert!(found[0].mend.starts_with("kill -TERM 17"), "{found:?}");
    ward.say("update trunkline.worker set at = at - interval '2 minutes'").await;
    let found = of(30).await;
    assert!(
        found.len() == 1 && found[0].severity == Severity::Advice && found[0].what.contains("reported nothing"),
        "{found:?}"
    );
    reports(&ward, "works", env!("CARGO_PKG_VERSION"), 5, 3).await;
    assert_eq!(of(30).await, []);
}

/// The worker has had nothing to do for the last ten minutes, and now has one message.
#[tokio::test(flavor = "multi_thread")]
async fn handler_that_has_just_begun_does_not_hang() {
    let ward = Ward::new().await;
    ward.queue("q", Settings::new("int8")).await;
    ward.say(&format!(
        "insert into trunkline.worker (at, worker, queue, name, process, version, started_at, ended, seconds, handled, failed, running, hands)
         select now() - i * interval '10 seconds', md5('idle')::uuid, 'q', 'idle', 17, '{}', now() - interval '1 hour', false,
                10, 0, 0, case when i = 0 then 1 else 0 end, 4 from generate_series(0, 59) i",
        env!("CARGO_PKG_VERSION")
    ))
    .await;
    let found = Doctor::new().examine(&ward.db).await.expect("examined");
    assert_eq!(found, [], "it was idle ten seconds ago");
    // Simulates a worker that has run the same handler since its first report.
    ward.say("update trunkline.worker set running = 1").await;
    let found = Doctor::new().examine(&ward.db).await.expect("examined");
    assert!(found.len() == 1 && found[0].what.contains("runs 1 handlers"), "{found:?}");
}
