//! Tests the rights of producers, consumers and operators: each role can do its own work and
//! nothing else.

mod apart;
mod belongings;
mod columns;
mod compaction;
mod limited;
mod moves;
mod outsiders;
mod refused_connections;
mod tended;
mod ticks;
mod unique;

use std::time::Duration;

use tokio_postgres::Client;
use trunkline::{Db, Draft, Error, Queue, Settings, State};

use crate::fixture::{Place, connect, place};

/// Returns a library handle and a plain connection, both for a role with these rights.
async fn role(name: &str, kind: &str, admin: &Client, url: &str) -> (Db, Client) {
    let grant = format!(
        "do $$ begin create role {name} login; exception when duplicate_object then null; end $$;
         select trunkline.grant_rights('{name}', '{kind}', 'q')"
    );
    admin.batch_execute(&grant).await.expect("granted");
    let url = format!("{url} user={name}");
    (Db::connect(&url).await.expect("connected"), connect(&url).await)
}

async fn refused(sql: &Client, statements: &[&str]) {
    for statement in statements {
        let error = sql.batch_execute(statement).await.expect_err(statement);
        assert_eq!(error.code().map(tokio_postgres::error::SqlState::code), Some("42501"), "{statement}: {error:?}");
    }
}

fn denied<T: std::fmt::Debug>(outcome: Result<T, Error>) {
    let error = outcome.expect_err("no right");
    assert_eq!(error.sqlstate().map(tokio_postgres::error::SqlState::code), Some("42501"), "{error}");
}

async fn enqueues(queue: &Queue<i64>, sql: &Client) {
    queue.enqueue(1).await.expect("enqueued");
    queue.enqueue(Draft::new(2).after(Duration::from_secs(60))).await.expect("enqueued");
    queue.enqueue_many(&(0..3000).collect::<Vec<_>>()).await.expect("enqueued");
    for call in
        ["enqueue('q', '3')", "enqueue('q', 4::int8, '1 minute', '{\"a\": \"b\"}')", "enqueue_many('q', array[5, 6])"]
    {
        sql.batch_execute(&format!("select trunkline.{call}"))
            .await
            .unwrap_or_else(|error| panic!("{call}: {error:?}"));
    }
}

async fn consumes(queue: &Queue<i64>, sql: &Client) {
    assert_eq!(queue.take(1).await.expect("taken").len(), 1);
    let leased = queue.lease(8).await.expect("leased");
    queue.ack(&leased[..1]).await.expect("held");
    queue.archive(&leased[1..2]).await.expect("held");
    queue.bury(&leased[2..3], "no").await.expect("held");
    queue.retry(&leased[3..4], Duration::ZERO, "again").await.expect("held");
    queue.release(&leased[4..5]).await.expect("held");
    queue.extend(&leased[5..], Duration::from_secs(60)).await.expect("held");
    assert_eq!(queue.find(leased[5].id).await.expect("found").map(|found| found.state), Some(State::Leased));
    assert_eq!(queue.cancel(&[leased[5].id, leased[4].id]).await.expect("cancelled").len(), 2);
    assert_eq!(queue.reschedule(&[leased[3].id], Duration::from_secs(60)).await.expect("moved").len(), 1);
    let call = "select trunkline.ack('q', id, attempt) from trunkline.lease('q', 2)";
    sql.batch_execute(call).await.expect("leased and acknowledged");
    sql.batch_execute("select * from trunkline.take('q', 2)").await.expect("taken");
    let mut consumer = queue.consumer(trunkline::Wait::Poll(Duration::from_millis(1)));
    assert_eq!(consumer.take(1).await.expect("taken").len(), 1);
}

