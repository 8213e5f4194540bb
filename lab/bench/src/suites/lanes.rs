//! Plans rows for the costs of priorities, keys and unique keys. Each is compared with messages
//! without them. Further rows show how a busy key affects other keys.

use super::{Plan, named, plan};
use crate::{Choice, DRAINED};

pub(super) fn lanes(choice: &Choice) -> Vec<Plan> {
    let mut plans = Vec::new();
    let cases = [
        ("send", "send", 1),
        ("send-batch-100", "send", 100),
        ("cycle", "cycle", 1),
        ("cycle-batch-100", "cycle", 100),
        ("drain", "drain", 100),
    ];
    for (case, kind, batch) in cases {
        for contender in ["trunkline", "priorities", "unique"] {
            let contender = named(contender);
            let mut plan = plan("lanes", case, contender, kind, choice);
            (plan.told.producers, plan.told.batch) = (if batch == 1 { contender.callers } else { 4 }, batch);
            if kind == "drain" {
                plan.told.backlog = choice.messages_or(10 * DRAINED);
            }
            plans.push(plan);
        }
    }
    // Each caller awaits its message and has its own keys, so the order of each key is known and
    // can be checked.
    for name in ["keys", "keys-4-workers", "pgmq", "graphile-worker", "pg-boss", "awa"] {
        let contender = named(name);
        let mut plan = plan("lanes", "ten thousand keys", contender, "cycle", choice);
        (plan.told.producers, plan.told.keys) = (contender.callers, 10_000);
        plans.push(plan);
    }
    // These rows show how a busy key affects keys in its partition, and keys in other partitions.
    for (case, backlog, timed) in [
        ("1000-a-second, keys", 0, ""),
        ("1000-a-second, keys, a million in one, its lane", 1_000_000, "its-lane"),
        ("1000-a-second, keys, a million in one, other lanes", 1_000_000, "other-lanes"),
    ] {
        let mut plan = plan("lanes", case, named("keys"), "cycle", choice);
        (plan.told.producers, plan.told.keys, plan.told.rate) = (16, 10_000, Some(1000.0));
        timed.clone_into(&mut plan.told.timed);
        plan.told.backlog = if choice.quick { backlog / 10 } else { backlog };
        plans.push(plan);
    }
    plans
}
