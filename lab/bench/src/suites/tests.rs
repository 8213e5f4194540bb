use std::collections::HashSet;

use super::*;
use crate::choose::{chosen, name};

fn choice() -> Choice {
    Choice {
        patterns: Vec::new(),
        quick: false,
        batch_sizes: vec![1, 10, 50, 100],
        messages: None,
        poll: true,
        throughput: true,
        callers: Vec::new(),
        producers: Vec::new(),
        consumers: Vec::new(),
        backlog: 20_000,
        enqueue_batch: Vec::new(),
        dequeue_batch: Vec::new(),
        threads: 0,
        settle: 5.0,
    }
}

/// Returns the names of the rows that only the first choice selects.
fn lost(from: &Choice, to: &Choice) -> HashSet<String> {
    let names = |choice| all(choice).iter().map(name).collect::<HashSet<String>>();
    &names(from) - &names(to)
}

#[test]
fn every_name_is_one_rows() {
    for quick in [false, true] {
        let mut names = HashSet::new();
        for plan in all(&Choice { quick, ..choice() }) {
            assert!(names.insert(name(&plan)), "{} is there twice", name(&plan));
        }
    }
}

#[test]
fn full_name_as_pattern_chooses_only_its_row() {
    for plan in all(&choice()) {
        let pattern = format!("^{}$", name(&plan));
        let found: Vec<String> = chosen(&Choice { patterns: vec![pattern], ..choice() }).iter().map(name).collect();
        assert_eq!(found, [name(&plan)]);
    }
}

#[test]
fn exactly_the_contenders_of_the_table_take_part() {
    let plans = all(&choice());
    let taking_part: HashSet<&str> = plans.iter().map(|plan| plan.contender.name).collect();
    let table: HashSet<&str> = CONTENDERS.iter().map(|contender| contender.name).collect();
    assert_eq!(taking_part, table);
    assert_eq!(table.len(), CONTENDERS.len(), "a name is there twice");
}

#[test]
fn every_suite_has_a_row_of_ours() {
    for suite in [
        "layer-comparison",
        "send",
        "read",
        "ack",
        "headline",
        "throughput",
        "processes",
        "latency",
        "grid",
        "idle",
        "exactly-once",
        "distance",
        "old-snapshot",
        "fsync",
        "stripes",
        "lanes",
        "burst",
        "soak",
    ] {
        assert!(all(&choice()).iter().any(|plan| plan.suite == suite && plan.contender.is_quick), "{suite}");
    }
}

#[test]
fn batches_have_the_requested_sizes() {
    let plans = all(&Choice { batch_sizes: vec![1, 7], ..choice() });
    for suite in ["send", "read", "ack"] {
        let sized =
            |plan: &&Plan| plan.suite == suite && !plan.case.contains("-payload-") && !plan.case.contains("-poll-");
        for plan in plans.iter().filter(sized) {
            let (_, size) = plan.case.split_once('-').expect("a verb and a size");
            assert_eq!(size, if plan.told.batch == 1 { "single" } else { "batch-7" }, "{}", plan.case);
        }
        for size in [1, 7] {
            assert!(plans.iter().filter(sized).any(|plan| plan.told.batch == size), "{suite} in {size}");
        }
    }
}

#[test]
fn rows_of_payloads_tell_their_bytes() {
    let plans = all(&choice());
    for bytes in [100, 10_000, 100_000] {
        let named = plans.iter().filter(|plan| plan.case == format!("send-payload-{bytes}"));
        assert!(
            named.clone().count() > 0 && named.clone().all(|plan| (plan.told.payload, plan.told.batch) == (bytes, 1))
        );
    }
}

#[test]
fn no_polling_leaves_out_only_waiting_rows() {
    let lost = lost(&choice(), &Choice { poll: false, ..choice() });
    assert!(!lost.is_empty() && lost.iter().all(|name| name.starts_with("read/read-with-poll-")), "{lost:?}");
}

#[test]
fn without_throughput_its_suite_is_left_out_and_no_other() {
    let lost = lost(&choice(), &Choice { throughput: false, ..choice() });
    assert!(!lost.is_empty() && lost.iter().all(|name| name.starts_with("throughput/")), "{lost:?}");
}

#[test]
fn requested_number_of_messages_defines_drains_and_counted_rows() {
    let plans = all(&Choice { messages: Some(30), ..choice() });
    for plan in plans.iter().filter(|plan| plan.case == "drain") {
        assert_eq!(plan.told.backlog, 30, "{}", plan.contender.name);
    }
    let counted: Vec<_> = plans.iter().filter(|plan| plan.told.messages > 0).collect();
    assert_eq!(counted.len(), 16);
    assert!(counted.iter().all(|plan| plan.told.messages == 30 && plan.case.contains("-n-")));
}

