//! One throwaway cluster a run, a fresh database a test; and what many tests wait for, look at and
//! begin with.

mod place;
mod role;
mod runs;
mod said;
mod waiting;

use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};
use trunkline::Db;
use trunkline_embedded::Cluster;

pub use self::{
    place::{Place, counts, drafts, enqueued, ids, place},
    role::{of_role, superuser, through, user},
    runs::{Runs, Seen},
    said::Said,
    waiting::{SOON, drained, dropped_under_way, eventually, grows_to, move_time, run_out, until_asleep, within},
};

/// The cluster of this run. It ends with the process: its watchdog sees to that.
pub fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        // A crash of the machine is not among the tests, and a slow disk should not decide how they
        // end.
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

/// The address of a new database, for whoever runs the library.
async fn create(name: &str, template: &str) -> String {
    let admin = connect(&cluster().url("postgres")).await;
    admin.batch_execute(&format!("create database {name} template {template}")).await.expect("a database is created");
    if user() != cluster().user() {
        admin.batch_execute(&format!("grant create on database {name} to {}", user())).await.expect("granted");
    }
    settled(&of_role(&cluster().url(name), user()))
}

/// The same address, whatever a developer's shell says about sessions. Where the server is and who
/// we are, it says already.
pub fn settled(url: &str) -> String {
    format!("{url} options='' target_session_attrs=any connect_timeout=10")
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
