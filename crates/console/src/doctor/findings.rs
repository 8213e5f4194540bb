//! The findings that are not rows of a check.

use std::time::SystemTime;

use super::{Finding, Severity, checks::OF_PRIMARY};

/// The name of the finding that the queues could not be listed, so the doctor examined none.
pub const QUEUES: &str = "queues";
/// The name of the check that sends a notification and waits for it. This check is not a single
/// statement.
pub const LISTENING: &str = "listening";
/// The name of the finding on every standby, where some checks cannot run.
pub const STANDBY: &str = "standby";

/// A row of a check: severity, queue, what, since, why, mend.
pub type CheckRow = (String, Option<String>, String, Option<SystemTime>, String, String);

pub fn finding(check: &'static str, (severity, queue, what, since, why, mend): CheckRow) -> Finding {
    let severity = match &*severity {
        "wrong" => Severity::Wrong,
        "advice" => Severity::Advice,
        _ => Severity::Unchecked,
    };
    let queues = queue.iter().cloned().collect();
    Finding { check, severity, queue, queues, what, since, why, mend }
}

/// The remedy for a check that failed for any reason other than a missing right.
pub const AGAIN: &str =
    "select pid, state, wait_event, query from pg_stat_activity; -- find what holds the check up, then examine again";

pub fn unchecked(check: &'static str, queue: Option<&str>, reason: &str, mend: &str) -> Finding {
    Finding {
        check,
        severity: Severity::Unchecked,
        queue: queue.map(str::to_owned),
        queues: queue.iter().map(|queue| (*queue).to_owned()).collect(),
        what: format!("the check failed: {reason}"),
        since: None,
        why: "It is unknown whether anything is wrong here.".to_owned(),
        mend: mend.to_owned(),
    }
}

pub fn deaf() -> Finding {
    Finding {
        check: LISTENING,
        severity: Severity::Wrong,
        queue: None,
        queues: Vec::new(),
        what: "a notification that the doctor sent did not arrive".to_owned(),
        since: None,
        why: "A transaction pooler between the doctor and the server drops notifications. Consumers poll instead: messages wait longer, and the server receives more queries.".to_owned(),
        mend: "let consumers connect to the server directly, or through a pooler in session mode".to_owned(),
    }
}

/// Returns the finding that the test notification could not be sent, for example because the server
/// has no free connection.
pub fn untested(reason: &str) -> Finding {
    Finding {
        why: "It is unknown whether notifications arrive. Consumers that get no connection to listen on poll instead."
            .to_owned(),
        ..unchecked(LISTENING, None, reason, AGAIN)
    }
}

pub fn standby() -> Finding {
    Finding {
        check: STANDBY,
        severity: Severity::Advice,
        queue: None,
        queues: Vec::new(),
        what: format!("this server is a standby: {} and {LISTENING} were not checked", OF_PRIMARY.join(", ")),
        since: None,
        why: "The workers' reports are not replicated, and a standby accepts no listeners.".to_owned(),
        mend: "trunkline doctor --database-url …   # with the URL of the primary".to_owned(),
    }
}
