//! Runs etcd and three nodes in a private folder.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{net::TcpStream, time::sleep};
use tokio_postgres::{Client, NoTls};

use crate::{
    Failure, http,
    node::{Node, Plan, free_port},
    process::{self, Watchdog},
    programs::Programs,
};

pub const NODES: usize = 3;
/// The pause between two probes of a state that takes seconds to reach.
const LOOK: Duration = Duration::from_millis(100);
/// The time limit for a node to start, or to catch up after an outage.
const PATIENCE: Duration = Duration::from_secs(180);

pub struct Cluster {
    pub nodes: Vec<Node>,
    pub folder: PathBuf,
    programs: Programs,
    password: String,
    etcd: SocketAddr,
    strict: bool,
    /// The etcd process. The watchdog kills it together with all other processes.
    _etcd: Child,
    _watchdog: Watchdog,
}

/// The roles that Patroni reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roles {
    pub primary: usize,
    /// The synchronous standby.
    pub sync: usize,
}

impl Cluster {
    /// Starts all three nodes, and returns once one of them is the synchronous standby. With
    /// `keep`, the folder is not removed at the end.
    pub async fn start(programs: Programs, strict: bool, keep: bool) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("tl-cluster-{}", std::process::id()));
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        let watchdog = Watchdog::start(&folder, keep)?;
        let etcd = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let child = start_etcd(&programs, &folder, etcd).await?;
        let password = uuid::Uuid::new_v4().simple().to_string();
        let mut cluster =
            Self { nodes: Vec::new(), folder, programs, password, etcd, strict, _etcd: child, _watchdog: watchdog };
        for number in 1..=NODES {
            let node = Node::new(number, &cluster.plan()).await?;
            cluster.nodes.push(node);
        }
        // The nodes are started one by one, so that the first node becomes the primary and the
        // other nodes copy it.
        for number in 0..NODES {
            cluster.restart(number)?;
            cluster.until(&format!("node {} runs", number + 1), |members| members.len() == number + 1).await?;
        }
        cluster.until_whole().await?;
        Ok(cluster)
    }

    fn plan(&self) -> Plan<'_> {
        let Self { programs, folder, password, etcd, strict, .. } = self;
        Plan { programs, folder, password, etcd: *etcd, strict: *strict }
    }

    /// Starts a node that was killed.
    pub fn restart(&mut self, number: usize) -> Result<(), Failure> {
        let mut nodes = std::mem::take(&mut self.nodes);
        let started = nodes[number].start(&self.plan());
        self.nodes = nodes;
        started
    }

    /// Returns the clients' connection string, which names all nodes.
    pub fn url(&self, database: &str) -> String {
        let hosts = ["127.0.0.1"; NODES].join(",");
        let ports: Vec<String> = self.nodes.iter().map(|node| node.port.to_string()).collect();
        format!(
            "host={hosts} port={} user=postgres password={} dbname={database} target_session_attrs=read-write",
            ports.join(","),
            self.password
        )
    }

    /// Returns a connection string of one node, whether it is the primary or not.
    pub fn url_of(&self, number: usize, database: &str) -> String {
        let Self { nodes, password, .. } = self;
        format!(
            "host=127.0.0.1 port={} user=postgres password={password} dbname={database} connect_timeout=1",
            nodes[number].port
        )
    }

    /// Returns all members, according to the first node that answers.
    async fn members(&self) -> Vec<Value> {
        for node in &self.nodes {
            if let Ok(Value::Object(mut said)) = http::get(node.rest, "/cluster").await
                && let Some(Value::Array(members)) = said.remove("members")
            {
                return members;
            }
        }
        Vec::new()
    }

    async fn until(&self, wanted: &str, is_so: impl Fn(&[Value]) -> bool) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            let members = self.members().await;
            if is_so(&members) {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return Err(format!(
                    "{wanted}: not in {PATIENCE:?}: {members:?}; logs are in {}",
                    self.folder.display()
                )
                .into());
            }
            sleep(LOOK).await;
        }
    }

    /// Waits for a primary, a synchronous standby, and a second standby that streams.
    pub async fn until_whole(&self) -> Result<Roles, Failure> {
        let role = |member: &Value, role: &str| member["role"] == role;
        let streams =
            |member: &Value| member["state"] == "streaming" || role(member, "leader") && member["state"] == "running";
        let whole = |members: &[Value]| {
            members.len() == NODES
                && members.iter().all(streams)
                && ["leader", "sync_standby", "replica"]
                    .iter()
                    .all(|name| members.iter().any(|member| role(member, name)))
        };
        self.until("the cluster is whole", whole).await?;
        let members = self.members().await;
        let at = |name: &str| {
            let found = members.iter().find(|member| role(member, name));
            self.nodes.iter().position(|node| found.is_some_and(|member| member["name"] == *node.name))
        };
        match (at("leader"), at("sync_standby")) {
            (Some(primary), Some(sync)) => Ok(Roles { primary, sync }),
            // Tries again, because the roles changed between the two requests.
            _ => Box::pin(self.until_whole()).await,
        }
    }

    /// Waits until a different standby is the synchronous one.
    pub async fn until_sync_is_not(&self, number: usize) -> Result<(), Failure> {
        let name = self.nodes[number].name.as_str();
        let another =
            |members: &[Value]| members.iter().any(|member| member["role"] == "sync_standby" && member["name"] != name);
        self.until("another standby is synchronous", another).await
    }

    /// Swaps the roles of the primary and the synchronous standby in an orderly way. Returns once
    /// Patroni reports that the switchover is done.
    pub async fn switch_over(&self, roles: &Roles) -> Result<(), Failure> {
        let body = json!({"leader": self.nodes[roles.primary].name, "candidate": self.nodes[roles.sync].name});
        let (status, said) = http::post(self.nodes[roles.primary].rest, "/switchover", &self.password, &body).await?;
        match status {
            200 | 202 => Ok(()),
            _ => Err(format!("the switchover was refused ({status}): {said}").into()),
        }
    }

    pub async fn connect(&self, number: usize, database: &str) -> Result<Client, Failure> {
        let (client, connection) = tokio_postgres::connect(&self.url_of(number, database), NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    pub fn versions(&self) -> String {
        self.programs.versions()
    }
}

async fn start_etcd(programs: &Programs, folder: &Path, at: SocketAddr) -> Result<Child, Failure> {
    let (client, peer) = (format!("http://{at}"), format!("http://127.0.0.1:{}", free_port()?));
    let mut command = Command::new(&programs.etcd);
    command.args(["--name", "etcd", "--data-dir", "etcd", "--log-level", "error"]);
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("etcd={peer}")]);
    let child = process::start(command, folder, "etcd")?;
    let began = Instant::now();
    while TcpStream::connect(at).await.is_err() {
        if began.elapsed() > PATIENCE {
            return Err(format!("etcd does not start: see {}", folder.join("etcd.log").display()).into());
        }
        sleep(LOOK).await;
    }
    Ok(child)
}
