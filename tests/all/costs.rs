//! The cost of statements in pages. Page counts do not depend on the speed or the load of the
//! machine.

use tokio_postgres::Client;
use trunkline::{Db, Limits, Settings};

use crate::fixture::{connect, database};

/// Counts the pages that a query touches, including pages inside functions. Rolls the query back.
pub async fn pages(sql: &Client, query: &str) -> i64 {
    sql.batch_execute("begin").await.expect("begun");
    let explain = format!("explain (analyze, buffers, format json) {query}");
    let plan: serde_json::Value = sql.query_one(&explain, &[]).await.expect("explained").get(0);
    sql.batch_execute("rollback").await.expect("rolled back");
    let count = |name: &str| plan[0]["Plan"][name].as_i64().expect("counted");
    count("Shared Hit Blocks") + count("Shared Read Blocks")
}

async fn queue() -> Client {
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("q", &Settings::new("int8").max_attempts(2)).await.expect("created");
    let sql = connect(&url).await;
    // Turns autovacuum off, so that dead rows stay between two measurements.
    sql.batch_execute("alter table trunkline.queue_q set (autovacuum_enabled = off)").await.expect("altered");
    sql
}

const VERBS: [(&str, &str); 7] = [
    ("ack", ""),
    ("archive", ""),
    ("release", ""),
    ("extend", ", interval '1 minute'"),
    ("bury", ", array_fill('x'::text, array[cardinality(a.ids)])"),
    (
        "retry",
        ", array_fill(interval '0', array[cardinality(a.ids)]), array_fill('x'::text, array[cardinality(a.ids)])",
    ),
    (
        "charge",
        ", array_fill(interval '0', array[cardinality(a.ids)]), array_fill('x'::text, array[cardinality(a.ids)])",
    ),
];

/// The calls acknowledge five thousand ranges of one message. The ranges are whole rows or pieces
/// of shared rows, in order or scattered.
#[tokio::test(flavor = "multi_thread")]
async fn lost_leases_at_most_triple_the_cost_of_each_verb() {
    for (layout, id) in
        [("rows of their own", "i * 1024"), ("every other piece of a row", "i / 512 * 1024 + i % 512 * 2")]
    {
        let sql = queue().await;
        let fill = format!(
            "insert into trunkline.queue_q (id, due_at, attempt, size, payload)
             select {id}, now() + interval '1 hour', 1, 1, '{{1}}' from generate_series(1024, 6143) i;
             create table asked as
             select array_agg(id order by id) as ids, array_agg(1 order by id) as sizes, array_agg(1 order by id) as attempts from trunkline.queue_q
             union all
             select array_agg(id order by id % 7919, id), array_agg(1), array_agg(1) from trunkline.queue_q"
        );
        sql.batch_execute(&fill).await.expect("filled");
        let call = |verb: &str, more: &str| {
            format!("select count(*) from asked a, trunkline.do_{verb}_q(a.ids, a.sizes, a.attempts {more}) d")
        };
        let none_lost = cost_of_all(&sql, call).await;
        // Makes a tenth of the leases lost: deletes half of their messages, and leases the other
        // half by another holder.
        sql.batch_execute(
            "delete from trunkline.queue_q where id / 2 % 20 = 3;
             update trunkline.queue_q set attempt = 2 where id / 2 % 20 = 13 or id / 1024 % 20 = 13",
        )
        .await
        .expect("lost");
        let tenth_lost = cost_of_all(&sql, call).await;
        for ((verb, _), (none, tenth)) in VERBS.iter().zip(none_lost.iter().zip(&tenth_lost)) {
            assert!(*tenth <= none * 3, "{layout}: {verb} touched {none} pages, and {tenth} with a tenth lost");
        }
    }
}

async fn cost_of_all(sql: &Client, call: impl Fn(&str, &str) -> String) -> Vec<i64> {
    let mut costs = Vec::new();
    for (verb, more) in VERBS {
        if verb == "charge" {
            // Ends the leases first, because `charge` counts attempts of messages that are not
            // leased.
            sql.batch_execute("update trunkline.queue_q set due_at = now()").await.expect("ran out");
        }
        costs.push(pages(sql, &call(verb, more)).await);
    }
    for again in ["update trunkline.queue_q set due_at = now() + interval '1 hour'", "vacuum trunkline.queue_q"] {
        sql.batch_execute(again).await.expect("leased again");
    }
    costs
}

