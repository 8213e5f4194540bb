//! A PostgreSQL with TLS, on its own address of the loopback network.

use std::{
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    sync::atomic::{AtomicU32, Ordering},
};

use trunkline_embedded::{Cluster, Stop};

use super::authority::Authority;
use crate::fixture::connect;

/// The serial number of the server's certificate.
pub const SERIAL: u64 = 4242;

/// The access rules: each database requires a certificate in a different way, or none.
const ACCESS: &str = "\
local all all trust
hostssl postgres all all cert
hostssl verified all all trust clientcert=verify-full
hostssl template1 all all trust
";

pub struct Server {
    cluster: Cluster,
    version: u32,
    address: String,
}

impl Server {
    pub async fn start(authority: &Authority) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = (std::process::id() << 1) + NUMBER.fetch_add(1, Ordering::Relaxed);
        let [_, a, b, c] = (number & 0x3f_ffff).to_be_bytes();
        let address = format!("127.{}.{b}.{c}", a + 64);
        let start = || Cluster::temporary().setting("fsync", "off").start();
        let cluster = tokio::task::spawn_blocking(start).await.expect("no panic").expect("a private PostgreSQL starts");
        let (certificate, key) = authority.issue_to_server(SERIAL);
        for (name, text) in
            [("tls.crt", &*certificate), ("tls.key", &key), ("ca.crt", &authority.pem()), ("pg_hba.conf", ACCESS)]
        {
            let path = cluster.data_dir().join(name);
            std::fs::write(&path, text).expect("written");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("the file is the test's");
            let owner = std::fs::metadata(cluster.data_dir()).expect("the folder exists");
            chown(&path, Some(owner.uid()), Some(owner.gid())).expect("the file goes to the server's user");
        }
        let admin = connect(&cluster.url("postgres")).await;
        admin.batch_execute("create database verified").await.expect("created");
        for setting in [
            &format!("listen_addresses = '{address}'"),
            "ssl_cert_file = 'tls.crt'",
            "ssl_key_file = 'tls.key'",
            "ssl_ca_file = 'ca.crt'",
            "ssl = on",
        ] {
            admin.batch_execute(&format!("alter system set {setting}")).await.expect("set");
        }
        let version = "select current_setting('server_version_num')::int / 10000";
        let version: i32 = admin.query_one(version, &[]).await.expect("answered").get(0);
        drop(admin);
        let restart = move || cluster.restart(Stop::Fast).map(|()| cluster);
        let cluster = tokio::task::spawn_blocking(restart).await.expect("no panic").expect("it starts with TLS");
        Self { cluster, version: version.unsigned_abs(), address }
    }

    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Returns the major version of the server and of its psql.
    pub fn version(&self) -> u32 {
        self.version
    }

    pub fn user(&self) -> &'static str {
        self.cluster.user()
    }

    /// Returns the host, the port and the user as settings.
    pub fn place(&self) -> String {
        let (address, port, user) = (&self.address, self.cluster.port(), self.user());
        format!("host=localhost hostaddr={address} port={port} user={user} connect_timeout=10")
    }
}