const OWNERS: [&str; 5] = [
    "select trunkline.create_queue('mine')",
    "select trunkline.alter_queue('q', 3)",
    "select trunkline.drop_queue('q')",
    "select trunkline.grant_rights(current_user::regrole, 'operator', 'q')",
    "insert into trunkline.template values ('evil', 'function', 'select 1')",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_enqueues_and_nothing_else() {
    let Place { queue, sql: admin, url, .. } = place::<i64>(Settings::new("int8")).await;
    admin.batch_execute("select trunkline.create_queue('other', 'int8')").await.expect("created");
    let (db, sql) = role("a_producer", "producer", &admin, &url).await;
    let mine = db.queue::<i64>("q").await.expect("opened");
    enqueues(&mine, &sql).await;
    denied(mine.take(1).await);
    denied(mine.lease(1).await);
    denied(mine.peek(1).await);
    denied(mine.stats().await);
    denied(mine.purge().await);
    denied(mine.find(1024).await);
    denied(mine.cancel(&[1024]).await);
    denied(mine.reschedule(&[1024], Duration::ZERO).await);
    denied(mine.dead_letters(0, 1).await);
    denied(db.queue::<i64>("other").await.expect("it may know of it").enqueue(1).await);
    refused(&sql, &OWNERS).await;
    refused(
        &sql,
        &[
            "select payload from trunkline.queue_q",
            "select * from trunkline.messages('q')",
            "insert into trunkline.queue_q (id, size, payload) values (7, 1, '{1}')",
            "insert into trunkline.queue_q (attempt, size, payload) values (7, 1, '{1}')",
            "update trunkline.queue_q set size = 1",
            "delete from trunkline.queue_q",
            "select setval('trunkline.id_q', 1)",
            "select * from trunkline.dead_q",
            "delete from trunkline.waiting",
            "update trunkline.floor set reached = now()",
            "select trunkline.enqueue('other', '1')",
        ],
    )
    .await;
    assert!(queue.stats().await.expect("counted").messages > 3000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_consumes_and_nothing_else() {
    let Place { queue, sql: admin, url, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue_many(&(0..100).collect::<Vec<_>>()).await.expect("enqueued");
    let (db, sql) = role("a_consumer", "consumer", &admin, &url).await;
    let mine = db.queue::<i64>("q").await.expect("opened");
    consumes(&mine, &sql).await;
    denied(mine.enqueue(1).await);
    denied(mine.replay_all().await);
    denied(mine.discard(&[1]).await);
    denied(mine.prune(Duration::ZERO).await);
    refused(&sql, &OWNERS).await;
    refused(
        &sql,
        &["select trunkline.replay_all('q')", "select trunkline.discard_all('q')", "select trunkline.prune('q', '0')"],
    )
    .await;
    // A role whose rights were granted manually may lack the right to update the floor. Then no
    // floor is stored.
    admin.batch_execute("revoke update on trunkline.floor from a_consumer").await.expect("revoked");
    sql.batch_execute("select trunkline.keep_floor('q', now())").await.expect("passed over");
    consumes(&mine, &sql).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_does_all_but_what_is_the_owners() {
    let Place { queue, sql: admin, url, .. } = place::<i64>(Settings::new("int8")).await;
    queue.enqueue_many(&(0..100).collect::<Vec<_>>()).await.expect("enqueued");
    let (db, sql) = role("an_operator", "operator", &admin, &url).await;
    let mine = db.queue::<i64>("q").await.expect("opened");
    consumes(&mine, &sql).await;
    assert_eq!(mine.dead_letters(0, 9).await.expect("read").len(), 1);
    assert_eq!(mine.replay_all().await.expect("replayed"), 1);
    assert_eq!(mine.archived(0, 9).await.expect("read").len(), 1);
    assert_eq!(mine.prune(Duration::ZERO).await.expect("pruned"), 1);
    assert!(mine.stats().await.expect("counted").messages > 80);
    assert!(!mine.peek(9).await.expect("peeked").is_empty());
    sql.batch_execute(
        "select * from trunkline.messages('q'); select trunkline.bury('q', id, attempt) from trunkline.lease('q', 2);
         select trunkline.replay('q', array(select id from trunkline.dead_letters('q') limit 1)); select trunkline.discard_all('q');
         select trunkline.enqueue('q', '1'), trunkline.shift('q', '1 hour')",
    )
    .await
    .expect("operated");
    assert!(mine.purge().await.expect("purged") > 0);
    refused(&sql, &OWNERS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_survive_migrations_reach_later_queues_and_are_revoked() {
    let Place { db: owner, sql: admin, url, .. } = place::<i64>(Settings::new("int8")).await;
    let (db, _) = role("a_worker", "consumer", &admin, &url).await;
    admin
        .batch_execute(
            "select trunkline.grant_rights('a_worker', 'producer'), trunkline.grant_rights('a_worker', 'consumer')",
        )
        .await
        .expect("granted");
    owner.create_queue("later", &Settings::new("int8")).await.expect("created");
    admin.batch_execute("update trunkline.version set functions = ''").await.expect("older");
    owner.migrate().await.expect("migrated");
    for name in ["q", "later"] {
        let queue = db.queue::<i64>(name).await.expect("opened");
        queue.enqueue(1).await.expect("enqueued");
        assert_eq!(queue.take(1).await.expect("taken").len(), 1);
    }
    let one = admin
        .batch_execute("select trunkline.revoke_rights('a_worker', 'q')")
        .await
        .expect_err("it has them everywhere");
    assert!(one.as_db_error().is_some_and(|error| error.hint().is_some()), "{one:?}");
    admin.batch_execute("select trunkline.revoke_rights('a_worker')").await.expect("revoked");
    denied(db.queue::<i64>("q").await);
    // The role has no rights left, so it can be dropped. A role that was dropped together with its
    // rights does not block a migration.
    admin
        .batch_execute("drop role a_worker; create role a_ghost; select trunkline.grant_rights('a_ghost', 'operator')")
        .await
        .expect("dropped");
    admin
        .batch_execute("drop owned by a_ghost; drop role a_ghost; update trunkline.version set functions = ''")
        .await
        .expect("dropped");
    owner.migrate().await.expect("migrated");
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_and_queues_change_at_once_and_none_fails() {
    let Place { db: owner, sql: admin, url, .. } = place::<i64>(Settings::new("int8")).await;
    for nr in 0..4 {
        let create = format!(
            "do $$ begin create role at_once_{nr}; exception when duplicate_object then null; end $$; select trunkline.create_queue('at_{nr}')"
        );
        admin.batch_execute(&create).await.expect("created");
    }
    let mut tasks = tokio::task::JoinSet::new();
    for nr in 0..4 {
        let (sql, owner) = (connect(&url).await, owner.clone());
        tasks.spawn(async move {
            for round in 0..5 {
                let change = match nr {
                    0 => "select trunkline.grant_rights('at_once_0', 'consumer', 'q')".to_owned(),
                    1 => "select trunkline.grant_rights('at_once_1', 'operator')".to_owned(),
                    2 => format!("select trunkline.create_queue('new_{round}'), trunkline.alter_queue('q', 5), trunkline.drop_queue('at_{round}')"),
                    _ => "select trunkline.revoke_rights('at_once_3'), trunkline.alter_queue('q', 6)".to_owned(),
                };
                if nr == 2 && round == 4 {
                    sql.batch_execute("update trunkline.version set functions = ''").await.expect("older");
                    owner.migrate().await.expect("migrated");
                } else {
                    sql.batch_execute(&change).await.unwrap_or_else(|error| panic!("{change}: {error:?}"));
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("nothing failed");
    }
    let all = "select count(*) = 0 from trunkline.queue where not has_table_privilege('at_once_1', 'trunkline.queue_' || name, 'delete')";
    assert!(
        admin.query_one(all, &[]).await.expect("counted").get::<_, bool>(0),
        "rights reach what was created meanwhile"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn consumer_turned_producer_loses_the_rights_of_a_consumer() {
    let Place { sql: admin, url, .. } = place::<i64>(Settings::new("int8")).await;
    admin.batch_execute("select trunkline.create_queue('other', 'int8')").await.expect("created");
    let (db, sql) = role("a_former_consumer", "consumer", &admin, &url).await;
    admin
        .batch_execute(
            "select trunkline.grant_rights('a_former_consumer', 'producer', 'other'), trunkline.revoke_rights('a_former_consumer', 'q')",
        )
        .await
        .expect("changed");
    db.queue::<i64>("other").await.expect("opened").enqueue(1).await.expect("enqueued");
    refused(
        &sql,
        &["update trunkline.floor set reached = now()", "delete from trunkline.waiting", "select trunkline.take('q')"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn owner_and_missing_roles_gain_and_lose_no_rights() {
    let Place { sql: admin, .. } = place::<i64>(Settings::new("int8")).await;
    for call in [
        "select trunkline.grant_rights('-', 'producer')",
        "select trunkline.revoke_rights('-')",
        "select trunkline.revoke_rights(null)",
        "select trunkline.grant_rights((select relowner from pg_class where oid = 'trunkline.queue'::regclass)::regrole, 'consumer')",
        "select trunkline.revoke_rights((select relowner from pg_class where oid = 'trunkline.queue'::regclass)::regrole)",
    ] {
        let error = admin.batch_execute(call).await.expect_err(call);
        assert!(error.as_db_error().is_some_and(|error| error.hint().is_some()), "{call}: {error:?}");
    }
}
