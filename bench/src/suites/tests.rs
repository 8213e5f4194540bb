use std::collections::HashSet;

use super::*;
use crate::choose::{chosen, name};

fn choice() -> Choice {
    Choice {
        patterns: Vec::new(),
        quick: false,
        batch_sizes: vec![1, 10, 50, 100],
        messages: 100_000,
        poll: true,
        throughput: true,
        producers: Vec::new(),
        consumers: Vec::new(),
        backlog: 20_000,
        enqueue_batch: Vec::new(),
        dequeue_batch: Vec::new(),
        threads: 0,
        settle: 5.0,
    }
}

/// What differs between two lists of rows.
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
fn a_name_as_a_pattern_chooses_its_row_and_no_other() {
    for plan in all(&choice()) {
        let pattern = format!("^{}$", name(&plan));
        let found: Vec<String> = chosen(&Choice { patterns: vec![pattern], ..choice() }).iter().map(name).collect();
        assert_eq!(found, [name(&plan)]);
    }
}

#[test]
fn everybody_of_the_table_takes_part_and_nobody_else() {
    let plans = all(&choice());
    let taking_part: HashSet<&str> = plans.iter().map(|plan| plan.contender.name).collect();
    let table: HashSet<&str> = CONTENDERS.iter().map(|contender| contender.name).collect();
    assert_eq!(taking_part, table);
    assert_eq!(table.len(), CONTENDERS.len(), "a name is there twice");
}

#[test]
fn every_suite_of_the_plan_is_there_and_has_a_row_of_ours() {
    for suite in [
        "layer-comparison",
        "send",
        "read",
        "ack",
        "throughput",
        "latency",
        "grid",
        "idle",
        "exactly-once",
        "distance",
        "old-snapshot",
        "burst",
        "soak",
    ] {
        assert!(all(&choice()).iter().any(|plan| plan.suite == suite && plan.contender.is_quick), "{suite}");
    }
}

#[test]
fn the_sizes_of_batches_are_those_that_were_asked_for() {
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
fn without_polling_the_rows_that_wait_are_left_out_and_no_other() {
    let lost = lost(&choice(), &Choice { poll: false, ..choice() });
    assert!(!lost.is_empty() && lost.iter().all(|name| name.starts_with("read/read-with-poll-")), "{lost:?}");
}

#[test]
fn without_throughput_its_suite_is_left_out_and_no_other() {
    let lost = lost(&choice(), &Choice { throughput: false, ..choice() });
    assert!(!lost.is_empty() && lost.iter().all(|name| name.starts_with("throughput/")), "{lost:?}");
}

#[test]
fn a_drain_has_the_backlog_that_was_asked_for() {
    for plan in all(&Choice { messages: 30, ..choice() }).iter().filter(|plan| plan.case == "drain") {
        assert_eq!(plan.told.backlog, if plan.contender.is_quick { 300 } else { 30 }, "{}", plan.contender.name);
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
