//! The findings that are not rows of a check.

use std::time::SystemTime;

use trunkline::Error;

use super::{
    Finding, Severity,
    checks::{OF_PRIMARY, OF_SERVER},
};

/// The name of the finding that the queues could not be listed, so the doctor examined none.
pub const QUEUES: &str = "queues";
/// The name of the check that sends a notification and waits for it. This check is not a single
/// statement.
pub const LISTENING: &str = "listening";
/// The name of the finding on every standby, where some checks cannot run.
pub const STANDBY: &str = "standby";
/// The name of the finding that the server does not answer. It cannot be skipped.
const UNANSWERED: &str = "server";

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

/// The remedy for a check that failed for a reason that the doctor does not know.
pub const AGAIN: &str =
    "select pid, state, wait_event, query from pg_stat_activity; -- find what holds the check up, then examine again";
/// The remedy for a check that met a locked table. A session that waits for the lock blocks
/// others, too.
const HOLDERS: &str = "select l.relation::regclass::text, l.mode, l.pid, a.state, a.xact_start, a.query, l.granted, pg_blocking_pids(l.pid) from pg_locks l left join pg_stat_activity a on a.pid = l.pid where l.mode = 'AccessExclusiveLock' and l.database = (select d.oid from pg_database d where d.datname = current_database()); -- find the session that locks the table, or waits for its lock, then examine again";

/// Returns the remedy for a check that failed for any reason other than a missing right.
pub fn again(error: &Error) -> &'static str {
    if error.sqlstate().is_some_and(|state| state.code() == "55P03") { HOLDERS } else { AGAIN }
}

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

pub fn unanswered() -> Finding {
    Finding {
        check: UNANSWERED,
        severity: Severity::Wrong,
        queue: None,
        queues: Vec::new(),
        what: "the server does not answer, or has no free connection: the doctor has given up".to_owned(),
        since: None,
        why: "Programs that use this server wait as the doctor did. It is unknown whether anything else is wrong."
            .to_owned(),
        mend: "look at the server's log, its disk and its processes".to_owned(),
    }
}

/// Adds to the remedy of a finding on a standby that it has to run on the primary, unless it is
/// about the standby itself.
pub fn on_primary(finding: Finding) -> Finding {
    let is_here = [UNANSWERED, STANDBY].iter().chain(OF_SERVER).any(|check| *check == finding.check);
    if is_here || [AGAIN, HOLDERS].contains(&&*finding.mend) {
        return finding;
    }
    Finding { mend: format!("{} -- on the primary", finding.mend), ..finding }
}
