//! Findings about impossible times, and about schedules.

use std::time::Duration;

use trunkline::{Draft, Schedule, Settings};
use trunkline_console::doctor::{Doctor, Severity};

use super::Ward;

#[tokio::test(flavor = "multi_thread")]
async fn times_from_fast_clock_are_found_and_put_right() {
    let ward = Ward::new().await;
    let settings = |kind: &str| match kind {
        "laned" => Settings::new("int8").priorities(2),
        "keyed" => Settings::new("int8").partitions(2),
        _ => Settings::new("int8"),
    };
    for kind in ["plain", "laned", "keyed"] {
        let queue = ward.queue(kind, settings(kind)).await;
        for number in 0..3 {
            let draft = Draft::new(number);
            queue.enqueue(if kind == "keyed" { draft.key("a") } else { draft }).await.expect("enqueued");
        }
        assert_eq!(ward.of("clocks").await, [], "{kind}");
        ward.say(&format!(
            "update trunkline.queue_{kind} set enqueued_at = enqueued_at + interval '1 hour', due_at = due_at + interval '1 hour'"
        ))
        .await;
        let found = ward.mended("clocks").await;
        assert!(found.severity == Severity::Wrong && found.what.contains("3 messages were enqueued"), "{found:?}");
        ward.say(&format!("update trunkline.floor set reached = now() + interval '1 day' where queue = '{kind}'"))
            .await;
        assert!(ward.mended("clocks").await.what.contains("floor"));
        ward.say(&format!("update trunkline.queue_{kind} set attempt = 1, due_at = now() + interval '400 days'")).await;
        assert!(ward.mended("clocks").await.what.contains("3 leases end later"));
        ward.say(&format!("update trunkline.queue_{kind} set attempt = 1, due_at = now() + interval '2 days'")).await;
        let found = ward.mended("clocks").await;
        assert!(found.severity == Severity::Advice && found.what.contains("3 messages are leased"), "{found:?}");
        ward.say(&format!("truncate trunkline.queue_{kind}")).await;
    }
    ward.say("update trunkline.lane_keyed set holder = 1, held_until = now() + interval '2 hours', served_at = now() + interval '1 hour' where lane >= 0")
        .await;
    assert!(ward.mended("clocks").await.what.contains("2 partitions are leased"));
    ward.say("select trunkline.limit_queue('plain', per_second => 1); update trunkline.bucket set filled_at = now() + interval '1 hour'")
        .await;
    assert!(ward.mended("clocks").await.what.contains("bucket"));
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_that_fail_or_are_late_are_found() {
    let ward = Ward::new().await;
    let queue = ward.queue("q", Settings::new("int8")).await;
    queue.schedule(&Schedule::new("yearly", "0 0 1 1 *"), &1).await.expect("set");
    assert_eq!(ward.of("schedules").await, [], "just made");
    ward.say("update trunkline.schedule set next_at = now() - interval '10 minutes', placed = true, placed_at = now()")
        .await;
    let found = ward.of("schedules").await;
    assert!(
        found.len() == 1 && found[0].what.contains("late schedules: 1; the most overdue is yearly, by 00:10:"),
        "{found:?}"
    );
    let patient = Doctor::new().patience(Duration::from_secs(3600)).examine(&ward.db).await.expect("examined");
    assert_eq!(patient, []);
    ward.say("update trunkline.schedule set next_at = now() + interval '1 hour', problem = 'no such thing'").await;
    let found = ward.of("schedules").await;
    assert!(
        found.len() == 1 && found[0].what.contains("yearly could not make its last tick: no such thing"),
        "{found:?}"
    );
    // Uses the library's own error messages for schedules that it cannot read.
    for (expression, zone) in [("99 * * * *", "UTC"), ("@yearly", "Europe/Bielefeld")] {
        let schedule = Schedule::new("unreadable", expression).zone(zone);
        let why = queue.schedule(&schedule, &1).await.expect_err("unreadable").to_string();
        ward.say(&format!("update trunkline.schedule set problem = '{why}', owed_at = now()")).await;
        let found = ward.of("schedules").await;
        assert!(found.len() == 1 && found[0].what.contains("yearly makes no ticks: "), "{found:?}");
    }
    ward.say("update trunkline.schedule set problem = null, owed_at = null, next_at = now() + interval '400 days', placed_at = now() + interval '1 hour'")
        .await;
    let found = ward.mended("schedules").await;
    assert!(found.severity == Severity::Wrong && found.what.contains("a clock that was ahead"), "{found:?}");
}
