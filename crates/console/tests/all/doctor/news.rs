//! Recent events: dead letters, failing workers, relays.

use std::time::Duration;

use trunkline::Settings;
use trunkline_console::doctor::{Finding, Severity};

use super::{Ward, only};

async fn of(ward: &Ward, check: &str) -> Vec<Finding> {
    let found = only(check).patience(Duration::from_secs(300)).examine(&ward.db).await.expect("examined");
    found.into_iter().filter(|one| one.check == check).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn fresh_dead_letters_are_wrong_and_old_ones_are_advice() {
    let ward = Ward::new().await;
    for (name, settings) in [
        ("plain", Settings::new("int8")),
        ("laned", Settings::new("int8").priorities(3)),
        ("keyed", Settings::new("int8").partitions(4)),
    ] {
        ward.queue(name, settings).await;
        assert_eq!(of(&ward, "dead_letters").await, []);
        ward.say(&format!(
            "insert into trunkline.dead_{name} (id, enqueued_at, dead_at, attempt, error, payload)
             select i, now(), now() - interval '10 minutes', 5, E'no such\nhost', 1 from generate_series(1, 12) i"
        ))
        .await;
        let found = of(&ward, "dead_letters").await;
        assert!(found.len() == 1 && found[0].severity == Severity::Wrong && found[0].since.is_some(), "{found:?}");
        let what = "12 dead letters, of which 12 died within the last hour; the last error is: no such host";
        assert_eq!((found[0].what.as_str(), found[0].queue.as_deref()), (what, Some(name)));
        ward.say(&format!("update trunkline.dead_{name} set dead_at = now() - interval '2 days'")).await;
        let found = of(&ward, "dead_letters").await;
        assert!(found.len() == 1 && found[0].severity == Severity::Advice, "{found:?}");
        ward.say(&format!("delete from trunkline.dead_{name}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_whose_messages_fail_are_found() {
    let ward = Ward::new().await;
    ward.queue("q", Settings::new("int8")).await;
    for (failed, severity) in [(0, None), (9, None), (60, Some(Severity::Advice)), (500, Some(Severity::Wrong))] {
        ward.say(&format!(
            "delete from trunkline.worker;
             insert into trunkline.worker (worker, queue, process, version, started_at, ended, seconds, handled, failed, running, hands)
             values (gen_random_uuid(), 'q', 1, '{}', now(), false, 10, 500, {failed}, 0, 1)",
            env!("CARGO_PKG_VERSION")
        ))
        .await;
        let found = of(&ward, "failures").await;
        assert_eq!(found.first().map(|one| one.severity), severity, "{failed}: {found:?}");
        assert!(found.iter().all(|one| one.what.contains("of 500 messages")), "{found:?}");
    }
    ward.say("update trunkline.worker set at = now() - interval '10 minutes'").await;
    assert_eq!(of(&ward, "failures").await, [], "of the last minutes alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn relays_that_vanished_or_fail_are_found() {
    let ward = Ward::new().await;
    ward.queue("q", Settings::new("int8")).await;
    let relay = async |name: &str, lag: i64, failed: &str, seen: &str| {
        ward.say(&format!(
            "insert into trunkline.relay (name, queue, broker, inward, lag, last_error, failed_at, seen_at)
             values ('{name}', 'q', 'nats://broker', false, {lag}, 'no servers', {failed}, now() - interval '{seen}')"
        ))
        .await;
    };
    relay("works", 5, "null", "3 s").await;
    assert_eq!(of(&ward, "relays").await, []);
    relay("gone", 5, "null", "10 minutes").await;
    assert_eq!(of(&ward, "relays").await, [], "another one has taken over");
    ward.say("delete from trunkline.relay where name = 'works'").await;
    let found = of(&ward, "relays").await;
    assert!(found.len() == 1 && found[0].severity == Severity::Wrong, "{found:?}");
    assert!(found[0].what.contains("relay gone has reported nothing for 00:10:"), "{found:?}");
    ward.say(found[0].mend.split(';').next().expect("a statement")).await;
    assert_eq!(of(&ward, "relays").await, []);
    relay("stalls", 7, "now() - interval '20 s'", "1 s").await;
    let found = of(&ward, "relays").await;
    assert!(
        found.len() == 1 && found[0].severity == Severity::Wrong && found[0].what.contains("no servers"),
        "{found:?}"
    );
    // The check reads only the start of a very long error, so it stays quick.
    ward.say("update trunkline.relay set last_error = repeat('x y ', 20000000)").await;
    let found = of(&ward, "relays").await;
    assert!(found.len() == 1 && found[0].what.contains("x y x") && found[0].what.len() < 500, "{found:?}");
    ward.say("update trunkline.relay set failed_at = now() - interval '1 hour'").await;
    assert_eq!(of(&ward, "relays").await, [], "it works again");

    // A relay from a broker releases its position when it ends, and reports an error before that.
    ward.say(
        "delete from trunkline.relay;
         insert into trunkline.relay (name, queue, broker, inward, seen_at) values ('in', 'q', 'nats://broker', true, now() - interval '10 minutes')",
    )
    .await;
    assert_eq!(of(&ward, "relays").await, [], "it was stopped by its operator");
    ward.say("update trunkline.relay set last_error = 'no JSON', failed_at = seen_at").await;
    let found = of(&ward, "relays").await;
    assert!(found.len() == 1 && found[0].what == "relay in has stopped: no JSON", "{found:?}");
    ward.say("update trunkline.relay set holder = 7, held_until = seen_at").await;
    let found = of(&ward, "relays").await;
    assert!(found.len() == 1 && found[0].mend.contains("discards its position"), "{found:?}");
}
