//! The library works in the same way with every PostgreSQL version from 14 to 18.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use postgres_types::{FromSql, ToSql};
use tokio::{sync::OnceCell, task::JoinSet, time::timeout};
use tokio_postgres::error::SqlState;
use trunkline::{
    Db, Draft, Json, Settings, Wait,
    postgres::{Insert, Statement},
};
use trunkline_embedded::{Binaries, Cluster};

use crate::fixture::{SOON, connect, eventually};

type Nothing = Statement<(), ()>;

/// Returns one installation of each major version. Searches the folders of `TRUNKLINE_PG_BINS`, the
/// distribution's folders, and the launcher's locations.
pub fn found() -> BTreeMap<u32, Binaries> {
    let named = std::env::var_os("TRUNKLINE_PG_BINS").unwrap_or_default();
    let named = std::env::split_paths(&named).filter(|folder| !folder.as_os_str().is_empty());
    let usual = (14..=18).map(|major| PathBuf::from(format!("/usr/lib/postgresql/{major}/bin")));
    let inspected = named.map(|folder| Binaries::inspect(&folder).expect("TRUNKLINE_PG_BINS names what runs here"));
    let others = usual.filter_map(|folder| Binaries::inspect(&folder).ok()).chain(Binaries::find());
    let mut of = BTreeMap::new();
    for binaries in inspected.chain(others) {
        of.entry(binaries.major()).or_insert(binaries);
    }
    of
}

/// Returns the server of a major version, which all tests share. It stops when the process exits,
/// like the main cluster.
async fn cluster(binaries: Binaries) -> &'static Cluster {
    static CLUSTERS: [OnceCell<Cluster>; 5] = [const { OnceCell::const_new() }; 5];
    let major = binaries.major();
    let start = || async {
        let start = || Cluster::temporary().binaries(binaries).setting("fsync", "off").start();
        let cluster = tokio::task::spawn_blocking(start).await.expect("no panic");
        cluster.unwrap_or_else(|error| panic!("PostgreSQL {major}: {error}"))
    };
    CLUSTERS[major as usize - 14].get_or_init(start).await
}

