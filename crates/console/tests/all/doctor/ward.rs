//! A server for one test, which begins as a copy of a server that has the schema.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    time::{Duration, Instant},
};

use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};
use trunkline::{Db, Queue, Settings};
use trunkline_console::doctor::{Doctor, Finding};
use trunkline_embedded::{Binaries, Cluster, Stop};

use super::SOON;

/// A server for one test, because many findings apply to all databases of a server.
pub struct Ward {
    pub server: Cluster,
    pub db: Db,
    pub sql: Client,
}

impl Ward {
    pub async fn with(settings: &[(&str, &str)]) -> Self {
        let mut cluster = Cluster::temporary().binaries(programs().await);
        for (name, value) in settings {
            cluster = cluster.setting(*name, *value);
        }
        let server = cluster.start().expect("a server");
        let db = Db::connect(&server.url("postgres")).await.expect("connected");
        let sql = connect(&server.url("postgres")).await;
        Self { server, db, sql }
    }

    pub async fn new() -> Self {
        Self::with(&[]).await
    }

    pub async fn say(&self, text: &str) {
        self.sql.batch_execute(text).await.expect(text);
    }

    pub async fn queue(&self, name: &str, settings: Settings) -> Queue<i64> {
        self.db.create_queue(name, &settings).await.expect("created");
        self.db.queue(name).await.expect("opened")
    }

    /// Runs the statements of a finding one by one, because some cannot run in a transaction.
    pub async fn mend(&self, finding: &Finding) {
        for statement in finding.mend.split("; ") {
            self.say(statement).await;
        }
    }

    /// Waits until a query returns true, for example once the statistics have arrived.
    pub async fn until(&self, question: &str) {
        let deadline = Instant::now() + SOON;
        while !self.sql.query_one(question, &[]).await.expect(question).get::<_, bool>(0) {
            assert!(Instant::now() < deadline, "not in time: {question}");
            crate::until_next_poll().await;
        }
    }

    /// Returns the findings of a doctor without patience.
    pub async fn found(&self) -> Vec<Finding> {
        impatient(Doctor::new(), &self.db).await
    }

    /// Returns the findings of a check.
    pub async fn of(&self, check: &str) -> Vec<Finding> {
        let found = impatient(only(check), &self.db).await;
        found.into_iter().filter(|finding| finding.check == check).collect()
    }

    /// Returns the only finding of a check, and verifies that its statements fix the problem.
    pub async fn mended(&self, check: &str) -> Finding {
        let found = self.of(check).await;
        assert_eq!(found.len(), 1, "{check}: {found:#?}");
        self.mend(&found[0]).await;
        let deadline = Instant::now() + SOON;
        while let [left, ..] = &self.of(check).await[..] {
            assert!(Instant::now() < deadline, "still there after {:?}: {left:?}", found[0].mend);
            crate::until_next_poll().await;
        }
        found.into_iter().next().expect("one")
    }
}

/// Returns a doctor that runs this check, and those on which its findings depend.
pub fn only(check: &str) -> Doctor {
    let needed = |other: &str| other == check || check == "plans" && ["indexes", "payloads"].contains(&other);
    Doctor::checks().filter(|other| !needed(other)).fold(Doctor::new(), Doctor::skip_check)
}

/// Returns the findings of a doctor without patience, once the library's own statements have ended.
/// Without patience, a statement that runs at that moment is a finding too.
pub async fn impatient(doctor: Doctor, db: &Db) -> Vec<Finding> {
    let doctor = doctor.patience(Duration::ZERO);
    let deadline = Instant::now() + SOON;
    loop {
        let found = doctor.examine(db).await.expect("examined");
        let is_own = |one: &Finding| one.check == "snapshots" && one.what.contains("(trunkline, ");
        if !found.iter().any(is_own) {
            return found;
        }
        assert!(Instant::now() < deadline, "a transaction of the library stays open: {found:#?}");
        crate::until_next_poll().await;
    }
}

pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connected");
    tokio::spawn(connection);
    client
}

/// Returns the server's programs, except that `initdb` copies a stopped server that has the schema.
/// A copy takes a tenth of the time of an `initdb` and a migration.
async fn programs() -> Binaries {
    static PROGRAMS: OnceCell<Binaries> = OnceCell::const_new();
    let prepared = || async {
        let first = Cluster::temporary().setting("fsync", "off").start().expect("a server");
        let db = Db::connect(&first.url("postgres")).await.expect("connected");
        db.migrate().await.expect("migrated");
        drop(db);
        first.stop(Stop::Fast).expect("stopped");
        let (real, data) = (first.binaries().dir(), first.data_dir());
        let home = data.parent().expect("a folder");
        let folder = home.join("bin");
        fs::create_dir(&folder).expect("a folder is made");
        for program in real.read_dir().expect("it is there").map(|entry| entry.expect("an entry").file_name()) {
            if program != "initdb" {
                symlink(real.join(&program), folder.join(&program)).expect("linked");
            }
        }
        // A fetched server has its libraries beside its programs.
        symlink(real.join("../lib"), home.join("lib")).expect("linked");
        let copy = format!("#!/bin/sh\nexec cp -R '{}' \"$2\"\n", data.display());
        fs::write(folder.join("initdb"), copy).expect("written");
        fs::set_permissions(folder.join("initdb"), fs::Permissions::from_mode(0o755)).expect("it can be run");
        // The owner of the data runs the programs, and removes the folder in the end.
        let owner = data.metadata().expect("it is there");
        chown(&folder, Some(owner.uid()), Some(owner.gid())).expect("given");
        let programs = Binaries::inspect(&folder).expect("the programs run");
        std::mem::forget(first); // its folder goes when the process ends
        programs
    };
    PROGRAMS.get_or_init(prepared).await.clone()
}
