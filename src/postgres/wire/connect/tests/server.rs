//! A private PostgreSQL server that listens on the network and supports TLS. Each role must use a
//! different authentication method.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
};

use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};
use trunkline_embedded::{Cluster, Stop};

const ACCESS: &str = "local all all trust
host all md5 all md5
host all scram all scram-sha-256
host all clear all password
hostssl all encrypted all trust
host all trunkline,reader all trust";

const ROLES: &str = "set password_encryption = 'md5';
    create role md5 login password 'pencil';
    set password_encryption = 'scram-sha-256';
    create role scram login password 'pencil';
    create role clear login password 'pencil';
    create role encrypted login;
    create role reader login;
    alter role reader set default_transaction_read_only = on";

pub struct Server {
    cluster: Cluster,
    pub port: u16,
}

impl Server {
    pub fn root(&self) -> PathBuf {
        self.cluster.data_dir().join("server.crt")
    }

    pub fn socket(&self) -> PathBuf {
        self.cluster.socket_dir().join(format!(".s.PGSQL.{}", self.port))
    }

    pub fn socket_dir(&self) -> &Path {
        self.cluster.socket_dir()
    }

    pub fn on_socket(&self) -> String {
        format!("host={} port={} user=trunkline dbname=postgres", self.socket_dir().display(), self.port)
    }

    pub async fn observer(&self) -> Client {
        client(&self.on_socket()).await
    }
}

/// Returns the server that all tests share. A watchdog stops the server when the process ends.
pub async fn server() -> &'static Server {
    static SERVER: OnceCell<Server> = OnceCell::const_new();
    SERVER.get_or_init(start).await
}

async fn start() -> Server {
    let cluster = Cluster::temporary().setting("fsync", "off").start().expect("a private PostgreSQL starts");
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate is made");
    let port = unused_port();
    let admin = client(&cluster.url("postgres")).await;
    for (file, text) in [
        ("server.crt", signed.cert.pem()),
        ("server.key", signed.signing_key.serialize_pem()),
        ("pg_hba.conf", ACCESS.to_owned()),
    ] {
        // The server itself writes the copy and owns it, so that other users cannot read the key.
        let copy =
            format!("copy (select unnest(string_to_array('{text}', e'\\n'))) to program 'umask 077; cat > {file}'");
        admin.batch_execute(&copy).await.expect(file);
    }
    admin.batch_execute(ROLES).await.expect("roles are created");
    for setting in ["ssl = on", "listen_addresses = '127.0.0.1'", &format!("port = {port}")] {
        admin.batch_execute(&format!("alter system set {setting}")).await.expect(setting);
    }
    drop(admin);
    let cluster = tokio::task::spawn_blocking(|| cluster.restart(Stop::Fast).map(|()| cluster)).await;
    Server { cluster: cluster.expect("no panic").expect("the server has TLS and a free port"), port }
}

/// Returns a port that no server uses, and that the system will not assign again soon.
pub fn unused_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port is free").port()
}

async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the cluster takes connections");
    tokio::spawn(connection);
    client
}
