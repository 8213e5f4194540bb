//! The clients of a queue connect to a standby by mistake, or the queue moves to another server by
//! dump, upgrade or logical replication.

mod backup;
mod promoted;
mod replica;
mod restored;
pub mod server;
mod standby;
mod tools;

use std::time::Duration;

use tokio_postgres::{Client, error::SqlState};
use trunkline::{Db, Draft, Message, Queue, Settings};

use self::{server::Server, tools::Tools};
use crate::{
    fixture::{connect, eventually, within},
    versions::found,
};

const HOUR: Duration = Duration::from_secs(3600);

/// A queue with a message in every state, and a valid lease.
struct Left {
    leased: Message<i64>,
    /// The highest id that was returned to a caller.
    highest: i64,
}

/// Fills a queue: 1 is leased, 2 and 3 are due, 4 is due in an hour, 5 is dead, 6 is in the
/// archive, and 7 has metadata.
async fn fill(db: &Db) -> Left {
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("int8").lease(HOUR).max_attempts(1)).await.expect("created");
    let queue = db.queue::<i64>("q").await.expect("opened");
    // Gives the first id to a message that stays in the queue.
    queue.enqueue(Draft::new(4).after(HOUR)).await.expect("enqueued");
    queue.enqueue_many(&[5, 6]).await.expect("enqueued");
    let leased = queue.lease(2).await.expect("leased");
    queue.retry(&leased[..1], Duration::ZERO, "dies of it").await.expect("held");
    queue.archive(&leased[1..]).await.expect("held");
    queue.enqueue_many(&[1, 2, 3]).await.expect("enqueued");
    let leased = queue.lease(1).await.expect("leased").remove(0);
    let highest = queue.enqueue(Draft::new(7).with("a", "b")).await.expect("enqueued").id();
    Left { leased, highest }
}

/// Checks that on the other server everything is unchanged and works.
async fn goes_on(queue: &Queue<i64>, left: &Left) {
    let stats = queue.stats().await.expect("counted");
    assert_eq!((stats.due, stats.leased, stats.delayed, stats.dead, stats.archived), (3, 1, 1, 1, 1));
    queue.ack([&left.leased]).await.expect("a lease from before is one still");
    let next = queue.enqueue(8).await.expect("enqueued").id();
    assert!(next > left.highest, "{next} is an id from before, or below one");
    assert_eq!(queue.replay_all().await.expect("replayed"), 1);
    let due = queue.take(10).await.expect("taken");
    assert_eq!(due.iter().map(|message| message.payload).collect::<Vec<_>>(), [2, 3, 7, 8, 5]);
    assert_eq!(due[2].metadata.get("a"), Some("b"));
    assert_eq!(queue.archived(0, 9).await.expect("listed")[0].payload, 6);
    let hand = queue.clone();
    let handed = tokio::spawn(async move { hand.consumer(trunkline::Wait::Notify).receive_direct().await });
    // Sends a message after the move. The wait list may still name consumers of the old server,
    // which must not receive it.
    queue.send_direct(9).await.expect("handed over, or enqueued");
    assert_eq!(handed.await.expect("no panic").expect("it came").payload, 9);
}

/// Returns the guide's statement that advances the sequences of all queues.
fn jump() -> &'static str {
    let guide = include_str!("../../docs/operations.md");
    let start = guide.find("select c.oid::regclass, setval(").expect("the guide has it");
    guide[start..].split_once("```").expect("the block ends").0
}

/// Compacts a queue even if little space can be freed. Returns the reason if the compaction is
/// refused.
async fn refused(sql: &Client, queue: &str) -> Option<String> {
    let compact = "select refused from trunkline.compact($1, -1000000000)";
    sql.query_one(compact, &[&queue]).await.expect("called").get(0)
}

