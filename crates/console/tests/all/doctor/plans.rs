//! Findings about plans.

use trunkline::Settings;
use trunkline_console::doctor::{Doctor, Severity};

use super::Ward;

#[tokio::test(flavor = "multi_thread")]
async fn plan_that_misses_the_index_is_found_and_queue_renewed() {
    let ward = Ward::new().await;
    for (name, settings, function) in [
        ("plain", Settings::new("int8"), "do_lease_plain"),
        ("laned", Settings::new("int8").priorities(2), "do_lease_laned"),
        ("keyed", Settings::new("int8").partitions(2), "do_lanes_keyed"),
    ] {
        ward.queue(name, settings).await;
        assert_eq!(ward.of("plans").await, [], "{name}");
        ward.say(&format!(
            "do $$ declare f regprocedure := (select oid from pg_proc where proname = '{function}');
             begin execute format('alter function %s reset all', f); end $$"
        ))
        .await;
        let settings = ward.of("plans").await;
        assert!(settings.len() == 1 && settings[0].what.contains("has lost the settings"), "{settings:?}");
        let columns = if name == "keyed" {
            ", lane, keys) select i * 1024, now(), 1, '{1}', 0, '{a}'"
        } else {
            ") select i * 1024, now(), 1, '{1}'"
        };
        ward.say(&format!(
            "insert into trunkline.queue_{name} (id, due_at, size, payload{columns} from generate_series(1, 3) i; analyze trunkline.queue_{name}"
        ))
        .await;
        let found = ward.mended("plans").await;
        assert!(found.queue.as_deref() == Some(name) && found.what.contains("Seq Scan on"), "{found:?}");
        assert!(found.severity == Severity::Wrong && found.mend.contains("install_queue"), "{found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_type_of_payloads_is_no_matter_of_the_plan() {
    let ward = Ward::new().await;
    ward.say("create type public.mood as enum ('glad', 'sad'); select trunkline.create_queue('q', 'public.mood')")
        .await;
    ward.say("select trunkline.enqueue('q', 'glad'::public.mood); drop type public.mood cascade").await;
    let found = Doctor::new().examine(&ward.db).await.expect("examined");
    let [found] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((found.check, found.queue.as_deref()), ("payloads", Some("q")), "{found:?}");
    ward.mended("payloads").await;
}
