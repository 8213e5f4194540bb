use std::time::{Duration, Instant};

use tokio_postgres::Client;
use trunkline_embedded::Cluster;
use trunkline_programs::machine;

use crate::{
    Failure,
    place::Place,
    work::{Kind, Work},
    workloads::Workload,
};

const TABLES: &str = include_str!("tables.sql");

pub struct Server {
    /// The private server, with default durability; `None` if a URL was named.
    cluster: Option<Cluster>,
    pub place: Place,
    admin: Client,
    /// The connection to the fresh database.
    client: Client,
    /// The last id that was assigned to a turn.
    used: i64,
}

impl Server {
    pub async fn start(url: Option<&str>) -> Result<Self, Failure> {
        let cluster = url.is_none().then(|| Cluster::temporary().start()).transpose()?;
        let of_cluster = cluster.as_ref().map(|cluster| cluster.url("postgres"));
        let place = Place::of(url.or(of_cluster.as_deref()).ok_or("no server")?)?;
        let admin = place.connect().await?;
        let database = format!("trunkline_drivers_{}", std::process::id());
        admin.batch_execute(&format!("create database {database}")).await?;
        let place = Place { database, ..place };
        let client = place.connect().await?;
        client.batch_execute(TABLES).await?;
        admin.batch_execute("checkpoint").await?;
        Ok(Self { cluster, place, admin, client, used: 0 })
    }

    /// Describes the server and the machine in one line.
    pub async fn described(&self) -> Result<String, Failure> {
        const SETTINGS: &str = "select 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1)
            || ', fsync ' || current_setting('fsync') || ', synchronous_commit ' || current_setting('synchronous_commit')";
        let settings: String = self.client.query_one(SETTINGS, &[]).await?.try_get(0)?;
        Ok(format!("{settings}; {}; {:.0} durable writes of 8 KiB a second", machine::described(), self.fsyncs()?))
    }

    /// Measures how many 8 KiB writes per second the disk makes durable.
    fn fsyncs(&self) -> Result<f64, Failure> {
        use std::io::{Seek, Write};
        let folder = self.cluster.as_ref().map_or_else(std::env::temp_dir, Cluster::data_dir);
        let path = folder.join(format!("trunkline-fsync-{}", std::process::id()));
        let mut file = std::fs::File::create(&path)?;
        let (began, mut count) = (Instant::now(), 0);
        while count < 5 || (count < 2000 && began.elapsed() < Duration::from_secs(1)) {
            file.rewind()?;
            file.write_all(&[0; 8192])?;
            file.sync_data()?;
            count += 1;
        }
        let rate = f64::from(count) / began.elapsed().as_secs_f64();
        std::fs::remove_file(path)?;
        Ok(rate)
    }

    /// Removes the rows of earlier turns.
    pub async fn clear(&mut self) -> Result<(), Failure> {
        self.used = 0;
        Ok(self.client.batch_execute("truncate person, entry; update account set balance = 1000").await?)
    }

    /// Fills the table with rows, and analyzes it. On an empty table the planner would choose a
    /// sequential scan. The ways that run first would then keep that plan.
    pub async fn populate(&mut self) -> Result<(), Failure> {
        const POPULATE: &str = "insert into person (id, name, email, age, score, active)
            select -k, 'there', 'there@example.org', 1, 0.5, false from generate_series(1, 50000) as k;
            analyze person";
        self.clear().await?;
        Ok(self.client.batch_execute(POPULATE).await?)
    }

    /// Returns the work of the next turn, and inserts the rows that this work needs. Neither is
    /// part of the measured time.
    pub async fn next<'a>(&mut self, workload: &Workload, people: &'a [crate::Person]) -> Result<Work<'a>, Failure> {
        const THERE: &str = "insert into person (id, name, email, age, score, active)
            select $1::int8 + k, 'before', 'before@example.org', 1, 0.5, false from generate_series(0, $2::int8 - 1) as k
            where $3::int8 = 0 or k % $3 <> 0";
        let first = self.used + 1;
        let work = Work { kind: workload.kind, count: workload.count, first, people };
        self.used = work.end();
        let (rows, missing) = workload.there;
        if rows > 0 {
            self.client.execute(THERE, &[&first, &(rows as i64), &(missing as i64)]).await?;
        }
        Ok(work)
    }

    /// Describes the database after a turn by numbers. The numbers are equal for two turns with the
    /// same effect.
    pub async fn effect(&self, kind: Kind) -> Result<String, Failure> {
        const EFFECT: &str =
            "select concat_ws(' ', count(*), sum(age), sum(length(name)), sum(length(email)), sum(score),
            count(*) filter (where active), (select sum(id * balance) from account),
            (select sum(n) + sum(length(word)) from entry)) from person";
        if !kind.writes() {
            return Ok(String::new());
        }
        Ok(self.client.query_one(EFFECT, &[]).await?.try_get(0)?)
    }

    /// Sets whether new sessions wait for the disk when they commit.
    pub async fn wait_for_disk(&self, wait: bool) -> Result<(), Failure> {
        let setting = if wait { "reset synchronous_commit" } else { "set synchronous_commit = off" };
        Ok(self.client.batch_execute(&format!("alter database {} {setting}", self.place.database)).await?)
    }

    pub async fn end(self) -> Result<(), Failure> {
        let Self { admin, client, place, .. } = self;
        drop(client);
        Ok(admin.batch_execute(&format!("drop database {} with (force)", place.database)).await?)
    }
}