/// Waits until a compaction is not refused.
async fn compacted(sql: &Client, queue: &str) {
    eventually("it is compacted", async || refused(sql, queue).await.is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn standby_given_by_mistake_is_named_and_works_once_promoted() {
    let mut server = Server::start(None, &[]);
    let db = Db::connect(&server.url()).await.expect("connected");
    let left = fill(&db).await;
    drop(db);
    server.stop();
    server.becomes_a_standby();
    server.start_again();

    let db = Db::connect(&server.url()).await.expect("who asks for no writes may read");
    let queue = db.queue::<i64>("q").await.expect("opened");
    assert_eq!(queue.peek(9).await.expect("read").len(), 5);
    for error in [
        queue.enqueue(0).await.expect_err("read only"),
        queue.take(1).await.expect_err("read only"),
        queue.lease(1).await.expect_err("read only"),
        queue.ack([&left.leased]).await.expect_err("read only"),
    ] {
        assert_eq!(error.sqlstate(), Some(&SqlState::READ_ONLY_SQL_TRANSACTION), "{error}");
        assert!(!error.is_outcome_unknown(), "{error}");
        let text = error.to_string();
        assert!(text.contains("target_session_attrs=read-write") && text.contains("standby"), "{text}");
    }
    let writes = format!("{} target_session_attrs=read-write", server.url());
    let error = Db::connect(&writes).await.expect_err("read only").to_string();
    assert!(error.contains("does not allow writes"), "{error}");

    let sql = connect(&server.url()).await;
    assert!(sql.query_one("select pg_promote()", &[]).await.expect("promoted").get::<_, bool>(0));
    eventually("it takes writes", async || queue.release([&left.leased]).await.is_ok()).await;
    let id = queue.enqueue(0).await.expect("by the same handle").id();
    assert!(id > left.highest);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pg_dump and psql: see .ci/versions"]
async fn pg_dump_goes_on_in_another_server() {
    let tools = Tools::found(&["pg_dump", "psql"]);
    let server = || Server::start(Some(tools.binaries()), &[]);
    let (here, there) = (server(), server());
    let db = Db::connect(&here.url()).await.expect("connected");
    let left = fill(&db).await;
    // A waiting consumer leaves an entry in the wait list behind, which is meaningless on another
    // server.
    db.create_queue("idle", &Settings::new("int8")).await.expect("created");
    let waits = db.queue::<i64>("idle").await.expect("opened");
    let waits = tokio::spawn(async move { waits.consumer(trunkline::Wait::Notify).receive_direct().await });
    let sql = connect(&here.url()).await;
    let waiting =
        async || sql.query_one("select count(*) from trunkline.waiting", &[]).await.expect("read").get::<_, i64>(0);
    eventually("it waits", async || waiting().await == 1).await;
    let dump = tools.run("pg_dump", &["--dbname", &here.url()], "");
    waits.abort();
    tools.run("psql", &["--quiet", "--set=ON_ERROR_STOP=1", "--dbname", &there.url()], &dump);

    let db = Db::connect(&there.url()).await.expect("connected");
    db.migrate().await.expect("there is nothing to do");
    goes_on(&db.queue("q").await.expect("opened"), &left).await;
}

/// A dump takes its snapshot before its locks. A compaction in between would make the table look
/// empty to the dump.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pg_dump: see .ci/versions"]
async fn pg_dump_between_snapshot_and_locks_prevents_compactions() {
    let tools = Tools::found(&["pg_dump"]);
    let here = Server::start(Some(tools.binaries()), &[]);
    let db = Db::connect(&here.url()).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let queue: Queue<i64> = db.queue("q").await.expect("opened");
    for n in 0..50 {
        queue.enqueue(n).await.expect("enqueued");
    }
    let (first, second, sql) = (connect(&here.url()).await, connect(&here.url()).await, connect(&here.url()).await);
    first.batch_execute("begin; lock table trunkline.queue_q").await.expect("locked");
    second.batch_execute("begin; lock table trunkline.audit").await.expect("locked");
    let (binaries, url) = (tools.binaries(), here.url());
    let dumping = tokio::task::spawn_blocking(move || {
        Tools::of(&binaries, &["pg_dump"]).run("pg_dump", &["--data-only", "--dbname", &url], "")
    });
    let waits =
        "select exists (select from pg_stat_activity where application_name = 'pg_dump' and wait_event_type = 'Lock')";
    eventually("it waits for its locks", async || sql.query_one(waits, &[]).await.expect("asked").get(0)).await;
    first.batch_execute("commit").await.expect("the queue is free");
    for _ in 0..20 {
        assert!(refused(&sql, "q").await.is_some(), "the dump has begun");
    }
    second.batch_execute("commit").await.expect("let go");
    let dump = dumping.await.expect("no panic");
    assert_eq!(dump.lines().filter(|line| line.contains("\t{")).count(), 50, "{dump}");
    // Checks that compaction is no longer refused once the session of pg_dump has ended.
    compacted(&sql, "q").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pg_dump and psql: see .ci/versions"]
async fn data_only_restore_goes_on_after_sequence_repair() {
    let tools = Tools::found(&["pg_dump", "psql"]);
    let server = || Server::start(Some(tools.binaries()), &[]);
    let (here, there) = (server(), server());
    let left = fill(&Db::connect(&here.url()).await.expect("connected")).await;
    let db = Db::connect(&there.url()).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("int8").lease(HOUR).max_attempts(1)).await.expect("created");
    let tables = ["queue_q", "dead_q", "archive_q"].map(|table| format!("--table=trunkline.{table}"));
    let all: Vec<&str> = tables.iter().map(String::as_str).chain(["--data-only"]).collect();
    let dump = tools.run("pg_dump", &[&all[..], &["--dbname", &here.url()]].concat(), "");
    let rows = dump.lines().filter(|line| !line.contains("setval")).fold(String::new(), |all, line| all + line + "\n");
    tools.run("psql", &["--quiet", "--set=ON_ERROR_STOP=1", "--dbname", &there.url()], &rows);

    let queue = db.queue::<i64>("q").await.expect("opened");
    let error = queue.enqueue(0).await.expect_err("ids begin again");
    assert!(error.to_string().contains("select trunkline.repair_sequence('q')"), "{error}");
    let sql = connect(&there.url()).await;
    sql.batch_execute("select trunkline.repair_sequence('q')").await.expect("repaired");
    goes_on(&queue, &left).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL 14 to 18: see .ci/versions"]
async fn pg_upgrade_14_to_18_keeps_messages_leases_and_ids() {
    let mut majors = found();
    let [old, new] = [14, 18]
        .map(|major| majors.remove(&major).unwrap_or_else(|| panic!("no PostgreSQL {major}: see .ci/versions")));
    let tools = Tools::of(&new, &["pg_upgrade", "pg_dump", "pg_dumpall", "pg_restore", "psql"]);
    let mut before = Server::start(Some(old.clone()), &[]);
    let left = fill(&Db::connect(&before.url()).await.expect("connected")).await;
    before.stop();
    let mut after = Server::start(Some(new.clone()), &[]);
    after.stop();
    before.gets_checksums(&old);
    after.is_upgraded_from(&before, &old, &tools);
    after.start_again();

    let db = Db::connect(&after.url()).await.expect("connected");
    db.migrate().await.expect("there is nothing to do");
    goes_on(&db.queue("q").await.expect("opened"), &left).await;
}

/// Publishes the three tables of a queue that contain messages. `migrate` and `create_queue` create
/// everything else.
const PUBLISH: &str = "create publication queues for table trunkline.queue_q, trunkline.dead_q, trunkline.archive_q";

#[tokio::test(flavor = "multi_thread")]
async fn a_logical_replica_takes_over_after_its_sequences_were_repaired() {
    let settings = [("wal_level", "logical"), ("max_wal_senders", "4"), ("max_replication_slots", "4")];
    let (here, there) = (Server::start(None, &settings), Server::start(None, &settings));
    let db = Db::connect(&here.url()).await.expect("connected");
    let left = fill(&db).await;
    let sql = connect(&here.url()).await;
    sql.batch_execute(PUBLISH).await.expect("published");

    let replica = Db::connect(&there.url()).await.expect("connected");
    replica.migrate().await.expect("migrated");
    replica.create_queue("q", &Settings::new("int8").lease(HOUR).max_attempts(1)).await.expect("created");
    let at_replica = connect(&there.url()).await;
    let subscribe =
        format!("create subscription moves connection '{}' publication queues", here.url().replace('\'', "''"));
    at_replica.batch_execute(&subscribe).await.expect("subscribed");

    // Rows are split, leased, retried, acknowledged and archived while both servers run.
    let queue = db.queue::<i64>("q").await.expect("opened");
    queue.enqueue_many(&(100..120).collect::<Vec<i64>>()).await.expect("enqueued");
    assert_eq!(queue.take(3).await.expect("taken").len(), 3); // takes messages 2, 3 and 7, each in its own row
    let leased = queue.lease(5).await.expect("leased");
    queue.release(&leased[..1]).await.expect("held");
    queue.archive(&leased[1..2]).await.expect("held");
    queue.ack(&leased[2..3]).await.expect("held");
    queue.extend(&leased[3..], 2 * HOUR).await.expect("held");

    let (told, rows): (String, &str) = (
        sql.query_one("select pg_current_wal_lsn()::text", &[]).await.expect("told").get(0),
        "select array_agg(row(q.*)::text order by q.id) from trunkline.queue_q q
         union all select array_agg(row(d.*)::text order by d.id) from trunkline.dead_q d
         union all select array_agg(row(a.*)::text order by a.id) from trunkline.archive_q a",
    );
    let caught_up = "select bool_and(confirmed_flush_lsn >= $1::text::pg_lsn)
                        and not exists (select from pg_stat_replication where application_name ~ 'sync') from pg_replication_slots";
    within(Duration::from_secs(120), "the replica has caught up", async || {
        sql.query_one(caught_up, &[&told]).await.expect("told").get::<_, Option<bool>>(0) == Some(true)
    })
    .await;
    let read = async |client: &tokio_postgres::Client| -> Vec<Option<Vec<String>>> {
        client.query(rows, &[]).await.expect("read").iter().map(|row| row.get(0)).collect()
    };
    let wanted = read(&sql).await;
    eventually("both have the same rows", async || read(&at_replica).await == wanted).await;

    at_replica.batch_execute("drop subscription moves").await.expect("no replica any more");
    drop((db, sql));
    let moved = replica.queue::<i64>("q").await.expect("opened");
    let error = moved.enqueue(0).await.expect_err("sequences are not replicated");
    assert!(error.to_string().contains("repair_sequence"), "{error}");
    at_replica.batch_execute("select trunkline.repair_sequence('q')").await.expect("repaired");
    let next = moved.enqueue(8).await.expect("enqueued").id();
    let highest = leased.iter().map(|message| message.id).max().expect("some").max(left.highest);
    assert!(next > highest, "{next} is not above {highest}");
    moved.ack(&leased[3..]).await.expect("leases go on");
    moved.ack([&left.leased]).await.expect("leases go on");
    let rest: Vec<i64> = moved.take(99).await.expect("taken").iter().map(|message| message.payload).collect();
    let mut wanted: Vec<i64> = (105..120).chain([8, leased[0].payload]).collect();
    wanted.sort_unstable();
    let mut sorted = rest.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, wanted);
}
