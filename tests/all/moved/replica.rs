//! A logical replication follows the documented steps. Queues of every kind, relays and interrupted
//! moves continue on the replica.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use trunkline::{Changes, Db, Draft, Lease, Limits, Message, Schedule, Settings, Unique, Worker};

use super::{compacted, jump, server::Server, tools::Tools};
use crate::fixture::{connect, within};

/// A subscriber may report its progress only every ten seconds.
const LONG: Duration = Duration::from_secs(120);

const HOUR: Duration = Duration::from_secs(3600);

/// Returns a message with its key. Messages below 60 share the key of the backlog.
fn draft(nr: i64) -> Draft<i64> {
    Draft::new(nr).key(if nr < 60 { "busy".to_owned() } else { format!("key {nr}") })
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs pg_dump and psql: see .ci/versions"]
async fn logical_replica_goes_on_with_keys_claims_limits_and_schedules() {
    let tools = Tools::found(&["pg_dump", "psql"]);
    let settings = [("wal_level", "logical"), ("max_wal_senders", "4"), ("max_replication_slots", "4")];
    let server = || Server::start(Some(tools.binaries()), &settings);
    let (here, there) = (server(), server());
    let db = Db::connect(&here.url()).await.expect("connected");
    db.migrate().await.expect("migrated");
    let sql = connect(&here.url()).await;

    // Creates a queue whose number of partitions has grown, and in which a key's first message
    // waits for its retry. Creates a second queue with a claimed unique key, and a limit, a pause
    // and a schedule, and an empty third one.
    db.create_queue("keys", &Settings::new("int8").partitions(64)).await.expect("created");
    db.create_queue("once", &Settings::new("int8").uniqueness(true)).await.expect("created");
    db.create_queue("empty", &Settings::new("int8")).await.expect("created");
    let keys = db.queue::<i64>("keys").await.expect("opened");
    keys.enqueue(draft(0)).await.expect("enqueued");
    let fails = "select trunkline.retry('keys', id, attempt, '1 hour', 'later') from trunkline.lease_partition('keys')";
    sql.batch_execute(fails).await.expect("failed");
    db.alter_queue("keys", &Changes::new().partitions(128)).await.expect("more");
    let once = db.queue::<i64>("once").await.expect("opened");
    once.enqueue(Draft::new(1).unique(Unique::key("claimed"))).await.expect("enqueued");
    db.limit_queue("keys", &Limits::none().max_leased(1000)).await.expect("limited");
    once.schedule(&Schedule::new("yearly", "@yearly"), &7).await.expect("set");
    db.pause_queue("once").await.expect("paused");
    // Inserts the stored position of a relay from a broker, a message of an interrupted drain that
    // is on its way, and a message that has arrived from another shard.
    sql.batch_execute(include_str!("../../../sql/statements/move_tables.sql")).await.expect("tables of moves");
    sql.batch_execute(RELAY_AND_MOVES).await.expect("inserted");

    // Step 1 of the documented procedure: dumps everything except the messages, the schedules'
    // ticks, the relays' positions and the messages that move.
    let mut dump = vec!["--schema=trunkline", "--no-owner", "--no-privileges"];
    let left_out = ["queue_*", "dead_*", "archive_*", "unique_*", "schedule", "relay", "moving", "moved"]
        .map(|table| format!("--exclude-table-data=trunkline.{table}"));
    dump.extend(left_out.iter().map(String::as_str));
    let url = here.url();
    dump.extend(["--dbname", &url]);
    let definitions = tools.run("pg_dump", &dump, "");
    tools.run("psql", &["--quiet", "--set=ON_ERROR_STOP=1", "--dbname", &there.url()], &definitions);
    // Steps 2 and 3: replicates the messages.
    let publish: String = sql.query_one(PUBLISH, &[]).await.expect("written").get(0);
    sql.batch_execute(&publish).await.expect("published");
    let replica = connect(&there.url()).await;
    let subscribe =
        format!("create subscription moves connection '{}' publication queues", here.url().replace('\'', "''"));
    replica.batch_execute(&subscribe).await.expect("subscribed");
    for nr in 1..80 {
        keys.enqueue(draft(nr)).await.expect("enqueued");
    }
    // Runs a worker, which finds the messages behind the retry, and moves them to the backlog of
    // their key.
    work(&db, 20).await;
    // Compacts queues, because compactions must reach the replica too.
    for queue in ["keys", "once"] {
        compacted(&sql, queue).await;
    }
    keys.enqueue(draft(99)).await.expect("enqueued");
    let gone = acknowledged(&db).await;
    // Moves the position of the relay, which continues to read.
    let moves = "update trunkline.relay set position = '2', confirmed = 2 where name = 'orders from nats'";
    sql.batch_execute(moves).await.expect("moved");
    let lease = "select id, attempt from trunkline.lease_partition('keys', 1, '2 hours')";
    let lease = sql.query_one(lease, &[]).await.expect("leased");
    let lease = Lease { id: lease.get(0), attempt: lease.get(1) };
    let told: String = sql.query_one("select pg_current_wal_lsn()::text", &[]).await.expect("told").get(0);
    let caught_up = "select bool_and(confirmed_flush_lsn >= $1::text::pg_lsn)
                        and not exists (select from pg_stat_replication where application_name ~ 'sync') from pg_replication_slots";
    let copied = "select bool_and(srsubstate = 'r') from pg_subscription_rel";
    within(LONG, "every table is copied", async || {
        replica.query_one(copied, &[]).await.expect("told").get::<_, Option<bool>>(0) == Some(true)
    })
    .await;
    within(LONG, "the replica has caught up", async || {
        sql.query_one(caught_up, &[&told]).await.expect("told").get::<_, Option<bool>>(0) == Some(true)
    })
    .await;
    let rows = "select array_agg(row(q.*)::text order by q.id) from trunkline.queue_keys q";
    let wanted: Option<Vec<String>> = sql.query_one(rows, &[]).await.expect("read").get(0);
    within(LONG, "both have the same rows", async || {
        replica.query_one(rows, &[]).await.expect("read").get::<_, Option<Vec<String>>>(0) == wanted
    })
    .await;
    // Steps 4 and 5: switches to the replica and repairs it.
    replica.batch_execute("drop subscription moves").await.expect("no replica any more");
    drop((keys, once, db, sql));
    replica.batch_execute("select trunkline.rebuild(name) from trunkline.queue").await.expect("rebuilt");
    replica.batch_execute(jump()).await.expect("advanced");

    let db = Db::connect(&there.url()).await.expect("connected");
    db.migrate().await.expect("there is nothing to do");
    let (keys, once) =
        (db.describe_queue("keys").await.expect("described"), db.describe_queue("once").await.expect("described"));
    assert_eq!((keys.partitions, keys.limits), (128, Limits::none().max_leased(1000)));
    assert!(once.is_paused && !keys.is_paused);
    assert_eq!(db.schedules().await.expect("listed")[0].name, "yearly");
    let came_along: String = replica.query_one(CAME_ALONG, &[]).await.expect("read").get(0);
    assert_eq!(came_along, "orders from nats at 2, moving 7, moved 8 as 9");
    let next = db.queue::<i64>("empty").await.expect("opened").enqueue(3).await.expect("enqueued").id();
    assert!(next > gone, "{next} was the id of a message that was acknowledged before the switch");
    db.resume_queue("once").await.expect("resumed");
    let once = db.queue::<i64>("once").await.expect("opened");
    let again = once.enqueue(Draft::new(2).unique(Unique::key("claimed"))).await.expect("enqueued");
    assert!(!again.is_new(), "the claim came along");
    assert_eq!(once.take(9).await.expect("taken").len(), 1);
    // The backlog waits for its first message, and is then delivered in order.
    assert!(work(&db, 0).await.is_empty(), "behind a retry and a lease");
    let keys = db.queue::<i64>("keys").await.expect("opened");
    keys.ack([lease]).await.expect("the lease goes on");
    trunkline::testing::shift(&keys, 2 * HOUR).await.expect("shifted");
    let then = work(&db, 60).await;
    assert_eq!(then, (0..60).collect::<Vec<_>>());
}

/// The documented query, which writes a `create publication` with the tables of all queues, the
/// schedules, the relays and the moves.
const PUBLISH: &str = "select 'create publication queues for table ' || string_agg(c.oid::regclass::text, ', ')
     from pg_class c where c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'r'
         and c.relname ~ '^(queue|dead|archive|unique)_|^(schedule|relay|moving|moved)$'";

const RELAY_AND_MOVES: &str = "
    insert into trunkline.relay (name, queue, broker, inward, position) values ('orders from nats', 'keys', 'nats://broker/ORDERS', true, '1');
    insert into trunkline.moving (queue, target, id, enqueued_at, due_at, attempt, released, size, payload) values ('keys', 1, 7, now(), now(), 0, 0, 1, '7');
    insert into trunkline.moved (source, queue, id, size, became) values (2, 'keys', 8, 1, 9)";

/// Selects the stored position of the relay, and the messages that move.
const CAME_ALONG: &str =
    "select format('%s at %s, moving %s, moved %s as %s', r.name, r.position, m.id, n.id, n.became)
     from trunkline.relay r join trunkline.moving m using (queue) join trunkline.moved n using (queue)";

/// Enqueues and acknowledges messages, whose ids no table has when the replica is used. Returns the
/// highest id.
async fn acknowledged(db: &Db) -> i64 {
    let empty = db.queue::<i64>("empty").await.expect("opened");
    let mut highest = 0;
    for nr in 0..3 {
        highest = empty.enqueue(nr).await.expect("enqueued").id();
    }
    let leased = empty.lease(9).await.expect("leased");
    assert_eq!(leased.len(), 3);
    empty.ack(&leased).await.expect("acknowledged");
    highest
}

/// Runs a worker until nothing is due. Returns the payloads that it handled, at least `least` of
/// them.
async fn work(db: &Db, least: usize) -> Vec<i64> {
    let handled = Arc::new(Mutex::new(Vec::new()));
    let seen = handled.clone();
    let worker = Worker::new(db.queue::<i64>("keys").await.expect("opened"), move |message: Message<i64>| {
        seen.lock().expect("no panic").push(message.payload);
        async { Ok::<_, std::convert::Infallible>(()) }
    });
    worker.drain().await.expect("drained");
    let handled = std::mem::take(&mut *handled.lock().expect("no panic"));
    assert!(handled.len() >= least, "{handled:?}");
    handled
}
