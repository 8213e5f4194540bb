//! The plan of every statement is the same for an empty, a full, a never analysed and a bloated table.
//!
//! Postgres itself says what it plans (`debug_print_plan`), inside functions too, on any build: no module is needed.

use std::{collections::BTreeSet, time::SystemTime};

use futures_util::{StreamExt, stream};
use postgres_types::Timestamp;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, NoTls, types::ToSql};
use trunkline::{Db, Metadata, Settings};

use crate::fixture::{connect, database};

/// A node of a plan as Postgres prints it: `{NAME :field value … {CHILD …} …}`.
#[derive(Debug, Default)]
struct Node {
    name: String,
    /// The fields of the node itself, and those of what is in it.
    text: String,
    inner: Vec<Node>,
}

impl Node {
    fn parse(text: &str) -> Self {
        let mut open = vec![Self::default()];
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}', '\\']) {
            let (before, from) = rest.split_at(at);
            let node = open.last_mut().expect("the root stays");
            node.text.push_str(before);
            rest = &from[1..];
            match &from[..1] {
                "\\" => rest = rest.get(1..).unwrap_or_default(), // in a constant's name
                "{" => {
                    let name = rest.split([' ', '}']).next().unwrap_or_default().to_owned();
                    open.push(Self { name, ..Self::default() });
                }
                _ => {
                    let done = open.pop().expect("as many ends as beginnings");
                    open.last_mut().expect("the root stays").inner.push(done);
                }
            }
        }
        assert_eq!(open.len(), 1, "as many beginnings as ends");
        open.remove(0)
    }

    /// This node and everything in it.
    fn all(&self) -> Vec<&Self> {
        std::iter::once(self).chain(self.inner.iter().flat_map(Self::all)).collect()
    }

    /// Reads from a table, in whatever way.
    fn is_scan(&self) -> bool {
        ["SEQSCAN", "INDEXSCAN", "INDEXONLYSCAN", "BITMAPHEAPSCAN", "TIDSCAN", "SAMPLESCAN"].contains(&&*self.name)
    }

    fn index(&self) -> Option<&str> {
        self.text.split_once(":indexid ")?.1.split(' ').next()
    }
}

/// A connection that plans afresh and tells what.
struct Planner {
    client: Client,
    plans: mpsc::UnboundedReceiver<String>,
}

impl Planner {
    async fn connect(url: &str) -> Self {
        let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.expect("connected");
        let (sender, plans) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notice(notice) = message
                    && let Some(plan) = notice.detail().filter(|detail| detail.starts_with("{PLANNEDSTMT"))
                {
                    let _ = sender.send(plan.replace('\n', " ")); // the test is over
                }
            }
        });
        let tell = "set debug_print_plan = on; set debug_pretty_print = off; set client_min_messages = log";
        client.batch_execute(tell).await.expect("set");
        Self { client, plans }
    }

    /// The plans of one call, in a transaction that is rolled back: those that touch one of the relations.
    async fn plans_of(mut self, sql: &str, params: &[&(dyn ToSql + Sync)], relations: &[String]) -> Vec<Node> {
        let sql = sql.replace('{', "\"").replace("_}", "_q\"");
        self.client.batch_execute("begin").await.expect("begun");
        self.client.query(&sql, params).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        self.client.batch_execute("rollback").await.expect("rolled back");
        drop(self.client);
        let mut plans = Vec::new();
        while let Some(plan) = self.plans.recv().await {
            if relations.iter().any(|oid| plan.contains(&format!(":relid {oid} "))) {
                plans.push(Node::parse(&plan));
            }
        }
        plans
    }
}

/// What the library prepares: name, text, parameters, and the ways to the table, of which the first has to be used.
/// `TIDSCAN` is the way to a row that is locked already.
type Statement<'a> = (&'a str, &'a str, Vec<&'a (dyn ToSql + Sync)>, &'a [&'a str]);

