//! The server's clock is set ahead by hours or days, and then back. Rows written while the clock
//! was ahead block no queue and no schedule.

mod queues;
mod repaired;
mod schedules;

use std::{path::Path, time::Duration};

use tokio_postgres::Client;
use trunkline::Db;
use trunkline_disk::Disk;
use trunkline_embedded::Cluster;

use crate::fixture::connect;

const HOUR: Duration = Duration::from_secs(3600);
/// Two steps of the clock: one longer than the maximum lease or retry delay, one shorter.
const AHEAD: [Duration; 2] = [Duration::from_secs(400 * 86_400), Duration::from_secs(2 * 3600)];

/// A private server whose clock the test can set.
struct Clock {
    sql: Client,
    db: Db,
    cluster: Cluster,
    disk: Disk,
}

impl Clock {
    async fn start() -> Self {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target folder");
        let disk = Disk::new(target).expect("the library is built");
        let cluster = Cluster::temporary().setting("fsync", "off");
        let environment = disk.environment().into_iter();
        let cluster = environment.fold(cluster, |cluster, (name, value)| cluster.env(name, value));
        let cluster = cluster.start().expect("a private PostgreSQL starts");
        assert!(disk.is_under(cluster.pid().expect("it runs")).expect("its maps can be read"));
        let db = Db::connect(&cluster.url("postgres")).await.expect("connected");
        db.migrate().await.expect("migrated");
        Self { sql: connect(&cluster.url("postgres")).await, db, cluster, disk }
    }

    /// Connects as a new process would, without any state of the first connection.
    async fn another(&self) -> Db {
        Db::connect(&self.cluster.url("postgres")).await.expect("connected")
    }

    fn is_ahead_by(&self, ahead: Duration) {
        self.disk.clock_is_ahead_by(ahead.as_millis() as i64).expect("set");
    }

    async fn say(&self, text: &str) {
        self.sql.batch_execute(text).await.expect(text);
    }

    async fn says_yes(&self, question: &str) -> bool {
        self.sql.query_one(question, &[]).await.expect(question).get(0)
    }
}
