//! The doctor: what is wrong with a database that holds queues, since when, why it matters, and the statement that mends it.
//!
//! ```no_run
//! # async fn example(db: &trunkline::Db) -> trunkline::Result<()> {
//! use trunkline_console::doctor::Doctor;
//!
//! for finding in Doctor::new().examine(db).await? {
//!     println!("{}: {}", finding.check, finding.what);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Nothing is changed, nothing is locked, and no payload is read. A check is a statement over the catalog, the statistics and what workers report, or, for each
//! queue, a few probes of its index and a plan.

mod checks;
mod plans;

use std::time::{Duration, SystemTime};

use trunkline::{Db, Error, Result, postgres::Statement};

use self::checks::{OF_DATABASE, OF_KEYS, OF_QUEUE, OF_UNIQUENESS};
use crate::schema::in_schema;

/// How bad a finding is. The worst come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something has to be done.
    Wrong,
    /// It works, and could be better or safer.
    Advice,
    /// A check could not look, so that nobody knows.
    Unchecked,
}

impl Severity {
    /// `wrong`, `advice` or `unchecked`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wrong => "wrong",
            Self::Advice => "advice",
            Self::Unchecked => "unchecked",
        }
    }
}

/// One thing that the doctor found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name of the check, the same in every release.
    pub check: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The queue, if it is about one.
    pub queue: Option<String>,
    /// What is the case. It may contain texts of others: statements, names.
    pub what: String,
    /// Since when, by the server's clock, where that is known.
    pub since: Option<SystemTime>,
    /// What comes of it.
    pub why: String,
    /// The statement that mends it, or tells more.
    pub mend: String,
}

/// Looks at everything once.
#[derive(Debug, Clone)]
pub struct Doctor {
    patience: Duration,
}

impl Default for Doctor {
    fn default() -> Self {
        Self::new()
    }
}

impl Doctor {
    /// One with a patience of five minutes.
    #[must_use]
    pub fn new() -> Self {
        Self { patience: Duration::from_secs(300) }
    }

    /// For how long transactions may be open, slots unread and messages due before that is a finding. In milliseconds.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The names of all checks.
    pub fn checks() -> impl Iterator<Item = &'static str> {
        let of_queues = OF_QUEUE.iter().chain(OF_KEYS).chain(OF_UNIQUENESS);
        OF_DATABASE.iter().chain(of_queues).map(|(name, _)| *name).chain([plans::NAME, LISTENING])
    }

    /// All findings, the worst first. What the role may not look at is a finding, too.
    ///
    /// # Errors
    /// The database cannot be reached.
    pub async fn examine(&self, db: &Db) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        for (check, text) in OF_DATABASE {
            findings.extend(self.ask(db, check, None, (*text).to_owned()).await?);
        }
        for queue in db.list_queues().await? {
            for (check, text) in checks::of(&queue) {
                findings.extend(self.ask(db, check, Some(&queue.name), checks::of_queue(text, &queue)).await?);
            }
            let has_indexes =
                !findings.iter().any(|one| one.check == "indexes" && one.queue.as_ref() == Some(&queue.name));
            if has_indexes {
                findings.extend(match plans::examine(db, &queue).await {
                    Err(error) if error.sqlstate().is_some() => Some(unchecked(plans::NAME, Some(&queue.name), &error)),
                    finding => finding?,
                });
            }
        }
        let arrive = db.notifications_arrive().await;
        findings.extend((!arrive).then(deaf));
        findings.sort_by_key(|finding| finding.severity);
        Ok(findings)
    }

    async fn ask(&self, db: &Db, check: &'static str, queue: Option<&str>, text: String) -> Result<Vec<Finding>> {
        let text = in_schema(&text, db.schema_name())
            .replace("{version}", env!("CARGO_PKG_VERSION"))
            .replace("{patience}", &format!("{} milliseconds", self.patience.as_millis()));
        let statement: Statement<(), Vec<Row>> = Statement::of(text);
        match db.run_in_catalog(&statement, ()).await {
            Ok(rows) => Ok(rows.into_iter().map(|row| finding(check, row)).collect()),
            Err(error) if error.sqlstate().is_some() => Ok(vec![unchecked(check, queue, &error)]),
            Err(error) => Err(error),
        }
    }
}

/// A notification that is sent and waited for, not a statement.
const LISTENING: &str = "listening";

/// What every check answers.
type Row = (String, Option<String>, String, Option<SystemTime>, String, String);

fn finding(check: &'static str, (severity, queue, what, since, why, mend): Row) -> Finding {
    let severity = match &*severity {
        "wrong" => Severity::Wrong,
        "advice" => Severity::Advice,
        _ => Severity::Unchecked,
    };
    Finding { check, severity, queue, what, since, why, mend }
}

fn unchecked(check: &'static str, queue: Option<&str>, error: &Error) -> Finding {
    Finding {
        check,
        severity: Severity::Unchecked,
        queue: queue.map(str::to_owned),
        what: format!("the check failed: {error}"),
        since: None,
        why: "Nobody knows whether all is well there.".to_owned(),
        mend: "select rolname from pg_roles where pg_has_role(oid, 'member'); -- ask as a role that may look, such as pg_monitor".to_owned(),
    }
}

fn deaf() -> Finding {
    Finding {
        check: LISTENING,
        severity: Severity::Wrong,
        queue: None,
        what: "a notification that was sent did not arrive".to_owned(),
        since: None,
        why: "A transaction pooler between here and the server swallows notifications. Consumers poll instead: messages wait longer, and the server is asked more often.".to_owned(),
        mend: "let consumers connect to the server itself, or by a pooler in session mode".to_owned(),
    }
}
