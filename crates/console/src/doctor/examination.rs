//! One run of the doctor: what its checks share, and how their statements fail.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use tokio::time::timeout;
use trunkline::{Db, Result};

use super::{
    Finding, SERVER,
    findings::{again, unchecked},
    limit::{Late, Limit},
};
use crate::{
    metrics::ask::within,
    reason::{lacks_right, reason},
    schema::Text,
};

/// The limit for the answer to a statement that does nothing.
const PROBE: Duration = Duration::from_secs(5);

pub struct Examination<'a> {
    pub db: &'a Db,
    pub limit: Limit,
    /// The doctor's own role, as a literal.
    role: String,
    /// True once the server has answered neither a check nor a statement that does nothing.
    is_silent: AtomicBool,
}

impl<'a> Examination<'a> {
    pub fn new(db: &'a Db, limit: Limit, role: String) -> Self {
        Self { db, limit, role, is_silent: AtomicBool::new(false) }
    }

    /// Returns true if the server has stopped answering. Further checks would only wait.
    pub fn is_silent(&self) -> bool {
        self.is_silent.load(Relaxed)
    }

    /// Returns the statement that grants this role the rights of an operator.
    pub fn as_operator(&self, queue: Option<&str>) -> String {
        let of_queue = queue.map_or_else(String::new, |queue| format!(", '{queue}'"));
        let (schema, role) = (self.db.schema_name(), &self.role);
        format!("select {schema}.grant_rights({role}, 'operator'{of_queue}); -- as the owner of the schema")
    }

    /// Returns the findings of a statement. If the server refuses it or takes too long, that is a
    /// finding. Does not run the statement if the server is silent.
    pub async fn answered(
        &self,
        check: &'static str,
        queue: Option<&str>,
        found: impl Future<Output = Result<Vec<Finding>>>,
    ) -> Result<Vec<Finding>> {
        if self.is_silent() {
            return Ok(Vec::new());
        }
        match self.limit.answer(found).await {
            Ok(Err(error)) if lacks_right(&error) => {
                Ok(vec![unchecked(check, queue, &reason(&error), &self.as_operator(queue))])
            }
            Ok(Err(error)) if error.sqlstate().is_some() => {
                Ok(vec![unchecked(check, queue, &reason(&error), again(&error))])
            }
            // The connection is closed, but the server may only be slow with this check.
            Ok(Err(error)) if error.is_silence() => match self.falls_silent(Late::Rest).await {
                true => Ok(Vec::new()),
                false => Ok(vec![unchecked(check, queue, &reason(&error), again(&error))]),
            },
            Ok(found) => found,
            Err(late) => Ok(self.late(late, check, queue).await.into_iter().collect()),
        }
    }

    /// Returns the finding that a check exceeded a limit. Returns `None` if the server is silent,
    /// which is a finding of its own.
    pub async fn late(&self, late: Late, check: &'static str, queue: Option<&str>) -> Option<Finding> {
        (!self.falls_silent(late).await).then(|| late.finding(check, queue))
    }

    /// Returns true if the server does not answer any statement, after a check exceeded a limit.
    pub async fn falls_silent(&self, late: Late) -> bool {
        if late.was_asked() && !self.is_silent() {
            let probe = within::<_, (bool,)>(self.db, Text::of(self.db, "select true"), (), SERVER);
            if timeout(PROBE, Box::pin(probe)).await.is_err() {
                self.is_silent.store(true, Relaxed);
            }
        }
        self.is_silent()
    }
}
