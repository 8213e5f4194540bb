//! The doctor reports what is wrong with a database that holds queues, since when, why it matters,
//! and the statement that fixes it.
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
//! The doctor changes nothing, takes only the locks of a query, and reads no payload. A check
//! queries the catalog, the statistics or the workers' reports. A check of a queue probes the
//! queue's index a few times, or requests a query plan.

mod checks;
mod findings;
mod limit;
mod examination;
mod plans;
mod together;

use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, TryStreamExt, future, stream};
use tokio::time::timeout;
use trunkline::{Db, Description, Result};

use self::{
    checks::{MOVING, OF_DATABASE, OF_PRIMARY, OF_QUEUES},
    examination::Examination,
    findings::{
        CheckRow, LISTENING, QUEUES, STANDBY, again, deaf, finding, on_primary, standby, unanswered, unchecked,
        untested,
    },
    limit::Limit,
};
use crate::{
    metrics::ask::within,
    reason::{lacks_right, reason, server_reason},
    schema::Text,
};

/// The severity of a finding, ordered from the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The operator has to act.
    Wrong,
    /// The queues work, but could be better or safer.
    Advice,
    /// A check failed, so its result is not known.
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

/// A single problem that the doctor found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name of the check, which is the same in every release.
    pub check: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The queue, if the finding is about exactly one queue.
    pub queue: Option<String>,
    /// All queues that the finding is about. There are several if the same problem was found in
    /// several queues.
    pub queues: Vec<String>,
    /// The finding, in a sentence. It may contain text from the database, such as
    /// statements and names.
    pub what: String,
    /// The time since which the problem has existed, by the server's clock, if known.
    pub since: Option<SystemTime>,
    /// Why the problem matters.
    pub why: String,
    /// The statement that fixes the problem, or one that shows more about it. There are several
    /// lines if the problem was found in several queues and each needs a statement of its own.
    pub mend: String,
}

/// Examines a database with all checks except the skipped ones.
#[derive(Debug, Clone)]
pub struct Doctor {
    patience: Duration,
    skipped_checks: Vec<String>,
    skipped_queues: Vec<String>,
}

impl Default for Doctor {
    fn default() -> Self {
        Self::new()
    }
}

/// The server's time limit for a statement.
const SERVER: &str = "10s";
/// The number of queues that one statement examines. The statement locks up to twenty tables and
/// indexes per queue, and the server's table of locks has 64 entries per connection.
const PAGE: usize = 16;
/// The maximum wait for a second connection, with which two pages are examined at the same time.
const SECOND: Duration = Duration::from_secs(1);

impl Doctor {
    /// Creates a doctor with a patience of five minutes. It skips nothing.
    #[must_use]
    pub fn new() -> Self {
        Self { patience: Duration::from_secs(300), skipped_checks: Vec::new(), skipped_queues: Vec::new() }
    }

    /// Sets how long a transaction may be open, a slot unread and a message due before the doctor
    /// reports it. The smallest unit is one millisecond.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Skips a check, by its name in [`Doctor::checks`]. An unknown name skips nothing.
    #[must_use]
    pub fn skip_check(mut self, check: impl Into<String>) -> Self {
        self.skipped_checks.push(check.into());
        self
    }

    /// Skips a queue. A name that ends with a `*`, such as `nightly_*`, skips all queues whose
    /// names begin with the part before the `*`.
    #[must_use]
    pub fn skip_queue(mut self, queue: impl Into<String>) -> Self {
        self.skipped_queues.push(queue.into());
        self
    }

