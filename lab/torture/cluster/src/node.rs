//! One machine of the cluster: Patroni, PostgreSQL, and the two proxies that connect them to the
//! other machines.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command},
};

use serde_json::json;

use crate::{
    Failure,
    process::{self, Signal, family, postmaster, signal},
    programs::Programs,
    proxy::Proxy,
};

/// The settings that all nodes share.
pub struct Plan<'a> {
    pub programs: &'a Programs,
    pub folder: &'a Path,
    pub password: &'a str,
    pub etcd: SocketAddr,
    /// Set if the primary acknowledges no commit while there is no synchronous standby.
    pub strict: bool,
}

pub struct Node {
    pub name: String,
    pub port: u16,
    pub rest: u16,
    /// The proxy between Patroni and etcd.
    pub to_etcd: Proxy,
    /// The proxy between the other nodes and this node's PostgreSQL.
    pub from_others: Proxy,
    data: PathBuf,
    config: PathBuf,
    patroni: Option<Child>,
}

/// Returns a port that is free now, and very likely still free a moment later.
pub fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

impl Node {
    pub async fn new(number: usize, plan: &Plan<'_>) -> Result<Self, Failure> {
        let name = format!("node{number}");
        let folder = plan.folder.join(&name);
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        let (port, rest) = (free_port()?, free_port()?);
        let to_etcd = Proxy::start(plan.etcd).await?;
        let from_others = Proxy::start(SocketAddr::from(([127, 0, 0, 1], port))).await?;
        let (data, config) = (folder.join("data"), folder.join("patroni.yml"));
        let node = Self { name, port, rest, to_etcd, from_others, data, config, patroni: None };
        // Writes JSON into the YAML file, because every JSON document is also valid YAML.
        fs::write(&node.config, node.settings(&folder, plan).to_string())?;
        Ok(node)
    }

    fn settings(&self, folder: &Path, plan: &Plan) -> serde_json::Value {
        let role = |name: &str| json!({"username": name, "password": plan.password});
        let parameters = json!({
            "max_connections": 100, "wal_log_hints": "on", "wal_keep_size": "512MB", "shared_buffers": "64MB",
            "wal_sender_timeout": "3s", "wal_receiver_timeout": "3s", "max_wal_size": "256MB", "wal_retrieve_retry_interval": "500ms",
            "password_encryption": "scram-sha-256",
        });
        json!({
            "scope": "torture",
            "name": self.name,
            "log": {"level": "INFO"},
            "restapi": {
                "listen": format!("127.0.0.1:{}", self.rest),
                "connect_address": format!("127.0.0.1:{}", self.rest),
                "authentication": {"username": "operator", "password": plan.password},
            },
            // Without `use_proxies`, Patroni would get etcd's own address from etcd and bypass this
            // proxy.
            "etcd3": {"hosts": [format!("127.0.0.1:{}", self.to_etcd.port)], "use_proxies": true},
            "bootstrap": {
                // This is the shortest `ttl` that Patroni accepts. Patroni does not wait for a
                // crashed server to recover.
                "dcs": {
                    "ttl": 20, "loop_wait": 1, "retry_timeout": 8, "maximum_lag_on_failover": 1_048_576,
                    "primary_start_timeout": 0, "synchronous_mode": true, "synchronous_mode_strict": plan.strict,
                    "postgresql": {"use_pg_rewind": true, "use_slots": true, "parameters": parameters},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, {"auth-local": "trust"}, {"auth-host": "scram-sha-256"}, "data-checksums"],
            },
            "postgresql": {
                "listen": format!("127.0.0.1:{}", self.port),
                "connect_address": format!("127.0.0.1:{}", self.from_others.port),
                "use_unix_socket": true,
                "data_dir": self.data,
                "bin_dir": plan.programs.postgres,
                "pgpass": folder.join("pgpass"),
                "authentication": {"superuser": role("postgres"), "replication": role("replicator"), "rewind": role("rewinder")},
                "parameters": {"unix_socket_directories": folder},
                "pg_hba": [
                    "local all all trust",
                    "host all all 127.0.0.1/32 scram-sha-256",
                    "host replication all 127.0.0.1/32 scram-sha-256",
                ],
            },
        })
    }

    /// Starts Patroni, which starts PostgreSQL.
    pub fn start(&mut self, plan: &Plan) -> Result<(), Failure> {
        let mut command = Command::new(&plan.programs.patroni);
        command.arg(&self.config);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").env("HOME", plan.folder);
        // Prefers the libpq of this PostgreSQL, if it was unpacked into a folder. Otherwise its WAL
        // receiver would load the system's libpq, which may be too old for Patroni's settings.
        let libraries = plan.programs.postgres.join("../lib");
        if libraries.join("libpq.so.5").exists() {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        self.patroni = Some(process::start(command, plan.folder, &self.name)?);
        Ok(())
    }

    /// Returns the process ids of the server and its backends.
    pub fn server(&self) -> Vec<u32> {
        postmaster(&self.data).map(family).unwrap_or_default()
    }

    /// Returns the process ids of Patroni, the server, and all of their descendants.
    pub fn everything(&self) -> Vec<u32> {
        let patroni = self.patroni.as_ref().map(|child| family(child.id())).unwrap_or_default();
        [patroni, self.server()].concat()
    }

    /// Kills all processes of the node, as a power failure does.
    pub fn kill(&mut self) {
        // All processes are stopped first. Otherwise Patroni would restart the processes that the
        // next signal kills.
        signal(&self.everything(), Signal::STOP);
        signal(&self.everything(), Signal::KILL);
        if let Some(mut patroni) = self.patroni.take() {
            let _ = patroni.wait();
        }
    }
}