/// Runs a test on all versions at the same time.
pub async fn on_each<F: Future<Output = ()> + Send + 'static>(run: fn(&'static Cluster) -> F) {
    let mut found = found();
    let mut running = JoinSet::new();
    for major in 14..=18 {
        let binaries = found.remove(&major).unwrap_or_else(|| {
            panic!("no PostgreSQL {major}: name the folder of its programs in TRUNKLINE_PG_BINS (see .ci/versions)")
        });
        running.spawn(async move { run(cluster(binaries).await).await });
    }
    while let Some(ended) = running.join_next().await {
        ended.expect("no panic");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL 14 to 18: see .ci/versions"]
async fn every_version_from_14_to_18_keeps_the_contract() {
    on_each(conform).await;
}

async fn conform(cluster: &'static Cluster) {
    let major = cluster.binaries().major();
    let url = crate::fixture::settled(&cluster.url("postgres"));
    let all = async {
        log_in(&url).await;
        let db = Db::connect(&url).await.expect("connected");
        let version = Statement::<(), (String,)>::new("select current_setting('server_version_num')");
        let (version,) = db.run(&version, ()).await.expect("told");
        assert!(version.starts_with(&major.to_string()), "{version}");
        run_statements(&db).await;
        run_transactions(&db).await;
        db.migrate().await.expect("migrated");
        assert_eq!(db.schema_version().await.expect("told"), trunkline::SCHEMA_VERSION);
        for wait in crate::contract::WAITS {
            use_queue(&db, wait).await;
        }
    };
    timeout(8 * SOON, all).await.unwrap_or_else(|_| panic!("PostgreSQL {major}: no answer"));
    println!("PostgreSQL {major}: as it should be");
}

/// Logs in with SCRAM, which proves the password without sending it.
async fn log_in(url: &str) {
    let sql = connect(url).await;
    let access = "local all reader scram-sha-256\nlocal all all trust";
    sql.batch_execute(&format!(
        "set password_encryption = 'scram-sha-256'; create role reader login password 'pencil';
         copy (select unnest(string_to_array('{access}', e'\\n'))) to program 'cat > pg_hba.conf';
         select pg_reload_conf()"
    ))
    .await
    .expect("created");
    let reader = url.replace("user=trunkline", "user=reader");
    let wrong = format!("{reader} password=crayon");
    eventually("a wrong password is refused", async || {
        Db::connect(&wrong).await.is_err_and(|error| error.sqlstate() == Some(&SqlState::INVALID_PASSWORD))
    })
    .await;
    let db = Db::connect(&format!("{reader} password=pencil")).await.expect("logged in");
    let me = Statement::<(), (String,)>::new("select current_user::text");
    assert_eq!(db.run(&me, ()).await.expect("told"), ("reader".into(),));
}

#[derive(Debug, Clone, PartialEq, ToSql, FromSql)]
#[postgres(name = "mood", rename_all = "snake_case")]
enum Mood {
    Glad,
    VerySad,
}

#[derive(Debug, Clone, PartialEq, ToSql, FromSql)]
#[postgres(name = "pair")]
struct Pair {
    first: i32,
    second: Vec<Mood>,
}

type Both = (Pair, Json<Vec<i32>>);

static INSERT: Statement<(i32,), u64> = Statement::new("insert into t values ($1)");
static COUNT: Statement<(), (i64,)> = Statement::new("select count(*) from t");
static SERIES: Statement<(i32,), Vec<(i32,)>> = Statement::new("select generate_series(1, $1)");

/// Runs groups with failing statements, inserts rows by columns, copies rows, and uses users'
/// types.
pub async fn run_statements(db: &Db) {
    static ROWS: Insert<(i32,)> = Insert::into("t", &["n"]);
    static COPY: Statement<(), u64> = Statement::new("copy t from stdin");
    static ECHO: Statement<Both, Both> = Statement::new("select $1::pair, $2::jsonb");
    db.run(&Nothing::new("create table t (n int unique)"), ()).await.expect("created");
    assert_eq!(db.run_many(&INSERT, (0..100).map(|n| (n,))).await.expect("inserted"), [1; 100]);
    for at in [0, 1, 7] {
        let rows = (200..210).map(|n| (if n == 200 + at { 0 } else { n },));
        let error = db.run_many(&INSERT, rows).await.expect_err("0 is there");
        assert_eq!(error.failed_statement(), Some(at as usize));
        assert_eq!(error.sqlstate(), Some(&SqlState::UNIQUE_VIOLATION));
    }
    assert_eq!(db.insert_many(&ROWS, (100..200).map(|n| (n,))).await.expect("inserted"), 100);
    assert_eq!(db.copy_in(&COPY, b"200\n201\n").await.expect("copied"), 2);
    let wrong = db.copy_in(&COPY, b"202\nno number\n").await.expect_err("no number");
    assert_eq!(wrong.sqlstate(), Some(&SqlState::INVALID_TEXT_REPRESENTATION));
    assert_eq!(db.run(&COUNT, ()).await.expect("counted"), (202,));
    db.run(&Nothing::new("create type mood as enum ('glad', 'very_sad')"), ()).await.expect("created");
    db.run(&Nothing::new("create type pair as (first int4, second mood[])"), ()).await.expect("created");
    let pair = Pair { first: 1, second: vec![Mood::VerySad, Mood::Glad] };
    let (came, json) = db.run(&ECHO, (pair.clone(), Json(vec![1, 2]))).await.expect("echoed");
    assert_eq!((came, json.0), (pair, vec![1, 2]));
}

async fn run_transactions(db: &Db) {
    let transaction = db.begin_with("isolation level serializable").await.expect("begun");
    for n in 300..400 {
        transaction.send(&INSERT, (n,)).await.expect("sent");
    }
    let mut stream = transaction.stream(&SERIES, (1000,), 7).await.expect("sent");
    let mut seen = 0;
    while let Some(rows) = stream.next_chunk().await.expect("read") {
        assert!(rows.iter().map(|(n,)| *n).eq(seen + 1..=seen + rows.len() as i32));
        seen += rows.len() as i32;
    }
    transaction.commit().await.expect("committed");
    assert_eq!((seen, db.run(&COUNT, ()).await.expect("counted")), (1000, (302,)));
    let transaction = db.begin().await.expect("begun");
    transaction.send(&INSERT, (400,)).await.expect("sent");
    transaction.send(&INSERT, (0,)).await.expect("sent");
    transaction.send(&INSERT, (401,)).await.expect("sent");
    let error = transaction.commit().await.expect_err("0 is there");
    assert_eq!((error.failed_statement(), error.sqlstate()), (Some(1), Some(&SqlState::UNIQUE_VIOLATION)));
    assert_eq!(db.run(&COUNT, ()).await.expect("counted"), (302,));
}

/// Runs every verb once.
pub async fn use_queue(db: &Db, wait: Wait) {
    db.create_queue("q", &Settings::new("int8").max_batch(8).max_attempts(1)).await.expect("created");
    let queue = db.queue::<i64>("q").await.expect("opened");
    let mut consumer = queue.consumer(wait);
    let waiter = tokio::spawn(async move {
        let first = consumer.take(1).await.expect("taken");
        (first[0].payload, consumer)
    });
    queue.enqueue(1).await.expect("enqueued");
    let (first, mut consumer) = waiter.await.expect("no panic");
    assert_eq!(first, 1);

    queue.enqueue_many(&(0..20).collect::<Vec<i64>>()).await.expect("enqueued");
    queue.enqueue(Draft::new(99).after(Duration::from_secs(3600))).await.expect("enqueued");
    let leased = consumer.lease(10).await.expect("leased");
    queue.extend(&leased, Duration::from_secs(600)).await.expect("held");
    queue.ack(&leased[..4]).await.expect("held");
    queue.archive(&leased[4..6]).await.expect("held");
    queue.release(&leased[6..7]).await.expect("held");
    queue.retry(&leased[7..8], Duration::ZERO, "once too often").await.expect("held");
    assert!(queue.ack(&leased[..1]).await.expect_err("it is done").is_lease_lost());
    let (next, lost) = queue.ack_and_lease(&leased[8..], 2).await.expect("exchanged");
    assert_eq!((next.len(), lost.len()), (2, 0));
    let dead = queue.dead_letters(0, 10).await.expect("listed");
    assert_eq!((dead.len(), dead[0].payload), (1, 7));
    assert_eq!(queue.replay_all().await.expect("replayed"), 1);

    let transaction = db.begin().await.expect("begun");
    let acked = queue.send_ack(&transaction, &next).await.expect("sent");
    queue.enqueue_in(&transaction, 50).await.expect("enqueued");
    let taken = queue.take_in(&transaction, 3).await.expect("taken");
    transaction.commit().await.expect("committed");
    acked.await.expect("held");
    assert_eq!(taken.len(), 3);
    let worked = consumer.take_with(3, |transaction, messages| {
        Box::pin(async move { transaction.run(&COUNT, ()).await.map(|_| messages.len()) })
    });
    assert_eq!(worked.await.expect("worked"), 3);

    let stats = queue.stats().await.expect("counted");
    // The total is 21 plus 50 messages, minus 4 acknowledged, 2 archived, 2 and 2 exchanged, and 3
    // and 3 taken.
    assert_eq!((stats.messages, stats.archived, stats.leased), (6, 2, 0));
    assert_eq!(queue.archived(0, 10).await.expect("listed").len(), 2);
    assert_eq!(queue.prune(Duration::ZERO).await.expect("pruned"), 2);
    assert_eq!(queue.peek(10).await.expect("peeked").len(), 6);
    assert_eq!(queue.purge().await.expect("purged"), 6);
    db.drop_queue("q").await.expect("dropped");
    assert!(queue.enqueue(1).await.expect_err("it is gone").is_no_queue());
}
