//! The promises that a rival does not make, or has no verb for, according to its own documentation.

use super::rules::RivalRule;

/// The reason why a rule does not count, and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excuse {
    pub why: &'static str,
    pub link: &'static str,
}

const VISIBLE_AGAIN: Excuse = Excuse {
    why: "delivery is once within a visibility timeout; afterwards another may read the message, and `delete` takes the id alone",
    link: "https://github.com/pgmq/pgmq#visibility-timeout-vt",
};
pub const PGMQ: &[(RivalRule, Excuse)] = &[
    (RivalRule::Fence, VISIBLE_AGAIN),
    (RivalRule::Refused, VISIBLE_AGAIN),
    (
        RivalRule::Attempts,
        Excuse {
            why: "reads are counted (`read_ct`), and a message stays until it is removed",
            link: "https://github.com/pgmq/pgmq#read-messages",
        },
    ),
];

const RESCUED: Excuse = Excuse {
    why: "a job that is rescued while its worker still runs may be executed twice: `RescueStuckJobsAfter` has to be longer than any job runs",
    link: "https://github.com/riverqueue/river/blob/v0.51.1/client.go#L379-L397",
};
pub const RIVER: &[(RivalRule, Excuse)] = &[(RivalRule::Fence, RESCUED), (RivalRule::Effects, RESCUED)];

pub const GRAPHILE: &[(RivalRule, Excuse)] = &[
    (
        RivalRule::Fence,
        Excuse {
            why: "a job may be released and attempted again while its worker is still in progress: hence the lock of 4 hours",
            link: "https://worker.graphile.org/docs/pro/recovery",
        },
    ),
    (
        RivalRule::Effects,
        Excuse {
            why: "a task ends its job by returning, not in a transaction of its own",
            link: "https://worker.graphile.org/docs/tasks",
        },
    ),
];

const AT_LEAST_ONCE: Excuse = Excuse {
    why: "delivery is at least once, without fencing tokens, and entrypoints must be idempotent",
    link: "https://github.com/janbjorge/pgqueuer/blob/main/docs/adr/ADR-0004-delivery-is-at-least-once.md",
};
pub const PGQUEUER: &[(RivalRule, Excuse)] = &[
    (RivalRule::Fence, AT_LEAST_ONCE),
    (
        RivalRule::Attempts,
        Excuse {
            why: "failures are limited, picks after a stale heartbeat are not: \"poison jobs\" are found by a query",
            link: "https://github.com/janbjorge/pgqueuer/blob/main/docs/guides/reliability.md#poison-jobs",
        },
    ),
    (RivalRule::Effects, AT_LEAST_ONCE),
];

pub const AWA: &[(RivalRule, Excuse)] = &[(
    RivalRule::Effects,
    Excuse {
        why: "completion in the caller's transaction is decided, and not released (0.6.9)",
        link: "https://github.com/hardbyte/awa/blob/main/docs/adr/042-caller-owned-finalization-transactions.md",
    },
)];