/// Checks that four times as many messages cost at most five times as much.
async fn is_linear(what: &str, sql: &Client, fill: &str, query: &str) {
    let mut costs = Vec::new();
    for n in [1_000_i64, 4_000] {
        sql.batch_execute(&format!(
            "truncate trunkline.queue_q, trunkline.dead_q; {}",
            fill.replace(":n", &n.to_string())
        ))
        .await
        .expect("filled");
        costs.push(pages(sql, &query.replace(":n", &n.to_string())).await);
    }
    assert!(costs[1] <= costs[0] * 5, "{what}: {} pages for 1,000 and {} for 4,000", costs[0], costs[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn burials_splits_and_leases_cost_what_they_are_given() {
    let sql = queue().await;
    let rows = "insert into trunkline.queue_q (id, due_at, attempt, size, payload)
                select i * 1024, now() - interval '1 second' + i * interval '1 us', ATTEMPT, SIZE, array_fill(1::bigint, array[SIZE])
                from generate_series(1, COUNT) i";
    let rows = |attempt: &str, size: &str, count: &str| {
        rows.replace("ATTEMPT", attempt).replace("SIZE", size).replace("COUNT", count)
    };
    let lease = "select count(*) from trunkline.do_lease_q(:n)";
    is_linear(
        "leases of a last attempt that expired",
        &sql,
        &rows("2", "1", ":n"),
        "select count(*) from trunkline.do_lease_q(1)",
    )
    .await;
    is_linear("every second one", &sql, &rows("(i % 2 * 2)::int", "1", ":n"), lease).await;
    is_linear("leases that expired, alone in their rows", &sql, &rows("1", "1", ":n"), lease).await;
    is_linear("leases that expired, many in a row", &sql, &rows("1", "100", ":n / 100"), lease).await;
    let take = "select count(*) from trunkline.do_take_q(:n)";
    for call in [lease, take] {
        is_linear(&format!("{call}, ten in a row"), &sql, &rows("1", "10", ":n / 10"), call).await;
    }
    is_linear("a lease of everything", &sql, &rows("0", "10", ":n / 10"), lease).await;
    is_linear("a take of everything", &sql, &rows("0", "10", ":n / 10"), take).await;
    let carve = "select trunkline.do_carve_q(array_agg(id), array_agg(1), array_agg(1), true) from (
                 select i * 1024 + k as id from generate_series(1, :n / 8) i, unnest('{100,300,500,700,900,901,950,1000}'::int[]) k) c";
    let leased = rows("1", "1024", ":n / 8").replace("now() -", "now() + interval '1 hour' -");
    is_linear("carving", &sql, &leased, carve).await;
    for verb in ["do_cancel_q(array_agg(id))", "do_reschedule_q(array_agg(id), now())"] {
        let call = carve.replace("do_carve_q(array_agg(id), array_agg(1), array_agg(1), true)", verb);
        is_linear(verb, &sql, &rows("0", "1024", ":n / 8"), &format!("select count(*) from ({call}) c")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_rows_cost_what_they_hold_in_a_queue_with_priorities() {
    let url = database().await;
    let (db, sql) = (Db::connect(&url).await.expect("connected"), connect(&url).await);
    db.create_queue("q", &Settings::new("int8").priorities(2)).await.expect("created");
    sql.batch_execute("alter table trunkline.queue_q set (autovacuum_enabled = off)").await.expect("altered");
    let rows = "insert into trunkline.queue_q (id, due_at, attempt, size, payload, lane)
                select i * 1024, now() - interval '1 second' + i * interval '1 us', 1, 10,
                       array_fill(1::bigint, array[10]), i % 2
                from generate_series(1, :n / 10) i";
    for call in ["do_lease_q", "do_take_q"] {
        is_linear(call, &sql, rows, &format!("select count(*) from trunkline.{call}(:n)")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_that_users_added_cost_every_message_the_same() {
    let sql = queue().await;
    sql.batch_execute("alter table trunkline.queue_q add tenant text default 'acme'").await.expect("added");
    let rows = "insert into trunkline.queue_q (id, due_at, attempt, size, payload)
                select i * 1024, now() - interval '1 second' + i * interval '1 us', 2, 1, '{1}' from generate_series(1, :n) i";
    is_linear("burials", &sql, rows, "select count(*) from trunkline.do_lease_q(1)").await;
    let letters = "insert into trunkline.dead_q (id, enqueued_at, attempt, error, payload, own)
                   select i, now(), 1, '', 1, '{\"tenant\": \"acme\"}' from generate_series(1, :n) i";
    is_linear("replays", &sql, letters, "select trunkline.replay_all('q')").await;
}

/// A sweep of many dead rows reads only a few pages per call, so that no caller waits long.
#[tokio::test(flavor = "multi_thread")]
async fn sweep_of_many_dead_rows_is_made_in_parts() {
    let sql = queue().await;
    sql.batch_execute(
        "insert into trunkline.queue_q (id, due_at, size, payload)
             select i * 1024, now() - interval '1 hour' + i * interval '1 us', 1, '{1}' from generate_series(1, 100000) i;
         delete from trunkline.queue_q where id <> 50000 * 1024",
    )
    .await
    .expect("dead");
    let dead = "select pg_stat_get_dead_tuples('trunkline.queue_q'::regclass) >= 99999";
    let counted = || async { sql.query_one(dead, &[]).await.expect("asked").get(0) };
    crate::fixture::eventually("the statistics have the dead rows", counted).await;
    // Calls the function once before it is measured, because the first call also reads the catalog.
    sql.batch_execute("select * from trunkline.do_sweep_q(now(), 0)").await.expect("swept");
    let (mut page, mut parts, mut strays) = (0_i64, 0, 0);
    loop {
        let sweep = format!("select * from trunkline.do_sweep_q(now(), {page})");
        let cost = pages(&sql, &sweep).await;
        assert!(cost < 400, "a part is small, and touched {cost} pages");
        let row = sql.query_one(&sweep, &[]).await.expect("swept");
        strays += i32::from(row.get::<_, Option<std::time::SystemTime>>(0).is_some());
        (page, parts) = (row.get(1), parts + 1);
        if page == 0 {
            break;
        }
    }
    assert!(parts > 3 && strays == 1, "{parts} parts found {strays}");
}

/// Each block of ids is read only once, no matter how many of its rows are dead.
#[tokio::test(flavor = "multi_thread")]
async fn finding_and_cancelling_cost_the_same_among_dead_rows() {
    let sql = queue().await;
    let fill = "insert into trunkline.queue_q (id, due_at, size, payload)
                select i, now() - interval '1 hour', 1, '{1}' from generate_series(1024 * 1024, 1024 * 1024 + 102399) i";
    sql.batch_execute(fill).await.expect("filled");
    let calls =
        ["select * from trunkline.find('q', 1100776)", "select * from trunkline.cancel('q', '{1099776,1100000}')"];
    let mut costs = Vec::new();
    for kill in ["select 1", "delete from trunkline.queue_q where id <> 1099776"] {
        sql.batch_execute(kill).await.expect("killed");
        for call in calls {
            sql.batch_execute(&format!("begin; {call}; rollback")).await.expect("planned, and the catalog read");
            costs.push(pages(&sql, call).await);
        }
    }
    assert!(costs[2] <= costs[0] + 60 && costs[3] <= costs[1] + 60, "pages: {costs:?}");
}

/// Scans for valid leases skip expired leases, and scans for due messages skip messages that are
/// not yet due.
#[tokio::test(flavor = "multi_thread")]
async fn leased_and_due_messages_are_found_cheaply_beside_many_others() {
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    let sql = connect(&url).await;
    db.create_queue("q", &Settings::new("int8").partitions(2)).await.expect("created");
    db.limit_queue("q", &Limits::none().max_leased(1)).await.expect("limited");
    let ask = [
        "select trunkline.do_leased_q()",
        "select trunkline.do_allowedin_q()",
        "select trunkline.do_leave_q(null, 7)",
        "select trunkline.do_along_q(10, trunkline.lane_of('a', 2), '-infinity', 1, 10)",
    ];
    let hold = "insert into trunkline.line_q (lane, key, until) values (trunkline.lane_of('a', 2), 'k', '-infinity');
                update trunkline.lane_q set holder = 7, held_until = now() + interval '1 hour'";
    sql.batch_execute(hold).await.expect("held");
    let mut costs = Vec::new();
    for fill in [
        "select 1",
        "insert into trunkline.queue_q (id, due_at, attempt, size, payload, keys, lane)
         select i * 1024, now() + case i when 1 then 1 else -1 end * interval '1 hour', 1, 1, '{1}', '{a}', trunkline.lane_of('a', 2) from generate_series(1, 10000) i",
        "truncate trunkline.queue_q;
         insert into trunkline.queue_q (id, due_at, size, payload, keys, lane)
         select i * 1024, now() + interval '1 hour', 1, '{1}', '{a}', trunkline.lane_of('a', 2) from generate_series(10001, 20000) i",
    ] {
        sql.batch_execute(fill).await.expect("filled");
        for query in ask {
            sql.batch_execute(&format!("begin; {query}; rollback")).await.expect("planned, and the catalog read");
            costs.push(pages(&sql, query).await);
        }
    }
    // The costs are those of three fills: empty tables; one valid lease and ten thousand expired
    // leases; ten thousand messages that are not due. The last query takes a message with an
    // expired lease.
    let dearest = costs[3..].iter().max().copied();
    assert!(dearest < Some(60), "pages: {costs:?}");
}

/// The release of partitions reads the leases, and neither the delayed messages nor the retries.
#[tokio::test(flavor = "multi_thread")]
async fn release_of_partitions_costs_no_more_beside_delayed_messages_and_retries() {
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    let sql = connect(&url).await;
    db.create_queue("q", &Settings::new("int8").partitions(2)).await.expect("created");
    let hold = "update trunkline.lane_q set holder = 7, held_until = now() + interval '1 minute' where lane >= 0";
    sql.batch_execute(hold).await.expect("held");
    let leave = "select trunkline.do_leave_q(null, 7)";
    for (attempt, error) in [(0, "null"), (1, "'it failed'")] {
        let fill = format!(
            "truncate trunkline.queue_q;
             insert into trunkline.queue_q (id, due_at, attempt, error, size, payload, keys, lane)
             select i * 1024, now() + interval '1 hour', {attempt}, {error}, 1, '{{1}}', '{{a}}', trunkline.lane_of('a', 2)
             from generate_series(1, 10000) i"
        );
        sql.batch_execute(&fill).await.expect("filled");
        sql.batch_execute(&format!("begin; {leave}; rollback")).await.expect("planned, and the catalog read");
        let cost = pages(&sql, leave).await;
        assert!(cost < 60, "{cost} pages");
    }
}

/// A probe of all priorities reads about 1,500 rows of a large backlog, whether it is in one
/// priority or in ten. The probe locks none of these rows.
#[tokio::test(flavor = "multi_thread")]
async fn backlog_over_all_priorities_costs_a_dequeue_no_more() {
    let url = database().await;
    let db = Db::connect(&url).await.expect("connected");
    let sql = connect(&url).await;
    db.create_queue("q", &Settings::new("int8").priorities(10)).await.expect("created");
    let look = "select trunkline.do_heads_q(1000, 1000, false, array_fill('-infinity'::timestamptz, array[10]))";
    let mut costs = Vec::new();
    for lane in ["9", "i % 10"] {
        let fill = format!(
            "truncate trunkline.queue_q;
             insert into trunkline.queue_q (id, due_at, size, payload, lane)
             select i * 1024, now() - interval '1 hour', 1, '{{1}}', {lane} from generate_series(1, 30000) i"
        );
        sql.batch_execute(&fill).await.expect("filled");
        sql.batch_execute(&format!("begin; {look}; rollback")).await.expect("planned, and the catalog read");
        costs.push(pages(&sql, look).await);
    }
    assert!(costs.iter().all(|pages| *pages < 400), "pages: {costs:?}");
}
