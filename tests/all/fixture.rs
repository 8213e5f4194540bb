//! One throwaway cluster per run, a fresh database per test, and shared helpers for setup, waiting
//! and inspection.

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
use trunkline::{
    Db, Enqueued, Settings,
    shards::{MessageId, Sharded},
};
use trunkline_embedded::Cluster;

pub use self::{
    place::{Place, counts, drafts, enqueued, ids, leased_again, place},
    role::{of_role, superuser, through, user},
    runs::{Runs, Seen},
    said::Said,
    waiting::{
        SOON, drained, dropped_under_way, eventually, grows_to, move_time, one_waits, run_out, until_asleep, within,
    },
};

/// The ids of messages that a test has enqueued.
pub trait Ids {
    type Id;

    fn ids(&self) -> Vec<Self::Id>;
}

impl Ids for Vec<Enqueued> {
    type Id = i64;

    fn ids(&self) -> Vec<i64> {
        self.iter().map(|enqueued| enqueued.id()).collect()
    }
}

impl Ids for Vec<Sharded<Enqueued>> {
    type Id = MessageId;

    fn ids(&self) -> Vec<MessageId> {
        self.iter().map(Sharded::<Enqueued>::id).collect()
    }
}

/// Returns the cluster of this run. Its watchdog stops it when the process ends.
pub fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        // Turns fsync off: no test crashes the machine, and a slow disk should not affect the
        // outcome of a test.
        Cluster::temporary()
            .setting("fsync", "off")
            .setting("max_prepared_transactions", "10")
            .setting("max_connections", "400")
            .start()
            .expect("a private PostgreSQL starts")
    })
}

/// Opens a plain connection, without the library.
pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the cluster takes connections");
    tokio::spawn(connection);
    client
}

/// Creates a database for the role that runs the library. Returns the database's address.
async fn create(name: &str, template: &str) -> String {
    let admin = connect(&cluster().url("postgres")).await;
    admin.batch_execute(&format!("create database {name} template {template}")).await.expect("a database is created");
    if user() != cluster().user() {
        admin.batch_execute(&format!("grant create on database {name} to {}", user())).await.expect("granted");
    }
    settled(&of_role(&cluster().url(name), user()))
}

/// Adds options that the developer's `PG*` variables would otherwise set. The address already
/// contains the host and the user.
pub fn settled(url: &str) -> String {
    format!("{url} options='' target_session_attrs=any connect_timeout=10")
}

/// Creates the roles of the tests, before the first database.
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

/// Creates an empty database. Returns its address.
pub async fn empty_database(name: &str) -> String {
    roles().await;
    create(name, "template1").await
}

/// Waits until a database has no session. Then it can be a template for others.
async fn disconnected(name: &str) {
    let admin = connect(&cluster().url("postgres")).await;
    let free = "select count(*) from pg_stat_activity where datname = $1";
    eventually("the template is free", || async {
        admin.query_one(free, &[&name]).await.expect("activity is visible").get::<_, i64>(0) == 0
    })
    .await;
}

/// Creates the database that has the schema and nothing else, once.
async fn migrated() -> &'static str {
    static TEMPLATE: OnceCell<&str> = OnceCell::const_new();
    let create = async || {
        let name = "migrated";
        let url = empty_database(name).await;
        let db = Db::connect(&url).await.expect("the template takes connections");
        db.migrate().await.expect("the schema is created");
        drop(db);
        // Grants a right for the tests' own tables after the migration, because the migration
        // must run without it.
        let admin = superuser(&url).await;
        admin.batch_execute(&format!("grant create on schema public to {}", user())).await.expect("granted");
        drop(admin);
        disconnected(name).await;
        name
    };
    TEMPLATE.get_or_init(create).await
}

/// Creates the database that has the schema and the queue `q` of numbers, once. To create this
/// queue takes as long as to copy a database.
async fn with_queue() -> &'static str {
    static TEMPLATE: OnceCell<&str> = OnceCell::const_new();
    let create_it = async || {
        let name = "with_queue";
        let url = create(name, migrated().await).await;
        let db = Db::connect(&url).await.expect("the template takes connections");
        db.create_queue("q", &Settings::new("int8")).await.expect("a queue is created");
        drop(db);
        disconnected(name).await;
        name
    };
    TEMPLATE.get_or_init(create_it).await
}

async fn copy(template: &str) -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    create(&format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed)), template).await
}

/// Creates a database with the schema. Returns its address.
pub async fn database() -> String {
    copy(migrated().await).await
}

/// Creates a database with the schema and the queue `q` of numbers. Returns its address.
pub async fn database_with_queue() -> String {
    copy(with_queue().await).await
}

/// Returns a library handle on a fresh database.
pub async fn db() -> Db {
    Db::connect(&database().await).await.expect("a fresh database takes connections")
}
