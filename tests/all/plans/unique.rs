//! Tests the plans of queues with unique keys: keys and ended messages are found through indexes in
//! every state of the tables.

use trunkline::Settings;

use super::{
    faults, fill,
    list::{
        self, Planned,
        Way::{self, Along},
    },
    oids, planners, queue, read,
};
use crate::fixture::{connect, database};

const CLAIM: Way = Along(&["uniquekey_q", "key_q", "TIDSCAN", "TIDRANGESCAN"]);
const FREED: Way = Along(&["uniqueid_q", "due_q", "key_q", "TIDSCAN", "TIDRANGESCAN", "pk_floor"]);

/// Statements of queues with unique keys. The first statement uses a free key; in the others, some
/// keys are taken.
pub const WITH_UNIQUENESS: &[Planned] = &[
    ("enqueue_unique", "'{1}', '{0}', null, '{0}', '{a}', '{null}', '{f}'", CLAIM),
    ("enqueue_unique", "'{1,2}', '{0,0}', null, '{0,0}', '{k2048,k3072}', '{null,60}', '{f,t}'", CLAIM),
    ("enqueue_unique", "'{1,2}', '{0,0}', null, '{0,0}', '{b,c}', '{null,60}', '{f,f}'", CLAIM),
    ("enqueue_unique", "'{1}', '{0}', null, '{0}', '{past}', '{60}', '{f}'", CLAIM),
    ("enqueue_unique_waiting", "'{1}', '{0}', null, '{0}', '{j}', '{null}', '{f}'", CLAIM),
    ("enqueue_in_unique", "'{1}', '{0}', null, '{0}', '{d}', '{null}', '{f}'", CLAIM),
];

/// The files of `sql/functions` for queues with unique keys, and the functions that end messages.
pub const VERBS_WITH_UNIQUENESS: &[Planned] = &[
    ("enqueue_unique", "trunkline.enqueue_unique('q', 1::bigint, 'e')", CLAIM),
    ("enqueue_unique_text", "trunkline.enqueue_unique('q', '1'::text, 'f')", CLAIM),
    ("enqueue_unique_many", "trunkline.enqueue_unique_many('q', '{1}'::bigint[], '{g}')", CLAIM),
    ("enqueue_unique_many_texts", "trunkline.enqueue_unique_many('q', '{1}'::text[], '{h}')", CLAIM),
    ("enqueue_unique_many_text", "trunkline.enqueue_unique_many('q', '{1}', '{i}')", CLAIM),
    ("enqueue_unique_many_varchars", "trunkline.enqueue_unique_many('q', '{1}'::varchar[], '{j}')", CLAIM),
    ("prune_keys", "trunkline.prune_keys('q')", Along(&["TIDRANGESCAN", "TIDSCAN"])),
    ("take", "trunkline.take('q', 5)", FREED),
    ("ack_many", "trunkline.ack_many('q', IDS, ONES)", FREED),
    ("cancel", "trunkline.cancel('q', IDS)", FREED),
];

const INDEXES: &str = "due_q key_q uniquekey_q uniqueid_q pk_floor";

async fn wrong(url: &str, state: &str) -> Vec<String> {
    let sql = connect(url).await;
    let mut planners = planners(url, &oids(&sql, "queue_q unique_q floor").await.into_keys().collect()).await;
    let indexes = oids(&sql, INDEXES).await;
    let leased = "select coalesce(array_agg(id), '{}') from (
                  select id from trunkline.queue_q where attempt = 1 and size = 1 order by id limit 10) leased";
    let mut ids: Vec<i64> = sql.query_one(leased, &[]).await.expect("listed").get(0);
    ids.push(5_000_000_000_007);
    let array = |values: Vec<String>| format!("'{{{}}}'", values.join(","));
    let filled = |call: &str| {
        call.replace("IDS", &array(ids.iter().map(i64::to_string).collect()))
            .replace("ONES", &array(ids.iter().map(|_| "1".to_owned()).collect()))
    };
    let statements = WITH_UNIQUENESS.iter().map(|(file, params, way)| {
        let text = read("sql/statements", file).replace('{', "\"").replace("_}", "_q\"");
        (*file, format!("prepare s as {text}; execute s({params})"), *way)
    });
    let verbs =
        VERBS_WITH_UNIQUENESS.iter().map(|(file, call, way)| (*file, format!("select * from {}", filled(call)), *way));
    let mut wrong = Vec::new();
    for (file, call, way) in statements.chain(verbs) {
        for (cache, planner) in &mut planners {
            // Commits no call, so that the calls do not depend on each other. A loop over the given
            // messages is not a scan of a table.
            let planned = planner.plan(&call).await;
            // Only checks that no table is read to its end. Other tests check the rest of a verb's
            // plans.
            let way = match way {
                list::Way::Along(ways) => list::Way::Either(ways),
                way => way,
            };
            wrong.extend(
                faults(&planned, way, &indexes, true)
                    .iter()
                    .map(|fault| format!("{state}, {cache}: {file} {call} {fault}")),
            );
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread")]
async fn key_is_found_along_its_index_in_any_table_state() {
    let url = database().await;
    let (sql, old) = (connect(&url).await, connect(&url).await);
    queue(&url, &sql, Settings::new("int8").uniqueness(true)).await;
    sql.batch_execute("alter table trunkline.unique_q set (autovacuum_enabled = off)").await.expect("altered");
    let past = "insert into trunkline.unique_q (key, id, until) values ('past', 7, now() - interval '1 hour') on conflict do nothing";
    sql.batch_execute(past).await.expect("inserted");
    let mut found = wrong(&url, "empty").await;
    sql.batch_execute("analyze trunkline.queue_q, trunkline.unique_q").await.expect("analysed");
    found.extend(wrong(&url, "empty and analysed").await);
    fill(&sql, 100_000).await;
    sql.batch_execute("insert into trunkline.unique_q (key, id) select 'k' || id, id from trunkline.queue_q")
        .await
        .expect("filled");
    found.extend(wrong(&url, "full, analysed when it was empty").await);
    sql.batch_execute("analyze").await.expect("analysed");
    found.extend(wrong(&url, "full and analysed").await);
    old.batch_execute("begin isolation level repeatable read; select 1 from trunkline.queue").await.expect("held");
    sql.batch_execute("delete from trunkline.queue_q where attempt = 0 and id > 102400").await.expect("deleted");
    let left: i64 = sql.query_one("select count(*) from trunkline.unique_q", &[]).await.expect("counted").get(0);
    assert!(left < 20_000, "{left} keys are left");
    found.extend(wrong(&url, "bloated, analysed when it was full").await);
    assert!(found.is_empty(), "{found:#?}");
}
