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

/// Who runs the library: the superuser, or with `TRUNKLINE_TEST_ROLE=ordinary` a role that was given CREATE on its database, and no more.
pub fn user() -> &'static str {
    match std::env::var("TRUNKLINE_TEST_ROLE").as_deref() {
        Err(_) => cluster().user(),
        Ok("ordinary") => "ordinary",
        Ok(other) => panic!("TRUNKLINE_TEST_ROLE is {other:?}: set it to ordinary, or not at all"),
    }
}

/// The address of a database as another role.
pub fn of_role(url: &str, role: &str) -> String {
    let words = url.split_whitespace().filter(|word| !word.starts_with("user="));
    words.chain([format!("user={role}").as_str()]).collect::<Vec<_>>().join(" ")
}

/// The address of the same database, as the same role, by another way to the server.
pub fn through(url: &str, way: &str) -> String {
    let same = url.split_whitespace().filter(|word| word.starts_with("user=") || word.starts_with("dbname="));
    [way].into_iter().chain(same).collect::<Vec<_>>().join(" ")
}

/// A plain connection for what only a superuser may do, whoever runs the library.
pub async fn superuser(url: &str) -> Client {
    connect(&of_role(url, cluster().user())).await
}

/// The address of a new database, for whoever runs the library.
async fn create(name: &str, template: &str) -> String {
    let admin = connect(&cluster().url("postgres")).await;
    admin.batch_execute(&format!("create database {name} template {template}")).await.expect("a database is created");
    if user() != cluster().user() {
        admin.batch_execute(&format!("grant create on database {name} to {}", user())).await.expect("granted");
    }
    of_role(&cluster().url(name), user())
}

/// The roles are there before the first database.
async fn roles() {
    static ROLES: OnceCell<()> = OnceCell::const_new();
    let create = async || {
        if user() != cluster().user() {
            let admin = connect(&cluster().url("postgres")).await;
            admin.batch_execute(&format!("create role {} login", user())).await.expect("a role is created");
        }
    };
    ROLES.get_or_init(create).await;
}

/// The address of a fresh database without anything in it.
pub async fn empty_database(name: &str) -> String {
    roles().await;
    create(name, "template1").await
}

/// The address of a fresh database with the schema in it.
pub async fn database() -> String {
    static TEMPLATE: OnceCell<()> = OnceCell::const_new();
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    TEMPLATE
        .get_or_init(|| async {
            let url = empty_database("migrated").await;
            let db = Db::connect(&url).await.expect("the template takes connections");
            db.migrate().await.expect("the schema is created");
            drop(db);
            // For the tables of the tests themselves; the library has done without.
            let admin = superuser(&url).await;
            admin.batch_execute(&format!("grant create on schema public to {}", user())).await.expect("granted");
            drop(admin);
            let admin = connect(&cluster().url("postgres")).await;
            let free = "select count(*) from pg_stat_activity where datname = 'migrated'";
            eventually("the template is free", || async {
                admin.query_one(free, &[]).await.expect("activity is visible").get::<_, i64>(0) == 0
            })
            .await;
        })
        .await;
    create(&format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed)), "migrated").await
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
