//! The schema and its versions. Steps change tables and are never reverted. Each migration also
//! installs the functions and templates of this library.

use std::{fmt::Write, time::Duration};

use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};
use tokio_postgres::error::SqlState;
use tracing::{info, warn};

use crate::{
    error::{Error, Result},
    postgres::{
        db::{Db, Session},
        wire::only,
    },
};

// Defines STEPS, FUNCTIONS and TEMPLATES: the names and contents of the files in `sql/`.
include!(concat!(env!("OUT_DIR"), "/schema.rs"));

/// The version of the first release, whose tables are the first step.
const FIRST: i32 = 15;

/// The version of the schema that this library works with: the number of its last step.
pub const SCHEMA_VERSION: i32 = number(STEPS[STEPS.len() - 1].0);

/// The oldest version whose programs work with this version. A step that breaks older programs
/// raises this constant to the step's number. Programs of 0.1.0 (version 15) read the table
/// `migration` instead of this number. To stop those programs, such a step also adds a row to that
/// table.
const OLDEST: i32 = 15;

/// The time for which a migration begins again while tables are in use.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause before a migration begins again. Transactions that waited behind it run in this time.
const PAUSE: Duration = Duration::from_millis(500);

/// The work of a migration.
enum Work {
    Nothing,
    /// The tasks after the commit: see [`Db::tend_queues`].
    Queues,
    /// The missing steps and all functions. Contains the version of the schema that was found.
    All(i32),
}

impl Db {
    /// Brings the schema to this library's version, in one transaction. It applies the missing
    /// steps, then replaces all functions, then the functions of every queue. Returns the number of
    /// applied steps. The call can be repeated. Many processes can make it at once, and they wait
    /// for each other. A schema that is newer and supports this library stays unchanged.
    ///
    /// A step that changes tables needs them for itself. While a transaction of another session
    /// uses them, the call tries again, for about a minute.
    ///
    /// # Errors
    /// The schema is newer and does not support this library, the schema or something in it belongs
    /// to another role, the role may not create the schema, or tables stay in use; the error then
    /// names the sessions.
    pub async fn migrate(&self) -> Result<usize> {
        let session = self.own_session().await?;
        let applied = match self.work(&session).await? {
            Work::Nothing => 0,
            Work::Queues => {
                self.finish(&session).await;
                0
            }
            Work::All(found) => self.install_patiently(&session, found).await?,
        };
        self.give_back(session);
        Ok(applied)
    }

    /// Returns what is left to do. Needs only the right to read.
    async fn work(&self, session: &Session) -> Result<Work> {
        let found = self.found(session).await?;
        if found.version > SCHEMA_VERSION && found.supports_this() {
            info!(version = found.version, "the schema is newer, and supports this library: nothing was changed");
            return Ok(Work::Nothing);
        }
        if found.version == SCHEMA_VERSION {
            let functions = self.installed_functions(session).await?;
            if functions == fingerprint() {
                return Ok(Work::Nothing);
            }
            if functions == unfinished() {
                return Ok(Work::Queues);
            }
        }
        Ok(Work::All(found.version))
    }

