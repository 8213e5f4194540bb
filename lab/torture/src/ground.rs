//! The server of a run, the proxy in front of it, and its tables.

use std::{path::PathBuf, time::Duration};

use tokio_postgres::{Client, NoTls};
use trunkline::{Db, Limits, Missed, Schedule, Settings};
use trunkline_disk::Disk;
use trunkline_embedded::{Cluster, DelayProxy};

use crate::{faults::Fault, history::now, plan};

/// The maximum number of connections, small enough for a fault to use them up.
const MAX_CONNECTIONS: &str = "110";
/// The faults that need a preloaded library between the server and the C library.
const OF_THE_MACHINE: [Fault; 3] = [Fault::SlowDisk, Fault::FullDisk, Fault::Clock];

pub struct Ground {
    pub cluster: Cluster,
    pub proxy: DelayProxy,
    /// The server's disk and clock, if a fault needs them and this machine supports them.
    pub disk: Option<Disk>,
    /// Faults that this machine cannot produce, each with the reason.
    pub skipped: Vec<(Fault, String)>,
}

impl Ground {
    /// Starts the server with the libraries that the faults need.
    pub async fn start(faults: &[Fault]) -> Result<Self, String> {
        let wants = |fault| faults.contains(&fault);
        let mut skipped = Vec::new();
        let disk = if OF_THE_MACHINE.into_iter().any(wants) {
            let made = target().and_then(|target| Disk::new(&target).map_err(|error| error.to_string()));
            made.map_err(|why| skipped.extend(OF_THE_MACHINE.map(|fault| (fault, why.clone())))).ok()
        } else {
            None
        };
        let cluster = Cluster::temporary()
            .setting("max_connections", MAX_CONNECTIONS)
            .setting("superuser_reserved_connections", "10")
            .setting("autovacuum_naptime", "5s")
            .setting("restart_after_crash", "on");
        let environment = disk.iter().flat_map(Disk::environment);
        let cluster = environment.fold(cluster, |cluster, (name, value)| cluster.env(name, value));
        let cluster = cluster.start().map_err(|error| format!("no server: {error}"))?;
        let proxy = DelayProxy::start("127.0.0.1:0", &cluster, Duration::ZERO);
        let proxy = proxy.map_err(|error| format!("no proxy: {error}"))?;
        let mut ground = Self { cluster, proxy, disk, skipped };
        ground.try_out().await?;
        Ok(ground)
    }

    /// Checks that the library has an effect, because the loader silently skips a library that it
    /// cannot load.
    async fn try_out(&mut self) -> Result<(), String> {
        let Some(disk) = &self.disk else { return Ok(()) };
        if !disk.is_under(self.cluster.pid().unwrap_or_default()).unwrap_or_default() {
            self.disk = None;
            let why = "the server does not load the library";
            self.skipped.extend(OF_THE_MACHINE.map(|fault| (fault, why.to_owned())));
            return Ok(());
        }
        let set = |ms| disk.clock_is_ahead_by(ms).map_err(|error| error.to_string());
        set(1_000_000)?;
        let client = self.client().await?;
        let text = "select extract(epoch from clock_timestamp())::float8";
        let row = client.query_one(text, &[]).await.map_err(|error| error.to_string())?;
        set(0)?;
        let ahead = row.get::<_, f64>(0) - now() as f64 / 1e6;
        if !(900.0..1100.0).contains(&ahead) {
            self.skipped.push((Fault::Clock, format!("the server's clock does not obey: {ahead} s ahead of 1000 s")));
        }
        Ok(())
    }

    /// Returns the processes' connection string. It goes through the proxy, with a role that is not
    /// a superuser.
    pub fn url(&self) -> String {
        format!("host=127.0.0.1 port={} user=torture dbname=postgres connect_timeout=5", self.proxy.addr().port())
    }

    /// Returns the same connection string as a URI.
    pub fn uri(&self) -> String {
        format!("postgresql://torture@127.0.0.1:{}/postgres", self.proxy.addr().port())
    }

    /// Returns the superuser's connection string, which bypasses the proxy.
    pub fn direct(&self) -> String {
        self.cluster.url("postgres")
    }

    pub async fn client(&self) -> Result<Client, String> {
        client(&self.direct()).await
    }

    /// Creates the role with which the processes connect.
    pub async fn enroll(&self) -> Result<Client, String> {
        let client = self.client().await?;
        let role = "create role torture login; grant create on database postgres to torture; grant all on schema public to torture";
        client.batch_execute(role).await.map_err(|error| format!("no role: {error}"))?;
        Ok(client)
    }

