//! The server on which everything is measured, and its description.

mod described;
mod private;
mod standby;

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    str::FromStr,
    time::{Duration, Instant},
};

use tokio_postgres::{Client, Config, NoTls, config::Host};
use trunkline_embedded::{Cluster, DelayProxy, Upstream};

use self::{
    described::server,
    private::private,
    standby::{standby, synchronous},
};
use crate::{
    Failure,
    disk::{self, SlowDisk},
    fsyncs, machine,
    results::Server,
    wanted::Wanted,
};

/// The server, its address, and a session for administration.
pub struct Ground {
    /// The standby of the private cluster, or the reason why there is none. It ends before the
    /// cluster does.
    pub standby: Result<Cluster, String>,
    /// The private cluster; `None` if another server was named.
    cluster: Option<Cluster>,
    address: Address,
    admin: Client,
    pub server: Server,
    pub disk: SlowDisk,
    /// More servers like the private one, each with a session. Their number is the largest that a
    /// row has needed so far.
    others: Vec<(Cluster, Client)>,
    settings: Vec<String>,
    programs: Option<PathBuf>,
    counts_statements: bool,
    /// Set if contenders connect by TCP even if the server has a socket.
    pub tcp: bool,
    made: u32,
}

/// The application name of the runner's own sessions, which distinguishes them from the
/// contender's.
const OURS: &str = "trunkline-bench";
/// The time that a contender's sessions may take to end after the contender has exited.
const ENDING: Duration = Duration::from_secs(10);
/// The maximum age of the statistics that PostgreSQL 14 returns. Newer changes may be missing from
/// them.
const COLLECTOR: Duration = Duration::from_millis(600);

/// Instructions for using a private cluster, for errors.
const NO_SERVER: &str = "leave out --database-url, and unset PG_CONNECTION_STRING, PGHOST and PGPORT";

/// The address of a server.
#[derive(Debug, Clone)]
pub struct Address {
    /// A host name, or the folder of a socket.
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
}

impl Address {
    pub fn url(&self, database: &str) -> String {
        let Self { host, port, user, password } = self;
        let secret = if password.is_empty() { String::new() } else { format!(":{password}") };
        match host.starts_with('/') {
            true => format!("postgresql://{user}{secret}@/{database}?host={host}&port={port}"),
            false => format!("postgresql://{user}{secret}@{host}:{port}/{database}"),
        }
    }

    /// Returns the address of a proxy that delays the traffic to the server, and the proxy, which
    /// runs until it is dropped.
    pub fn delayed(&self, milliseconds: f64) -> Result<(Self, DelayProxy), Failure> {
        let upstream = format!("{}:{}", self.host, self.port).parse::<Upstream>()?;
        let delay = Duration::try_from_secs_f64(milliseconds / 1000.0)?;
        let proxy = DelayProxy::start("127.0.0.1:0", upstream, delay)?;
        let far = Self { host: "127.0.0.1".to_owned(), port: proxy.addr().port(), ..self.clone() };
        Ok((far, proxy))
    }
}

impl Ground {
    /// Starts a private cluster with default durability and the given settings, or connects to the
    /// server that the URL names.
    pub async fn start(where_to: &Wanted) -> Result<Self, Failure> {
        let Wanted { url, settings, programs, tcp, .. } = where_to;
        let disk = disk::wanted(where_to);
        let (cluster, address) = match url.as_deref() {
            None => {
                let cluster = private(settings, programs.as_deref(), &disk)?;
                let host =
                    cluster.socket_dir().to_str().ok_or("the cluster's folder has a name that is not text")?.to_owned();
                let address =
                    Address { host, port: cluster.port(), user: cluster.user().to_owned(), password: String::new() };
                (Some(cluster), address)
            }
            Some(_) if !settings.is_empty() => {
                return Err(format!("--setting is for the private cluster; {NO_SERVER}").into());
            }
            Some(_) if programs.is_some() => {
                return Err(format!("--server-bin is for the private cluster; {NO_SERVER}").into());
            }
            Some(url) => (None, address(url)?),
        };
        let standby = match &cluster {
            Some(cluster) if where_to.standby => Ok(standby(cluster, settings)?),
            Some(_) => Err("this server was started without a standby".to_owned()),
            None => Err(format!("only the private cluster has a standby; {NO_SERVER}")),
        };
        let maintenance = url.as_deref().map_or(Ok(None), database_of)?;
        let admin = connect(&address.url(maintenance.as_deref().unwrap_or("postgres"))).await?;
        if standby.is_ok() {
            synchronous(&admin).await?;
        }
        let server = server(&admin, *tcp || !address.host.starts_with('/')).await?;
        let disk = disk::proven(disk, cluster.as_ref(), &server.fsync);
        let preloaded: String = admin.query_one("show shared_preload_libraries", &[]).await?.get(0);
        let counts_statements = preloaded.contains("pg_stat_statements");
        if counts_statements {
            admin.batch_execute("create extension if not exists pg_stat_statements").await?;
        }
        Ok(Self {
            standby,
            cluster,
            address,
            admin,
            server,
            disk,
            others: Vec::new(),
            settings: settings.clone(),
            programs: programs.clone(),
            counts_statements,
            tcp: *tcp,
            made: 0,
        })
    }

