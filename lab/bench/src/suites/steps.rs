//! Plans single steps of a message, for the contenders that have a call for each step.

use super::{LAYERS, Plan, or, step, throughput::among};
use crate::Choice;

fn sized(verb: &str, n: usize) -> String {
    if n == 1 { format!("{verb}-single") } else { format!("{verb}-batch-{n}") }
}

pub(super) fn send(choice: &Choice) -> Vec<Plan> {
    let mut plans = Vec::new();
    for n in &choice.batch_sizes {
        plans.extend(LAYERS.map(|contender| step("send", sized("send", *n), contender, choice)));
    }
    for payload in [100, 10_000, 100_000] {
        for contender in LAYERS {
            let mut plan = step("send", format!("send-payload-{payload}"), contender, choice);
            (plan.told.batch, plan.told.payload) = (1, payload);
            plans.push(plan);
        }
    }
    plans
}

pub(super) fn read(choice: &Choice) -> Vec<Plan> {
    let mut plans = Vec::new();
    for n in &choice.batch_sizes {
        plans.extend(LAYERS.map(|contender| step("read", sized("read", *n), contender, choice)));
    }
    for (patience, n) in [("1s", 10), ("5s", 50)].iter().filter(|_| choice.poll) {
        // Omits the other layers: `statements` itself does not wait, and `sql` has no call that
        // waits.
        let case = format!("read-with-poll-{patience}-{n}");
        plans.extend(["queue", "pgmq"].map(|contender| step("read", case.clone(), contender, choice)));
    }
    plans
}

pub(super) fn ack(choice: &Choice) -> Vec<Plan> {
    let mut plans = Vec::new();
    for verb in ["delete", "archive"] {
        for n in &choice.batch_sizes {
            plans.extend(LAYERS.map(|contender| step("ack", sized(verb, *n), contender, choice)));
        }
    }
    plans
}

pub(super) fn layer_comparison(choice: &Choice) -> Vec<Plan> {
    // A layer without its own call for a case has no row for that case. The library reads in the
    // same way whether or not it coalesces sends.
    const OWN: [(&str, &[&str]); 6] = [
        ("send-single", &["statements", "sql", "queue", "coalesced", "pgmq"]),
        ("send-batch-100", &["statements", "sql", "queue", "coalesced", "pgmq"]),
        ("read-batch-10", &["statements", "sql", "queue", "pgmq"]),
        ("delete-single", &["statements", "sql", "queue", "pgmq"]),
        ("pop-batch-10", &["statements", "sql", "queue", "pgmq"]),
        ("full-cycle", &["statements", "sql", "queue", "coalesced", "worker", "pgmq"]),
    ];
    let mut plans = Vec::new();
    for (case, contenders) in OWN {
        for callers in or(&choice.callers, &[1, 16]) {
            for contender in contenders {
                let name = if callers == 1 { case.to_owned() } else { among(case, callers) };
                let mut plan = step("layer-comparison", case, contender, choice);
                (plan.case, plan.told.producers) = (name, callers);
                plans.push(plan);
            }
        }
    }
    // Adds rows without fsync, so that machines can also be compared when no commit waits for a
    // disk.
    for case in ["send-single", "full-cycle"] {
        for contender in LAYERS {
            let mut plan = step("layer-comparison", case, contender, choice);
            (plan.case, plan.told.fsync) = (format!("{case}, fsync off"), "off".to_owned());
            plans.push(plan);
        }
    }
    plans
}