#[test]
fn callers_option_sets_callers_that_await_each_message() {
    let plans = all(&Choice { callers: vec![3, 200], ..choice() });
    let found = |suite: &str, case: &str, contender: &str| {
        let is = |plan: &&Plan| plan.suite == suite && plan.case == case && plan.contender.name == contender;
        plans.iter().find(is).map(|plan| (plan.told.producers, plan.told.batch))
    };
    for callers in [3, 200] {
        for (suite, case) in
            [("throughput", "send"), ("throughput", "cycle"), ("layer-comparison", "read-batch-10"), ("fsync", "send")]
        {
            let rest = if suite == "fsync" { ", 5 ms an fsync" } else { "" };
            let case = format!("{case}, {callers} callers{rest}");
            for contender in if suite == "layer-comparison" { ["sql", "pgmq"] } else { ["trunkline", "hasql-queue"] } {
                let told = found(suite, &case, contender);
                let batch = if suite == "layer-comparison" { 10 } else { 1 };
                assert_eq!(told, Some((callers, batch)), "{suite}/{case}/{contender}");
            }
        }
    }
    assert_eq!(found("throughput", "send", "trunkline"), None);
    assert_eq!(found("throughput", "send-batch-100", "trunkline"), Some((4, 100)));
    let lost = lost(&choice(), &Choice { callers: vec![3], ..choice() });
    let touched = ["throughput/send/", "throughput/cycle/", "layer-comparison/", "fsync/"];
    assert!(lost.iter().all(|name| touched.iter().any(|start| name.starts_with(start))), "{lost:?}");
}

#[test]
fn fsyncs_take_longer_for_all_contenders_alike() {
    let plans = all(&choice());
    for contender in ["trunkline", "trunkline-bytea", "hasql-queue", "pgmq", "pgq"] {
        for least in [0.0, 1.0, 5.0, 20.0] {
            let rows =
                plans.iter().filter(|plan| plan.told.fsync_ms == Some(least) && plan.contender.name == contender);
            let mut callers: Vec<usize> = rows.map(|plan| plan.told.producers).collect();
            callers.sort_unstable();
            let expected: &[usize] = if contender.starts_with("trunkline") { &[64, 1024] } else { &[64] };
            assert_eq!(callers, expected, "{contender}, {least} ms");
        }
    }
    assert!(plans.iter().all(|plan| plan.told.fsync_ms.is_some() == ["fsync", "stripes"].contains(&plan.suite)));
}

#[test]
fn each_language_calls_from_one_to_64_processes_under_each_condition() {
    let plans = all(&choice());
    let ours = |told: &Told| (told.producers, told.sleeper, told.payload, told.standby, told.delay_ms > 0.0);
    let awake = [1, 8, 64].map(|callers| (callers, false, PAYLOAD, false, false));
    let beside = [1, 8, 64].map(|callers| (callers, true, PAYLOAD, false, false));
    let under = [(1_000, false, false), (10_000, false, false), (PAYLOAD, true, false), (PAYLOAD, false, true)]
        .map(|(payload, standby, far)| (8, false, payload, standby, far));
    for contender in ["library-process", "psycopg", "pgx", "node-postgres", "jdbc"] {
        let of = |suite: &'static str| {
            plans.iter().filter(move |plan| plan.suite == suite && plan.contender.name == contender)
        };
        let mut found: Vec<_> = of("processes").map(|plan| ours(&plan.told)).collect();
        found.sort_unstable();
        let mut expected = [&awake[..], &beside[..], &under[..]].concat();
        expected.sort_unstable();
        assert_eq!(found, expected, "{contender}");
        assert_eq!(of("latency").count(), 2, "{contender}");
    }
}

#[test]
fn a_grid_of_ones_own_has_what_was_asked_for() {
    let asked = Choice {
        producers: vec![8],
        consumers: vec![16],
        backlog: 1000,
        enqueue_batch: vec![10],
        dequeue_batch: vec![50],
        ..choice()
    };
    let mut plans = all(&asked);
    plans.retain(|plan| plan.suite == "grid");
    assert_eq!(plans.len(), 6, "two ways to wait of three contenders");
    for plan in plans {
        let told = &plan.told;
        let all = (told.producers, told.consumers, told.backlog, told.batch, told.dequeue_batch);
        assert_eq!(all, (8, 16, 1000, 10, 50), "{}", name(&plan));
        assert!(plan.case.starts_with("8/16, ") && plan.case.ends_with("batches of 10 fetched by 50"), "{}", plan.case);
    }
}

#[test]
fn idle_has_every_way_to_wait_and_begins_asleep() {
    let plans = all(&choice());
    let waits = |contender: &str| {
        let of = plans.iter().filter(|plan| plan.suite == "idle" && plan.contender.name == contender);
        of.map(|plan| (plan.told.wait.as_str(), plan.told.seconds, plan.told.settle)).collect::<Vec<_>>()
    };
    for (contender, wait) in [
        ("trunkline", "best"),
        ("trunkline-poll", "poll"),
        ("trunkline-notify", "notify"),
        ("hasql-queue", "notify"),
        ("hand-over", "best"),
    ] {
        assert_eq!(waits(contender), [(wait, 60.0, 5.0); 3], "{contender}");
    }
}

#[test]
fn stripes_are_one_to_four_and_each_has_its_callers() {
    let mut plans = all(&choice());
    plans.retain(|plan| plan.suite == "stripes");
    assert_eq!(plans.len(), 16);
    plans.retain(|plan| plan.contender.name != "striped-round-robin");
    for (start, callers) in
        [("jobs, ", [1024; 4]), ("send, 64 callers a stripe", [64, 128, 192, 256]), ("send, 256", [256; 4])]
    {
        let of = plans.iter().filter(|plan| plan.case.starts_with(start));
        let found: Vec<(usize, usize)> = of.map(|plan| (plan.told.stripes, plan.told.producers)).collect();
        assert_eq!(found, [1, 2, 3, 4].into_iter().zip(callers).collect::<Vec<_>>());
    }
}