    /// Returns the names of all checks.
    pub fn checks() -> impl Iterator<Item = &'static str> {
        OF_DATABASE.iter().chain(OF_QUEUES.iter().flat_map(|some| *some)).map(|(name, _)| *name).chain([
            MOVING.0,
            plans::NAME,
            QUEUES,
            LISTENING,
            STANDBY,
        ])
    }

    fn wants(&self, check: &str) -> bool {
        !self.skipped_checks.iter().any(|skipped| skipped == check)
    }

    fn wants_queue(&self, queue: &str) -> bool {
        !self.skipped_queues.iter().any(|skipped| match skipped.strip_suffix('*') {
            Some(beginning) => queue.starts_with(beginning),
            None => queue == skipped,
        })
    }

    /// Returns all findings, the worst first. A check that the role may not run is a finding. So is
    /// a server that does not answer, which ends the examination. The same problem in four or more
    /// queues is one finding. Ends after about a minute. Each check that did not run by then is a
    /// finding.
    ///
    /// # Errors
    /// If the database cannot be reached.
    pub async fn examine(&self, db: &Db) -> Result<Vec<Finding>> {
        let limit = Limit::starting_now();
        // Every check uses the same connection, because the server may have few free ones.
        let first =
            "select pg_catalog.pg_is_in_recovery(), pg_catalog.quote_literal(pg_catalog.quote_ident(current_user))";
        let first = within::<_, (bool, String)>(db, Text::of(db, first), (), SERVER);
        let Ok(first) = limit.first(Box::pin(first)).await else { return Ok(vec![unanswered()]) };
        let (is_standby, role) = first?;
        let of = Examination::new(db, limit, role);
        let mut findings = Box::pin(self.of_all(&of, is_standby)).await?;
        findings.extend(of.is_silent().then(unanswered));
        if is_standby {
            findings = findings.into_iter().map(on_primary).collect();
        }
        findings.retain(|finding| finding.queue.as_ref().is_none_or(|queue| self.wants_queue(queue)));
        findings.sort_by_key(|finding| finding.severity);
        Ok(together::together(findings))
    }

    /// Runs all checks, until the server does not answer any more.
    async fn of_all(&self, of: &Examination<'_>, is_standby: bool) -> Result<Vec<Finding>> {
        let (mut findings, Examination { db, limit, .. }) = (Vec::new(), of);
        findings.extend(Some(standby()).filter(|_| is_standby && self.wants(STANDBY)));
        for (check, text) in OF_DATABASE.iter().filter(|(check, _)| self.wants(check)) {
            if !(is_standby && OF_PRIMARY.contains(check)) {
                findings.extend(self.ask(of, check, None, Text::of(db, text)).await?);
            }
        }
        let moves = Text::of(db, "select pg_catalog.to_regclass('trunkline.moving') is not null");
        let (check, text) = MOVING;
        let has_moved = self.wants(check)
            && !of.is_silent()
            && match limit.answer(Box::pin(within::<_, (bool,)>(db, moves, (), SERVER))).await {
                // continues, because the list of queues below reports the missing right
                Ok(Err(error)) if lacks_right(&error) => false,
                Ok(Err(error)) if error.sqlstate().is_some() => {
                    findings.push(unchecked(check, None, &reason(&error), again(&error)));
                    false
                }
                Ok(found) => found?.0,
                Err(late) => {
                    findings.extend(of.late(late, check, None).await);
                    false
                }
            };
        if has_moved {
            findings.extend(self.ask(of, check, None, Text::of(db, text)).await?);
        }
        if of.is_silent() {
            return Ok(findings);
        }
        let explains = |one: &&Finding| ["indexes", "functions", "payloads"].contains(&one.check);
        let no_plan: Vec<String> = findings.iter().filter(explains).filter_map(|one| one.queue.clone()).collect();
        let mut queues = match limit.answer(db.list_queues()).await {
            Ok(Err(error)) if lacks_right(&error) => {
                let unlisted = || unchecked(QUEUES, None, &server_reason(&error), &of.as_operator(None));
                findings.extend(self.wants(QUEUES).then(unlisted));
                Vec::new()
            }
            // For example, a time limit of the role: this statement has no limit of its own.
            Ok(Err(error)) if error.sqlstate().is_some() => {
                let unlisted = || unchecked(QUEUES, None, &reason(&error), again(&error));
                findings.extend(self.wants(QUEUES).then(unlisted));
                Vec::new()
            }
            Ok(listed) => listed?,
            Err(late) => {
                findings.extend(of.late(late, QUEUES, None).await.filter(|_| self.wants(QUEUES)));
                Vec::new()
            }
        };
        queues.retain(|queue| self.wants_queue(&queue.name));
        let pages: Vec<Vec<Description>> = queues.chunks(PAGE).map(<[_]>::to_vec).collect();
        let at_a_time = if pages.len() > 1 { connections(db).await } else { 1 };
        let pages = pages.into_iter().map(|page| self.of_page(of, page, &no_plan));
        let of_queues: Vec<Vec<Finding>> = stream::iter(pages).buffered(at_a_time).try_collect().await?;
        findings.extend(of_queues.into_iter().flatten());
        if self.wants(LISTENING) && !is_standby && !of.is_silent() {
            findings.extend(match limit.answer(db.notifications_arrive()).await {
                Ok(Ok(true)) => None,
                Ok(Ok(false)) => Some(deaf()),
                Ok(Err(error)) => Some(untested(&reason(&error))),
                Err(late) => of.late(late, LISTENING, None).await,
            });
        }
        Ok(findings)
    }

    /// Examines up to `PAGE` queues: one statement for each check, and one for all plans. Returns
    /// the findings by queue, in the order of the checks.
    async fn of_page(&self, of: &Examination<'_>, page: Vec<Description>, no_plan: &[String]) -> Result<Vec<Finding>> {
        let (mut findings, Examination { db, limit, .. }) = (Vec::new(), of);
        for (check, text) in OF_QUEUES.iter().flat_map(|some| *some).filter(|(check, _)| self.wants(check)) {
            let queues: Vec<&Description> = page.iter().filter(|queue| checks::applies(check, queue)).collect();
            let texts = queues.iter().map(|queue| checks::of_queue(db, text, queue));
            let Some(texts) = Text::all_of(texts).filter(|_| !of.is_silent()) else { continue };
            match limit.answer(self.rows(db, check, texts)).await {
                Ok(Ok(found)) => findings.extend(found),
                // Asks for each queue separately: the server refused the statement because of one
                // of the queues, or took too long.
                Ok(Err(_)) => {
                    for queue in queues {
                        let text = checks::of_queue(db, text, queue);
                        findings.extend(self.ask(of, check, Some(&queue.name), text).await?);
                    }
                }
                // The server did not answer at all, because it ends each statement before this
                // limit. So it would not answer the statements for single queues either.
                Err(late) => {
                    if !of.falls_silent(late).await {
                        findings.extend(queues.iter().map(|queue| late.finding(check, Some(&queue.name))));
                    }
                }
            }
        }
        if self.wants(plans::NAME) && !of.is_silent() {
            let queues: Vec<&Description> = page.iter().filter(|queue| !no_plan.contains(&queue.name)).collect();
            for queue in plans::suspects(db, *limit, queues).await {
                let plan = async { Ok(plans::examine(db, queue).await?.into_iter().collect()) };
                findings.extend(of.answered(plans::NAME, Some(&queue.name), plan).await?);
            }
        }
        // The sort is stable, so the findings of a queue keep the order of the checks.
        findings
            .sort_by_key(|finding: &Finding| page.iter().position(|queue| Some(&queue.name) == finding.queue.as_ref()));
        Ok(findings)
    }

    async fn rows(&self, db: &Db, check: &'static str, text: Text) -> Result<Vec<Finding>> {
        let text = text
            .with("version", env!("CARGO_PKG_VERSION"))
            .with("statement", checks::STATEMENT)
            .with("patience", &format!("{} milliseconds", self.patience.as_millis()));
        let rows: Vec<CheckRow> = within(db, text, (), SERVER).await?;
        Ok(rows.into_iter().map(|row| finding(check, row)).collect())
    }

    async fn ask(
        &self,
        of: &Examination<'_>,
        check: &'static str,
        queue: Option<&str>,
        text: Text,
    ) -> Result<Vec<Finding>> {
        of.answered(check, queue, Box::pin(self.rows(of.db, check, text))).await
    }
}

/// Returns the number of pages to examine at the same time. Each page needs a connection, and the
/// server may have only one left.
async fn connections(db: &Db) -> usize {
    match timeout(SECOND, future::try_join(plans::begin(db), plans::begin(db))).await {
        Ok(Ok(_two)) => 2,
        _ => 1,
    }
}