    /// Creates a fresh, empty database on each of `servers` servers, or on one if `servers` is 0.
    /// Counts the database's statements if that is requested and possible.
    pub async fn database(&mut self, statements: bool, servers: usize) -> Result<Database, Failure> {
        self.made += 1;
        let name = format!("trunkline_bench_{}_{}", std::process::id(), self.made);
        self.admin.batch_execute(&format!("create database {name}")).await?;
        let counts_statements = statements && self.counts_statements;
        if counts_statements {
            self.admin.batch_execute(&format!("alter database {name} set pg_stat_statements.track = 'top'")).await?;
        }
        // Without this checkpoint, the writes of one row would slow down the next row.
        self.admin.batch_execute("checkpoint").await?;
        let client = connect(&self.address.url(&name)).await?;
        if counts_statements {
            // Excludes the runner's own queries from the counts.
            client.batch_execute("set pg_stat_statements.track = 'none'").await?;
        }
        let mut stripes: Vec<String> = (servers > 0).then(|| self.address.url(&name)).into_iter().collect();
        for at in 1..servers {
            if self.others.len() < at {
                let cluster = private(&self.settings, self.programs.as_deref(), &self.disk)?;
                let admin = connect(&cluster.url("postgres")).await?;
                self.others.push((cluster, admin));
            }
            let (cluster, admin) = &self.others[at - 1];
            admin.batch_execute(&format!("create database {name}")).await?;
            admin.batch_execute("checkpoint").await?;
            stripes.push(cluster.url(&name));
        }
        Ok(Database { name, address: self.address.clone(), client, stripes, counts_statements })
    }

    pub async fn drop(&self, database: Database) -> Result<(), Failure> {
        let name = database.name.clone();
        drop(database);
        for (_, admin) in &self.others {
            admin.batch_execute(&format!("drop database if exists {name} with (force)")).await?;
        }
        // Also ends sessions of killed contenders, which may still be open.
        Ok(self.admin.batch_execute(&format!("drop database if exists {name} with (force)")).await?)
    }

    /// Reads the server's counters.
    pub async fn counters(&self, database: &Database) -> Result<Counters, Failure> {
        const HERE: &str = "select (pg_current_wal_insert_lsn() - '0/0')::int8 as wal,
            pg_snapshot_xmax(pg_current_snapshot())::text::int8 as xid,
            (select coalesce(sum(n_dead_tup), 0)::int8 from pg_stat_all_tables where relid >= 16384) as dead,
            pg_database_size(current_database()) as size";
        const CALLS: &str = "select coalesce(sum(calls), 0)::int8 from pg_stat_statements
            where dbid = (select oid from pg_database where datname = $1)";
        let here = database.client.query_one(HERE, &[]).await?;
        let statements = match database.counts_statements {
            true => Some(self.admin.query_one(CALLS, &[&database.name]).await?.get::<_, i64>(0) as u64),
            false => None,
        };
        let used = self.cluster.as_ref().and_then(Cluster::pid).and_then(machine::used);
        Ok(Counters {
            wal: here.get::<_, i64>("wal") as u64,
            xid: here.get::<_, i64>("xid") as u64,
            dead: here.get::<_, i64>("dead") as u64,
            size: here.get::<_, i64>("size") as u64,
            statements,
            used,
        })
    }

