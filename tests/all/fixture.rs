//! One throwaway cluster a run, a fresh database a test.

use std::{
    future::Future,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};
use trunkline::Db;
use trunkline_embedded::Cluster;

/// The cluster of this run. It ends with the process: its watchdog sees to that.
pub fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        // A crash of the machine is not among the tests, and a slow disk should not decide how they end.
        Cluster::temporary()
            .setting("fsync", "off")
            .setting("max_prepared_transactions", "10")
            .setting("max_connections", "400")
            .start()
            .expect("a private PostgreSQL starts")
    })
}

/// A plain connection, beside the library.
pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the cluster takes connections");
    tokio::spawn(connection);
    client
}

/// The address of a fresh database with the schema in it.
pub async fn database() -> String {
    static TEMPLATE: OnceCell<()> = OnceCell::const_new();
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let admin = connect(&cluster().url("postgres")).await;
    TEMPLATE
        .get_or_init(|| async {
            admin.batch_execute("create database migrated").await.expect("a database is created");
            let db = Db::connect(&cluster().url("migrated")).await.expect("the template takes connections");
            db.migrate().await.expect("the schema is created");
            drop(db);
            let free = "select count(*) from pg_stat_activity where datname = 'migrated'";
            eventually("the template is free", || async {
                admin.query_one(free, &[]).await.expect("activity is visible").get::<_, i64>(0) == 0
            })
            .await;
        })
        .await;
    let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    admin.batch_execute(&format!("create database {name} template migrated")).await.expect("the template is cloned");
    cluster().url(&name)
}

/// A library handle on a fresh database.
pub async fn db() -> Db {
    Db::connect(&database().await).await.expect("a fresh database takes connections")
}

/// Asks until it is so; fails after twenty seconds.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so().await {
        assert!(Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