/// What is wrong with the plans on the table as it is. Ten rows are under a lease of the first attempt.
async fn wrong(url: &str, sql: &Client, state: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let oids = |names: &'static str| async move {
        let oids = "select c.relname, c.oid::text from pg_class c
                    where c.relnamespace = 'trunkline'::regnamespace and c.relname like any (string_to_array($1, ' '))";
        let rows = sql.query(oids, &[&names]).await.expect("listed");
        rows.iter().map(|row| (row.get(0), row.get(1))).collect::<Vec<(String, String)>>()
    };
    let tables: Vec<String> = oids("queue_q dead_q archive_q").await.into_iter().map(|(_, oid)| oid).collect();
    let indexes = oids("due_q key_q deadkey_q archivekey_q age_q").await;

    let leased = "select coalesce(array_agg(id), '{}') from (
                  select id from trunkline.queue_q where attempt = 1 order by id limit 10) leased";
    let mut ids: Vec<i64> = sql.query_one(leased, &[]).await.expect("listed").get(0);
    ids.push(7); // which is nowhere, so that the function looks for a row to carve too
    let sizes = vec![1_i32; ids.len()];
    let (delays, errors) = (vec![0_f64; ids.len()], vec!["x"; ids.len()]);
    let (five, one, many, far) = (5_i32, 1_i32, 100_i64, Timestamp::<SystemTime>::NegInfinity);
    let (none, zero, id) = (None::<f64>, 0_f64, 0_i64);
    let (payload, metadata) = (vec![1_i64], vec![Metadata::new().with("a", "b")]);
    let settle: [&(dyn ToSql + Sync); 3] = [&ids, &sizes, &sizes];
    let fail: Vec<&(dyn ToSql + Sync)> = [&settle[..], &[&delays, &errors]].concat();
    let (due, pk) = (&["due_q"][..], &["key_q", "TIDSCAN"][..]);
    let due_first = &["due_q", "key_q", "TIDSCAN"][..];
    let statements: [Statement<'_>; 20] = [
        ("take", include_str!("../../sql/take.sql"), vec![&five, &far, &one, &true], due_first),
        ("take uncut", include_str!("../../sql/take.sql"), vec![&five, &far, &one, &false], due_first),
        ("cut", include_str!("../../sql/cut.sql"), vec![&five, &far], due),
        ("lease", include_str!("../../sql/lease.sql"), vec![&five, &none, &far, &one], due_first),
        ("lease_apart", include_str!("../../sql/lease_apart.sql"), vec![&five, &none, &far, &one], due_first),
        ("look", include_str!("../../sql/look.sql"), vec![&far], due),
        ("ack", include_str!("../../sql/ack.sql"), settle.to_vec(), pk),
        ("archive", include_str!("../../sql/archive.sql"), settle.to_vec(), pk),
        ("release", include_str!("../../sql/release.sql"), settle.to_vec(), pk),
        ("extend", include_str!("../../sql/extend.sql"), [&settle[..], &[&30_f64]].concat(), pk),
        ("retry", include_str!("../../sql/retry.sql"), fail.clone(), pk),
        ("bury", include_str!("../../sql/bury.sql"), [&settle[..], &[&errors]].concat(), pk),
        ("charge", include_str!("../../sql/charge.sql"), fail, pk),
        ("carve", include_str!("../../sql/carve.sql"), settle.to_vec(), pk),
        ("enqueue", include_str!("../../sql/enqueue.sql"), vec![&zero, &one, &payload], &[]),
        ("enqueue_with", include_str!("../../sql/enqueue_with.sql"), vec![&zero, &one, &payload, &metadata], &[]),
        ("enqueue_in", include_str!("../../sql/enqueue_in.sql"), vec![&payload, &zero, &metadata], &[]),
        ("peek", include_str!("../../sql/peek.sql"), vec![&far, &id, &many], due),
        ("dead", include_str!("../../sql/dead.sql"), vec![&id, &many], &["deadkey_q"]),
        ("archived", include_str!("../../sql/archived.sql"), vec![&id, &many], &["archivekey_q"]),
    ];
    for (name, text, params, may_use) in statements {
        if state.starts_with("empty") && ["dead", "archived"].contains(&name) {
            continue; // plain statements, on tables that hold nothing
        }
        let plans = Planner::connect(url).await.plans_of(text, &params, &tables).await;
        assert!(!plans.is_empty(), "{state}: {name} planned nothing");
        let mut used = BTreeSet::new();
        for node in plans.iter().flat_map(Node::all) {
            if node.is_scan() {
                let index = indexes.iter().find(|(_, oid)| node.index() == Some(oid)).map(|(name, _)| &**name);
                used.insert(index.unwrap_or(&node.name));
            }
            let gathers = ["SORT", "INCREMENTALSORT", "HASH", "AGG", "MATERIAL"].contains(&&*node.name);
            if gathers && node.all().into_iter().any(Node::is_scan) {
                wrong.push(format!("{state}: {name} has a {} over the table", node.name));
            }
        }
        if !used.iter().all(|used| may_use.contains(used)) || !may_use.first().is_none_or(|first| used.contains(first))
        {
            wrong.push(format!("{state}: {name} uses {used:?}, not {may_use:?}"));
        }
    }
    wrong
}

