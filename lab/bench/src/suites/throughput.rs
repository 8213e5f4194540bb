//! Plans rows that run at full speed.

use super::{LAYERS, Plan, WORKERS, named, plan, racers, step};
use crate::{Choice, DRAINED, contenders::Contender};

/// Returns a case's name with the number of callers. It is used for cases in which contenders do
/// not use their own best number.
pub(super) fn among(case: &str, callers: usize) -> String {
    match callers {
        1 => format!("{case}, 1 caller"),
        _ => format!("{case}, {callers} callers"),
    }
}

pub(super) fn throughput(choice: &Choice) -> Vec<Plan> {
    let mut plans = Vec::new();
    for (case, kind) in [
        ("send-sequential", "send"),
        ("send", "send"),
        ("send-batch-100", "send"),
        ("drain", "drain"),
        ("cycle", "cycle"),
        ("cycle-batch-100", "cycle"),
    ] {
        let awaiting = ["send", "cycle"].contains(&case);
        let asked: Vec<Option<usize>> = match awaiting && !choice.callers.is_empty() {
            true => choice.callers.iter().copied().map(Some).collect(),
            false => vec![None],
        };
        for asked in asked {
            let name = asked.map_or_else(|| case.to_owned(), |callers| among(case, callers));
            let workers = WORKERS.map(named).into_iter().filter(|_| kind != "send");
            for contender in racers().chain(workers) {
                let mut plan = plan("throughput", name.clone(), contender, kind, choice);
                (plan.told.producers, plan.told.batch) = match case {
                    "send-sequential" => (1, 1),
                    _ if awaiting => (asked.unwrap_or(contender.callers), 1),
                    _ => (4, 100),
                };
                if case == "drain" {
                    plan.told.backlog = choice.messages_or(if contender.is_quick { 10 * DRAINED } else { DRAINED });
                }
                plans.push(plan);
            }
        }
    }
    for contender in ["sql", "queue", "coalesced", "worker", "pgmq"] {
        for (case, batch) in [("full-cycle", 1), ("full-cycle-batch-100", 100)] {
            let mut plan = step("throughput", case, contender, choice);
            "full-cycle".clone_into(&mut plan.told.case);
            plan.told.batch = batch;
            plans.push(plan);
        }
    }
    plans.extend(counted(choice));
    plans
}

/// Plans five minutes of the rows that the README names.
pub(super) fn headline(choice: &Choice) -> Vec<Plan> {
    let contenders = ["trunkline", "trunkline-bytea", "hasql-queue", "pgmq", "river"].map(named);
    let headline = |contender: Contender| {
        let mut plan = plan("headline", "cycle", contender, "cycle", choice);
        plan.told.producers = contender.callers;
        plan.told.seconds = if choice.quick { 15.0 } else { 300.0 };
        (plan.sampled, plan.rounds) = (true, 1);
        plan
    };
    contenders.into_iter().map(headline).collect()
}

/// Plans rows that end after a number of messages, as the rows of pgmq-bench do.
fn counted(choice: &Choice) -> Vec<Plan> {
    let mut plans = Vec::new();
    for (case, kind, batch) in [
        ("send-n-sequential", "send-single", 1),
        ("send-n-batched-100", "send-batch-100", 100),
        ("full-cycle-n-sequential", "full-cycle", 1),
        ("full-cycle-n-batched-100", "full-cycle", 100),
    ] {
        for contender in LAYERS {
            let mut plan = step("throughput", case, contender, choice);
            kind.clone_into(&mut plan.told.case);
            plan.told.batch = batch;
            plan.told.messages = choice.messages_or(MESSAGES);
            // The time is only a limit, because the slowest layer sends many more messages per
            // second.
            plan.told.seconds = 60.0 + plan.told.messages as f64 / 20.0;
            plans.push(plan);
        }
    }
    plans
}

/// The number of messages after which a counted row ends.
const MESSAGES: usize = 1000;