    /// Installs everything, and begins again while tables are in use. No attempt waits long for a
    /// lock, because all later statements on the table would wait behind it.
    async fn install_patiently(&self, session: &Session, found: i32) -> Result<usize> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.install(session, found).await {
                Err(error) if is_in_use(&error) => {
                    session.batch("migrate", "rollback").await?;
                    if Instant::now() >= deadline {
                        // Fails with the reason, and names the sessions.
                        let why = include_str!("../../../sql/statements/migrate_in_use.sql");
                        let why = self.statement("migrate_in_use", why);
                        return session.batch(why.name, &why.text).await.and(Err(error));
                    }
                    info!("tables of the schema are in use: the migration begins again");
                    sleep(PAUSE).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Applies the missing steps and installs all functions. Returns the number of applied steps.
    async fn install(&self, session: &Session, found: i32) -> Result<usize> {
        self.check_name(session).await?;
        let name = if found == 0 { "migrate_first" } else { "migrate" };
        let begin = self.statement(name, concat!("begin; ", include_str!("../../../sql/statements/migrate_begin.sql")));
        session.batch(begin.name, &begin.text).await?;
        // Ends here if another process has migrated while this one waited for the lock.
        let Work::All(found) = self.work(session).await? else {
            session.batch("migrate", "rollback").await?;
            return Ok(0);
        };
        if found > SCHEMA_VERSION {
            return Err(self.mismatch(found)); // dropping the session rolls the transaction back
        }
        if found > 0 && found < FIRST {
            return Err(Error::invalid(format!(
                "the schema is at version {found}, from before 0.1.0, which cannot be migrated: use a new schema"
            )));
        }
        let pending = &STEPS[STEPS.partition_point(|(name, _)| number(name) <= found)..];
        for (name, text) in pending {
            session.batch("migrate", &self.statement("migrate", text).text).await?;
            info!(name, "migrated");
        }
        let functions =
            FUNCTIONS.iter().fold("delete from trunkline.template;\n".to_owned(), |all, (_, text)| all + text);
        session.batch("migrate", &self.statement("migrate", &functions).text).await?;
        let parts: Vec<&str> = TEMPLATES.iter().map(|(part, ..)| *part).collect();
        let names: Vec<&str> = TEMPLATES.iter().map(|(_, name, _)| *name).collect();
        let texts: Vec<_> = TEMPLATES.iter().map(|(_, name, text)| self.statement(name, text).text).collect();
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let templates = self.statement("template", include_str!("../../../sql/statements/template.sql"));
        session.query(&templates, &[&parts, &names, &texts]).await?;
        let shared = self.statement("describe_shared", include_str!("../../../sql/statements/describe_shared.sql"));
        session.query(&shared, &[]).await?;
        session
            .query(&self.statement("install_queues", include_str!("../../../sql/statements/install_queues.sql")), &[])
            .await?;
        session
            .query(&self.statement("build_dispatch", include_str!("../../../sql/statements/build_dispatch.sql")), &[])
            .await?;
        session
            .query(&self.statement("shared_rights", include_str!("../../../sql/statements/shared_rights.sql")), &[])
            .await?;
        let record = self.statement("migrate_record", include_str!("../../../sql/statements/migrate_record.sql"));
        for (name, _) in &STEPS[STEPS.len() - pending.len().max(1)..] {
            let version = number(name);
            session.query(&record, &[&version, name, &unfinished(), &OLDEST.min(version)]).await?;
        }
        session.batch("migrate", "commit").await?;
        self.finish(session).await;
        Ok(pending.len())
    }

    /// Runs [`Db::tend_queues`], and records that the migration is complete. If that fails, the
    /// next call of [`Db::migrate`] by the owner tries again. A role that lacks a right leaves
    /// these tasks to the owner.
    async fn finish(&self, session: &Session) {
        let sql = self.statement("migrate_finish", include_str!("../../../sql/statements/migrate_finish.sql"));
        let outcome = match self.tend_queues(session).await {
            Ok(true) => session.query(&sql, &[&fingerprint(), &unfinished()]).await.map(drop),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = outcome
            && !error.lacks_right()
        {
            warn!(%error, "some queues keep functions of an earlier release, or autovacuum with pauses; run the migration again");
        }
    }

    /// Drops the queues' functions that this version no longer has, removes the descriptions that
    /// earlier versions gave to the others, and sets how the queues' tables are vacuumed. Runs
    /// outside the migration's transaction, because the server's lock table has no room for several
    /// hundred queues. Returns false if a queue's tables were in use.
    async fn tend_queues(&self, session: &Session) -> Result<bool> {
        let some = self.statement("describe_queues", include_str!("../../../sql/statements/describe_queues.sql"));
        let (mut behind, mut is_done) = (Some(String::new()), true);
        while let Some(name) = behind {
            let rows = session.query(&some, &[&name]).await?;
            behind = only(&rows)?.read(0)?;
            for queue in only(&rows)?.read::<Option<Vec<String>>>(1)?.unwrap_or_default() {
                let mend = format!("select {}.set_vacuum('{queue}')", self.schema_name());
                warn!(queue, mend, "autovacuum still pauses on the queue's tables, which are in use");
                is_done = false;
            }
        }
        Ok(is_done)
    }

    /// Removes the schema with all queues and their contents, and every other object that depends
    /// on it. Does nothing if there is no schema. With up to twenty queues, one transaction removes
    /// everything or nothing. With more queues, each transaction removes twenty of them, because
    /// the server's lock table has no room for more. If such a call fails halfway, call this method
    /// again.
    ///
    /// # Errors
    /// The role does not own the schema. Or there are more than twenty queues, and one of them
    /// stays in use for ten seconds.
    pub async fn teardown(&self) -> Result<()> {
        /// The number of queues that one transaction removes.
        const FEW: i64 = 20;
        let session = self.own_session().await?;
        if self.found(&session).await?.version > 0 {
            let many = self.statement("teardown_many", include_str!("../../../sql/statements/teardown_many.sql"));
            let few = self.statement("teardown_few", include_str!("../../../sql/statements/teardown_few.sql"));
            while only(&session.query(&many, &[&FEW]).await?)?.read::<bool>(0)? {
                session.query(&few, &[&FEW]).await?;
            }
        }
        let sql = self.statement("teardown", include_str!("../../../sql/statements/teardown.sql"));
        session.batch(sql.name, &sql.text).await?;
        self.give_back(session);
        Ok(())
    }

    /// Checks that the schema's name needs no quotes, because statements contain it without quotes.
    async fn check_name(&self, session: &Session) -> Result<()> {
        let fits = self.statement("fits_unquoted", include_str!("../../../sql/statements/fits_unquoted.sql"));
        let name = self.schema().name();
        match only(&session.query(&fits, &[&name]).await?)?.read(0)? {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "a schema cannot be named {name:?}: it is a reserved word; choose another name"
            ))),
        }
    }

