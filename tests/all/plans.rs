//! The plan of every statement is the same for an empty, a full, a never analysed and a bloated
//! table.
//!
//! PostgreSQL itself prints its plans (`debug_print_plan`), including the plans inside functions.
//! So the tests need no extension, and work with any build.

mod keys;
mod apart;
mod list;
mod node;
mod planner;
mod unique;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use tokio_postgres::Client;
use trunkline::{Db, Settings};

use self::{
    apart::{FUNCTIONS_APART, TEMPLATES_APART},
    list::{RARE, STATEMENTS, STATEMENTS_APART, VERBS, WITH_PRIORITIES, Way},
    node::Node,
    planner::{Planned, Planner, without_log},
};
use crate::fixture::{connect, database};
use crate::house::{files, root};

/// The tables that grow with traffic.
const TABLES: &str = "queue_q dead_q archive_q waiting floor schedule";
const INDEXES: &str = "due_q key_q deadkey_q archivekey_q age_q pk_waiting waiting_by_queue pk_floor pk_dropped pk_schedule \
                       schedule_by_next schedule_by_placed leased_q";

fn read(folder: &str, file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(file).with_extension("sql");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the paths of the files in a folder, relative to the folder and without extensions.
fn names(folder: &str) -> BTreeSet<String> {
    let inside = |path: PathBuf| path.strip_prefix(root().join(folder)).expect("in it").with_extension("");
    files(folder, "sql").into_iter().map(|path| inside(path).to_string_lossy().into_owned()).collect()
}

/// Returns the functions of `sql/queue` that queues with these parts have for normal operation.
fn functions_of(parts: &[&str]) -> BTreeSet<String> {
    let names = parts.iter().flat_map(|part| names(&format!("sql/queue/{part}")));
    let apart = apart(TEMPLATES_APART);
    names.filter(|name| !apart.contains(name)).map(|name| format!("do_{name}_q")).collect()
}

/// Returns the queue's functions that were called.
async fn called_of(sql: &Client, called: &BTreeSet<u32>) -> BTreeSet<String> {
    let functions = "select p.oid, p.proname::text from pg_proc p
                     where p.pronamespace = 'trunkline'::regnamespace and p.proname ~ '^do_.*_q$'";
    let functions = sql.query(functions, &[]).await.expect("listed");
    functions.iter().filter(|row| called.contains(&row.get(0))).map(|row| row.get(1)).collect()
}

/// Returns the names in a list of exceptions.
fn apart(list: &[(&str, &[&str])]) -> BTreeSet<String> {
    list.iter().flat_map(|(_, names)| *names).map(|name| (*name).to_owned()).collect()
}

#[test]
fn every_sql_file_has_a_plan_or_a_reason() {
    for (folder, listed, reasons) in
        [("sql/statements", STATEMENTS, STATEMENTS_APART), ("sql/functions", VERBS, FUNCTIONS_APART)]
    {
        let more = if folder == "sql/statements" {
            [WITH_PRIORITIES, unique::WITH_UNIQUENESS, keys::STATEMENTS]
        } else {
            [&[], &[], unique::VERBS_WITH_UNIQUENESS]
        };
        let listed: BTreeSet<_> =
            listed.iter().chain(more.into_iter().flatten()).map(|(name, ..)| (*name).to_owned()).collect();
        let reasons = apart(reasons);
        assert!(listed.is_disjoint(&reasons), "{folder}: listed twice");
        assert_eq!(names(folder), &listed | &reasons, "{folder}");
    }
}

/// Returns the objects of the schema whose names are in the list or match it.
async fn oids(sql: &Client, names: &str) -> BTreeMap<u32, String> {
    let oids = "select c.oid, c.relname::text from pg_class c
                where c.relnamespace = 'trunkline'::regnamespace and c.relname = any (string_to_array($1, ' '))";
    sql.query(oids, &[&names]).await.expect("listed").iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Returns the calls of the list, with their placeholders filled for the current table. In this
/// table, ten rows have a lease of the first attempt.
async fn calls(sql: &Client) -> Vec<(String, String, Way)> {
    let priorities = "select priorities from trunkline.queue where name = 'q'";
    let is_laned = sql.query_one(priorities, &[]).await.expect("read").get::<_, i32>(0) > 1;
    let leased = "select coalesce(array_agg(id), '{}') from (
                  select id from trunkline.queue_q where attempt = 1 and size = 1 order by id limit 10) leased";
    let mut ids: Vec<i64> = sql.query_one(leased, &[]).await.expect("listed").get(0);
    ids.push(5_000_000_000_007);
    let fill = |text: &str| {
        let array = |value: &str| format!("'{{{}}}'", vec![value; ids.len()].join(","));
        let ids: Vec<_> = ids.iter().map(i64::to_string).collect();
        text.replace("IDS", &format!("'{{{}}}'", ids.join(",")))
            .replace("ONES", &array("1"))
            .replace("ZEROS", &array("0"))
            .replace("TEXTS", &array("x"))
            .replace("LETTERS", "'{6000000000003,6000000000004,6000000004999,7000000000000}'")
    };
    let takes_floors = ["take", "cut", "lease", "lease_together", "look", "sweep"];
    let with_priorities = if is_laned { WITH_PRIORITIES } else { &[] };
    let statements = STATEMENTS.iter().chain(with_priorities);
    let statements = statements.filter(|(file, ..)| !(is_laned && file.starts_with("plain/")));
    let statements = statements.map(|(file, params, way)| {
        let params = match is_laned && takes_floors.contains(file) {
            true => params
                .replace("'-infinity'", "array_fill(timestamptz '-infinity', array[4])")
                .replace("now()", "array_fill(now(), array[4])"),
            false => (*params).to_owned(),
        };
        let text = read("sql/statements", file).replace('{', "\"").replace("_}", "_q\"");
        let execute = if params.is_empty() { "execute s".to_owned() } else { format!("execute s({})", fill(&params)) };
        (format!("sql/statements/{file} ({params})"), format!("prepare s as {text}; {execute}"), *way)
    });
    let verbs = VERBS.iter().map(|(_, call, way)| ((*call).to_owned(), format!("select * from {}", fill(call)), *way));
    let rare = RARE.iter().map(|(name, call, way)| ((*name).to_owned(), (*call).to_owned(), *way));
    statements.chain(verbs).chain(rare).collect()
}

/// Returns the faults of a call's plans.
fn faults(planned: &Planned, way: Way, indexes: &BTreeMap<u32, String>, is_laned: bool) -> Vec<String> {
    let (may_use, first) = match way {
        _ if planned.plans.is_empty() => return vec!["planned nothing".to_owned()],
        Way::Along(ways) => (ways, ways.first()),
        Way::Either(ways) => (ways, None),
        Way::NoRows => (&[][..], None),
        Way::All(reason) => {
            assert!(!reason.is_empty(), "a reason to read everything");
            return Vec::new();
        }
    };
    let (mut faults, mut used) = (Vec::new(), BTreeSet::new());
    // Accepts scans that are bounded in any plan: a range of pages, rows by their addresses, and
    // leased messages, whose number is limited.
    let index = |node: &Node| node.index().and_then(|oid| indexes.get(&oid.parse().ok()?));
    let is_bounded = |node: &Node| {
        ["TIDRANGESCAN", "TIDSCAN"].contains(&&*node.name) || index(node).is_some_and(|name| name == "leased_q")
    };
    for node in planned.plans.iter().flat_map(|plan| plan.all()) {
        if node.is_scan() {
            used.insert(index(node).map_or(&*node.name, |name| &**name));
        }
        // Ignores priorities, because their comparison covers only the first row of each, and there
        // are at most ten.
        if !is_laned && node.gathers() && node.all().into_iter().any(|node| node.is_scan() && !is_bounded(node)) {
            faults.push(format!("has a {} over the table", node.name));
        }
    }
    // The index `leased_q` exists only in a queue with limits.
    if !used.iter().all(|used| may_use.contains(used) || *used == "leased_q")
        || !first.is_none_or(|first| used.contains(first))
    {
        faults.push(format!("uses {used:?}, not {may_use:?}"));
    }
    faults
}

/// Returns a connection for each kind of plan, with its name.
async fn planners(url: &str, tables: &BTreeSet<u32>) -> [(&'static str, Planner); 2] {
    let [custom, generic] = ["force_custom_plan", "force_generic_plan"];
    [
        (custom, Planner::connect(url, custom, tables.clone()).await),
        (generic, Planner::connect(url, generic, tables.clone()).await),
    ]
}

/// Returns the faults of all plans on the current tables, and the functions that were called.
async fn wrong(url: &str, sql: &Client, state: &str) -> (Vec<String>, BTreeSet<u32>) {
    let (mut wrong, mut called) = (Vec::new(), BTreeSet::new());
    let tables: BTreeSet<u32> = oids(sql, TABLES).await.into_keys().collect();
    let indexes = oids(sql, INDEXES).await;
    let priorities = "select priorities from trunkline.queue where name = 'q'";
    let is_laned = sql.query_one(priorities, &[]).await.expect("read").get::<_, i32>(0) > 1;
    let is_limited = indexes.values().any(|name| name == "leased_q");
    assert_eq!((tables.len(), indexes.len() - usize::from(is_limited)), (6, 12));
    let mut planners = planners(url, &tables).await;
    for (name, call, way) in calls(sql).await {
        if is_limited && name.contains("send_") {
            continue; // a queue with limits has no direct delivery
        }
        // Calls that read everything are slow, so one cache mode is enough for them.
        let modes = if matches!(way, Way::All(_)) { 1 } else { 2 };
        for (cache, planner) in planners.iter_mut().take(modes) {
            let planned = planner.plan(&call).await;
            wrong.extend(
                faults(&planned, way, &indexes, is_laned)
                    .iter()
                    .map(|fault| format!("{state}, {cache}: {name} {fault}")),
            );
            called.extend(planned.calls);
        }
    }
    (wrong, called)
}

/// Creates a queue whose tables are analysed only when the test does so.
async fn queue(url: &str, sql: &Client, settings: Settings) {
    without_log(url).await;
    Db::connect(url).await.expect("connected").create_queue("q", &settings).await.expect("created");
    for table in TABLES.split(' ') {
        let off = format!("alter table trunkline.{table} set (autovacuum_enabled = off)");
        sql.batch_execute(&off).await.expect("altered");
    }
}

/// Fills a backlog, ten leased rows (one of them with three messages), dead letters and an archive.
/// Also adds other waiting consumers and other queues' floors.
async fn fill(sql: &Client, rows: i32) {
    let fill = format!(
        "select setval('trunkline.id_q', 1024 * {rows}::bigint);
        insert into trunkline.queue_q (id, due_at, attempt, size, payload)
        select i * 1024, now() + case when i % ({rows} / 10) = 0 then interval '1 hour' else interval '1 us' * (i - {rows}) end,
               (i % ({rows} / 10) = 0)::int, 1, '{{1}}' from generate_series(1::bigint, {rows}) i;
        insert into trunkline.queue_q (id, due_at, attempt, size, payload)
        values (3072000001024, now() + interval '1 hour', 1, 3, '{{1,2,3}}');
        insert into trunkline.dead_q (id, enqueued_at, attempt, error, payload)
        select 6000000000000 + i, now(), 1, '', 1 from generate_series(1, 5000) i;
        insert into trunkline.archive_q (id, enqueued_at, attempt, payload) select i, now(), 1, 1 from generate_series(1, 5000) i;
        insert into trunkline.waiting (consumer, queue, alive)
        select 'c' || i, case i % 500 when 0 then 'q' else 'another' end, i from generate_series(1, 5000) i;
        insert into trunkline.floor (queue) select 'q' || i from generate_series(1, 5000) i;
        insert into trunkline.schedule (name, queue, expression, zone, payload, missed, next_at)
        select 's' || i, 'q', '@daily', 'UTC', '1', 'once', now() + i * interval '1 s' from generate_series(1, 5000) i"
    );
    sql.batch_execute(&fill).await.expect("filled");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_statement_has_one_plan_whatever_the_table_is_like() {
    let url = database().await;
    let (sql, old) = (connect(&url).await, connect(&url).await);
    queue(&url, &sql, Settings::new("int8")).await;
    let mut found = wrong(&url, &sql, "empty").await.0;
    let analyze = format!("analyze trunkline.{}", TABLES.replace(' ', ", trunkline."));
    sql.batch_execute(&analyze).await.expect("analysed");
    found.extend(wrong(&url, &sql, "empty and analysed").await.0);

    fill(&sql, 1_000_000).await;
    found.extend(wrong(&url, &sql, "full, analysed when it was empty").await.0);
    sql.batch_execute("analyze").await.expect("analysed");
    found.extend(wrong(&url, &sql, "full and analysed").await.0);

    old.batch_execute("begin isolation level repeatable read; select 1 from trunkline.queue").await.expect("held");
    sql.batch_execute(
        "delete from trunkline.queue_q where attempt = 0 and id % 51200 <> 0;
         delete from trunkline.dead_q where id % 1000 <> 4; delete from trunkline.archive_q where id % 1000 <> 4;
         delete from trunkline.waiting where queue <> 'q'; delete from trunkline.floor where queue <> 'q';
         delete from trunkline.schedule where name <> 's4999'",
    )
    .await
    .expect("deleted");
    found.extend(wrong(&url, &sql, "bloated, analysed when it was full").await.0);
    sql.batch_execute("analyze").await.expect("analysed");
    found.extend(wrong(&url, &sql, "bloated and analysed").await.0);
    assert!(found.is_empty(), "{found:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_table_that_was_never_analysed_is_no_other() {
    let url = database().await;
    let sql = connect(&url).await;
    queue(&url, &sql, Settings::new("int8")).await;
    fill(&sql, 100_000).await;
    let (mut found, mut called) = wrong(&url, &sql, "full and never analysed").await;
    sql.batch_execute("select trunkline.limit_queue('q', max_leased => 1000000, per_second => 1e6)")
        .await
        .expect("limited");
    let (found_with_limits, called_with_limits) = wrong(&url, &sql, "full, with limits").await;
    found.extend(found_with_limits);
    called.extend(called_with_limits);

    let url = database().await;
    let with_priorities = connect(&url).await;
    queue(&url, &with_priorities, Settings::new("int8").priorities(4)).await;
    fill(&with_priorities, 100_000).await;
    with_priorities.batch_execute("update trunkline.queue_q set lane = id / 1024 % 4").await.expect("updated");
    let (found_with_priorities, called_with_priorities) = wrong(&url, &with_priorities, "full, with priorities").await;
    found.extend(found_with_priorities);
    assert!(found.is_empty(), "{found:#?}");

    let wanted = functions_of(&["common", "plain", "unpartitioned", "limited"]);
    assert_eq!(called_of(&sql, &called).await, wanted, "planned");
    let wanted = functions_of(&["common", "priority", "unpartitioned"]);
    assert_eq!(called_of(&with_priorities, &called_with_priorities).await, wanted, "planned");
}