    /// Creates the library's schema, the queues and the ledger; returns the server's version.
    pub async fn furnish(&self) -> Result<String, String> {
        let client = self.enroll().await?;
        let db = Db::connect(&format!("{} user=torture", self.direct())).await.map_err(|error| error.to_string())?;
        db.migrate().await.map_err(|error| error.to_string())?;
        for name in plan::QUEUES {
            let settings = Settings::of::<String>().max_attempts(plan::MAX_ATTEMPTS).lease(plan::LEASE);
            let settings = match name {
                plan::LEAST => settings.priorities(plan::PRIORITIES).aging(Duration::from_secs(1)),
                plan::KEYED => settings.partitions(plan::LANES),
                plan::UNIQUE => settings.uniqueness(true),
                plan::RANKED => settings.priorities(plan::PRIORITIES).aging(plan::AGING),
                _ => settings,
            };
            db.create_queue(name, &settings).await.map_err(|error| error.to_string())?;
        }
        let limits = [
            (plan::CAPPED, Limits::none().max_leased(plan::MAX_LEASED)),
            (plan::METERED, Limits::none().per_second(plan::PER_SECOND).burst(plan::BURST)),
        ];
        for (name, limits) in limits {
            db.limit_queue(name, &limits).await.map_err(|error| error.to_string())?;
        }
        schedules(&db).await.map_err(|error| error.to_string())?;
        client.batch_execute("set role torture").await.map_err(|error| error.to_string())?;
        client.batch_execute(plan::LEDGER).await.map_err(|error| error.to_string())?;
        let row = client.query_one("select current_setting('server_version')", &[]).await;
        row.map(|row| row.get(0)).map_err(|error| error.to_string())
    }

    /// Replaces texts in a function that all queues share, in order to add a defect.
    pub async fn replace_shared(&self, function: &str, texts: &[(&str, &str)]) -> Result<(), String> {
        let client = self.client().await?;
        let text = "select pg_get_functiondef(p.oid) from pg_proc p where p.pronamespace = 'trunkline'::regnamespace and p.proname = $1";
        let row = client.query_one(text, &[&function]).await.map_err(|error| format!("{function}: {error}"))?;
        let mut definition: String = row.get(0);
        for (from, to) in texts {
            if !definition.contains(from) {
                return Err(format!("the function {function} has no {from:?}"));
            }
            definition = definition.replace(from, to);
        }
        client.batch_execute(&definition).await.map_err(|error| format!("{function}: {error}"))
    }

    /// Replaces texts in a function of every queue, of any kind, in order to add a defect.
    pub async fn replace(&self, template: &str, texts: &[(&str, &str)]) -> Result<(), String> {
        let client = self.client().await?;
        for (from, to) in texts {
            let text = "update trunkline.template set text = replace(text, $2, $3) where name = $1 and position($2 in text) > 0";
            let changed = client.execute(text, &[&template, from, to]).await.map_err(|error| error.to_string())?;
            if changed == 0 {
                return Err(format!("no template {template} has {from:?}"));
            }
        }
        let text = "select trunkline.install_queue(name) from trunkline.queue";
        client.execute(text, &[]).await.map(drop).map_err(|error| error.to_string())
    }
}

/// Creates the schedules. Their missed ticks are made later, so no tick may be missing at the end.
async fn schedules(db: &Db) -> trunkline::Result<()> {
    db.create_queue(plan::TICKS, &Settings::of::<String>()).await?;
    let queue = db.queue::<String>(plan::TICKS).await?;
    for nr in 0..plan::SCHEDULES {
        let expression = if nr % 2 == 0 { "every second" } else { "* * * * * *" };
        let schedule = Schedule::new(plan::schedule(nr), expression).missed(Missed::Each);
        queue.schedule(&schedule, &nr.to_string()).await?;
    }
    Ok(())
}

/// Returns the target folder that contains this program.
fn target() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| format!("no path to this program: {error}"))?;
    program.ancestors().nth(2).map(PathBuf::from).ok_or("this program lies in no target folder".to_owned())
}

pub async fn client(url: &str) -> Result<Client, String> {
    let connected = tokio::time::timeout(Duration::from_secs(10), tokio_postgres::connect(url, NoTls)).await;
    let (client, connection) = connected
        .map_err(|_| "no connection in time".to_owned())?
        .map_err(|error| format!("no connection: {error}"))?;
    tokio::spawn(async move {
        let _ = connection.await; // the client receives the error
    });
    Ok(client)
}