/// A backlog, ten leased rows in it, and dead letters and an archive beside it.
async fn fill(sql: &Client, rows: i32) {
    let fill = format!(
        "select setval('trunkline.id_q', 1024 * {rows}::bigint);
        insert into trunkline.queue_q (id, due_at, attempt, size, payload)
        select i * 1024, now() + case when i % ({rows} / 10) = 0 then interval '1 hour' else interval '1 us' * (i - {rows}) end,
               (i % ({rows} / 10) = 0)::int, 1, '{{1}}' from generate_series(1::bigint, {rows}) i;
        insert into trunkline.dead_q (id, enqueued_at, attempt, error, payload)
        select i, now(), 1, '', 1 from generate_series(1, 5000) i;
        insert into trunkline.archive_q (id, enqueued_at, attempt, payload) select i, now(), 1, 1 from generate_series(1, 5000) i"
    );
    sql.batch_execute(&fill).await.expect("filled");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_statement_has_one_plan_whatever_the_table_is_like() {
    let url = database().await;
    let (sql, old) = (connect(&url).await, connect(&url).await);
    Db::connect(&url).await.expect("connected").create_queue("q", &Settings::new("int8")).await.expect("created");
    // Whether the table was analysed is decided here.
    sql.batch_execute("alter table trunkline.queue_q set (autovacuum_enabled = off)").await.expect("altered");
    let mut found = wrong(&url, &sql, "empty").await;
    sql.batch_execute("analyze trunkline.queue_q").await.expect("analysed");
    found.extend(wrong(&url, &sql, "empty and analysed").await);

    fill(&sql, 1_000_000).await;
    found.extend(wrong(&url, &sql, "full, analysed when it was empty").await);
    sql.batch_execute("analyze").await.expect("analysed");
    found.extend(wrong(&url, &sql, "full and analysed").await);

    old.batch_execute("begin isolation level repeatable read; select 1 from trunkline.queue").await.expect("held");
    sql.batch_execute("delete from trunkline.queue_q where attempt = 0 and id % 51200 <> 0").await.expect("deleted");
    found.extend(wrong(&url, &sql, "bloated, analysed when it was full").await);
    sql.batch_execute("analyze").await.expect("analysed");
    found.extend(wrong(&url, &sql, "bloated and analysed").await);
    assert!(found.is_empty(), "{found:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_table_that_was_never_analysed_is_no_other() {
    let url = database().await;
    let sql = connect(&url).await;
    Db::connect(&url).await.expect("connected").create_queue("q", &Settings::new("int8")).await.expect("created");
    sql.batch_execute("alter table trunkline.queue_q set (autovacuum_enabled = off)").await.expect("altered");
    fill(&sql, 100_000).await;
    let found = wrong(&url, &sql, "full and never analysed").await;
    assert!(found.is_empty(), "{found:#?}");
}