    /// Returns the fingerprint of the functions that were installed last.
    async fn installed_functions(&self, session: &Session) -> Result<String> {
        let functions = self.statement("functions_of", include_str!("../../../sql/statements/functions_of.sql"));
        let installed = session.query(&functions, &[]).await?;
        Ok(installed.first().map(|row| row.read(0)).transpose()?.unwrap_or_default())
    }
}

/// Returns the version that a step leads to: the number at the beginning of its file name.
const fn number(name: &str) -> i32 {
    let (digits, mut version, mut at) = (name.as_bytes(), 0, 0);
    while digits[at].is_ascii_digit() {
        version = 10 * version + (digits[at] - b'0') as i32;
        at += 1;
    }
    version
}

/// Returns true if a lock was not free in time, or if the server ended a deadlock.
fn is_in_use(error: &Error) -> bool {
    [SqlState::LOCK_NOT_AVAILABLE, SqlState::T_R_DEADLOCK_DETECTED].iter().any(|code| error.sqlstate() == Some(code))
}

/// The record of a migration whose functions are installed, but whose queues are not yet tended.
fn unfinished() -> String {
    fingerprint() + ", unfinished"
}

/// A fingerprint of the functions and templates.
fn fingerprint() -> String {
    let mut hash = Sha256::new();
    for (name, text) in FUNCTIONS {
        hash.update(name);
        hash.update(text);
    }
    for (part, name, text) in TEMPLATES {
        hash.update(part);
        hash.update(name);
        hash.update(text);
    }
    hash.finalize().iter().take(8).fold(String::with_capacity(16), |mut all, byte| {
        let _ = write!(all, "{byte:02x}"); // writing to a string cannot fail
        all
    })
}

#[cfg(test)]
mod tests {
    use super::{FIRST, FUNCTIONS, STEPS, TEMPLATES, number};

    #[test]
    fn steps_follow_each_other_from_the_first_release_on() {
        for (version, (name, _)) in (FIRST..).zip(STEPS) {
            assert_eq!(number(name), version, "{name}");
        }
    }

    #[test]
    fn a_file_holds_one_definition_of_its_name() {
        for (name, text) in FUNCTIONS {
            assert_eq!(text.matches("create or replace function").count(), 1, "{name}");
        }
        for (part, name, text) in TEMPLATES.iter().filter(|(_, _, text)| text.contains("create or replace function")) {
            assert_eq!(text.matches("create or replace function").count(), 1, "{part}/{name}");
            assert!(text.contains(&format!("create or replace function trunkline.{{do_{name}_}}(")), "{part}/{name}");
            assert!(!name.contains('_'), "{name}: do_a_b_q would be the function of two queues");
        }
    }
}