    /// Returns the number of dead tuples once every session of the contender has ended and thereby
    /// flushed its statistics. Returns `None` if a session stays open.
    pub async fn dead_at_the_end(&self, database: &Database) -> Result<Option<u64>, Failure> {
        const SESSIONS: &str = "select count(*) from pg_stat_activity
            where datname = current_database() and backend_type in ('client backend', 'parallel worker') and application_name <> $1";
        let patience = Instant::now() + ENDING;
        while database.client.query_one(SESSIONS, &[&OURS]).await?.get::<_, i64>(0) > 0 {
            if Instant::now() > patience {
                return Ok(None);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        match self.major() {
            15.. => database.client.batch_execute("select pg_stat_force_next_flush()").await?,
            _ => tokio::time::sleep(COLLECTOR).await,
        }
        Ok(Some(self.counters(database).await?.dead))
    }

    pub fn major(&self) -> u32 {
        self.server.version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or_default()
    }

    /// Opens another of the runner's own sessions in that database.
    pub async fn session(&self, database: &str) -> Result<Client, Failure> {
        connect(&self.address.url(database)).await
    }

    /// Measures the disk of the private cluster, or the disk of this machine if there is no such
    /// cluster.
    pub fn fsyncs(&self, time: Duration) -> Result<f64, Failure> {
        let folder = self.cluster.as_ref().map_or_else(std::env::temp_dir, Cluster::data_dir);
        Ok(fsyncs::per_second(&folder, time)?)
    }

    /// Returns the first section of the output of the server's own `pg_test_fsync`, if the program
    /// exists.
    pub fn test_fsync(&self) -> Option<String> {
        use std::io::{BufRead, BufReader};
        let cluster = self.cluster.as_ref()?;
        let file: PathBuf = cluster.data_dir().join("pg_test_fsync.out");
        let mut child = Command::new(cluster.binaries().dir().join("pg_test_fsync"))
            .args(["-s", "1", "-f"])
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let lines = BufReader::new(child.stdout.take()?).lines().map_while(Result::ok);
        // Stops after the first section, because the next ones compare sizes of writes, and take a
        // long time.
        let first: Vec<String> = lines
            .skip_while(|line| !line.contains("one 8kB write"))
            .take_while(|line| !line.contains("two 8kB writes"))
            .filter(|line| line.contains("ops/sec"))
            .map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
            .collect();
        let _ = child.kill().and_then(|()| child.wait().map(drop));
        let _ = std::fs::remove_file(file);
        (!first.is_empty()).then(|| first.join(", "))
    }
}

/// A fresh database, and the session that reads its counters.
pub struct Database {
    pub name: String,
    pub address: Address,
    pub client: Client,
    /// The database's connection string on each server, if a row requested several servers.
    pub stripes: Vec<String>,
    counts_statements: bool,
}

impl Database {
    /// Opens another session, which listens to the queue `bench` until the session ends.
    pub async fn sleep(&self) -> Result<Client, Failure> {
        let sleeper = connect(&self.address.url(&self.name)).await?;
        sleeper.batch_execute("select trunkline.listen('bench')").await?;
        Ok(sleeper)
    }

    /// Opens another session, which holds a snapshot until the session ends.
    pub async fn hold_snapshot(&self) -> Result<Client, Failure> {
        let holder = connect(&self.address.url(&self.name)).await?;
        holder.batch_execute("begin isolation level repeatable read; select 1").await?;
        Ok(holder)
    }
}

/// Counters of the server. The difference between two readings is what was used between them.
#[derive(Debug, Clone, Copy)]
pub struct Counters {
    pub wal: u64,
    /// The next transaction id. Two readings differ by the number of transactions that wrote.
    pub xid: u64,
    pub dead: u64,
    pub size: u64,
    /// The number of statements, if they are counted.
    pub statements: Option<u64>,
    /// The resources that the private cluster's processes have used.
    pub used: Option<machine::Used>,
}

/// Returns the database that a URL names, if any.
fn database_of(url: &str) -> Result<Option<String>, Failure> {
    Ok(Config::from_str(url)?.get_dbname().map(str::to_owned))
}

fn address(url: &str) -> Result<Address, Failure> {
    let config = Config::from_str(url)?;
    let host = match config.get_hosts() {
        [Host::Tcp(name)] => name.clone(),
        #[cfg(unix)]
        [Host::Unix(folder)] => folder.to_string_lossy().into_owned(),
        _ => return Err("the URL must name one host".into()),
    };
    Ok(Address {
        host,
        port: config.get_ports().first().copied().unwrap_or(5432),
        user: config.get_user().unwrap_or("postgres").to_owned(),
        password: config.get_password().map(|secret| String::from_utf8_lossy(secret).into_owned()).unwrap_or_default(),
    })
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(&format!("set application_name = '{OURS}'")).await?;
    Ok(client)
}
