//! Checks that each layer runs its own code: the server's log contains the layer's statements.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use trunkline_embedded::Cluster;

use crate::fixture::{Bench, connect, name, server};

/// The seconds of a turn, long enough for a message even if the machine stalls for two seconds.
const LONG_ENOUGH: &str = "3";

/// One measurement of a row, and every statement that the server ran for it.
struct Turn {
    name: String,
    sent: u64,
    database: String,
    statements: Vec<String>,
}

impl Turn {
    fn count(&self, words: &str) -> usize {
        self.statements.iter().filter(|statement| statement.contains(words)).count()
    }
}

async fn turns(server: &Cluster, patterns: &[String]) -> Vec<Turn> {
    let run = Bench::new("run").args(["--database-url", &server.url("postgres"), "--skip-cleanup"]);
    let rows = patterns.iter().fold(run, |run, pattern| run.pattern(pattern)).rows(LONG_ENOUGH).await;
    let log = std::fs::read_to_string(server.log_file()).expect("the server's log");
    // The databases were created in the order of the rows.
    let databases = connect(server, "postgres").await;
    let databases =
        databases.query("select datname::text from pg_database where datname like 'trunkline%' order by oid", &[]);
    let databases = databases.await.expect("names of databases");
    // A row that counts allocations has a second database, for the program that counts them.
    let counts = |row: &Value| usize::from(!row["rounds"][0]["allocations"].is_null());
    assert_eq!(rows.iter().map(|row| 1 + counts(row)).sum::<usize>(), databases.len());
    let mut databases = databases.iter();
    let turn = |row: &Value| {
        assert_eq!(row["outcome"], "measured", "{row}");
        let database: String = databases.next().expect("a database of the row").get(0);
        databases.by_ref().take(counts(row)).for_each(|_| ());
        let sent = row["rounds"][0]["sent"].as_u64().expect("what was sent");
        Turn { name: name(row), sent, statements: statements(&log, &database), database }
    };
    rows.iter().map(turn).collect()
}

/// Parses lines like `database|LOG: execute s1: select …`. Continuation lines of a statement begin
/// with a tab. Removes the quotes around names.
fn statements(log: &str, database: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in log.lines() {
        if let Some(rest) = line.strip_prefix('\t') {
            if let (true, Some(last)) = (goes_on, all.last_mut()) {
                last.push_str(&rest.replace('"', ""));
            }
            continue;
        }
        let said = line.strip_prefix(database).and_then(|line| line.strip_prefix("|LOG:  execute "));
        goes_on = said.is_some();
        all.extend(said.map(|said| said.replace('"', "")));
    }
    all
}

#[tokio::test]
async fn sql_layer_calls_functions_and_queue_layer_runs_library_statements() {
    let server = server();
    // Each entry has a case, the statement of the SQL layer, and the statement of the queue layer.
    let cases = [
        ("send/send-single", "select trunkline.enqueue('bench'", "insert into trunkline.queue_bench "),
        ("send/send-batch-10", "select trunkline.enqueue_many('bench'", "insert into trunkline.queue_bench "),
        ("read/read-batch-10", "from trunkline.lease('bench'", "from trunkline.do_lease_bench("),
        ("ack/delete-single", "select trunkline.ack('bench'", "from trunkline.do_ack_bench("),
        ("ack/delete-batch-10", "select trunkline.ack_many('bench'", "from trunkline.do_ack_bench("),
        ("ack/archive-batch-10", "select trunkline.archive_many('bench'", "from trunkline.do_archive_bench("),
    ];
    let patterns = cases.map(|(case, ..)| ["sql", "queue"].map(|layer| format!("^{case}/{layer}$"))).concat();
    let turns = turns(&server, &patterns).await;
    for (case, by_function, by_library) in cases {
        for (layer, own, other) in [("sql", by_function, by_library), ("queue", by_library, by_function)] {
            let turn = turns.iter().find(|turn| turn.name == format!("{case}/{layer}")).expect(case);
            let batch = case.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(1);
            let calls = (turn.sent / batch) as usize;
            assert!(
                calls > 0 && turn.count(own) >= calls,
                "{}: {own} {} times, {calls} calls",
                turn.name,
                turn.count(own)
            );
            assert_eq!(turn.count(other), 0, "{}: {other}", turn.name);
        }
    }
}

/// Part of the notification to consumers. Every layer sends it at most once in 4 ms, so how many
/// calls it accompanies depends on the machine's speed.
const NOTIFICATION: &str = "pg_catalog.pg_notify(channel, $2)";

/// Returns the statements that a turn sent with nearly every call. Removes the names of prepared
/// statements, and the time at which the queue was created.
fn of_each_call(turn: &Turn, calls: usize) -> BTreeSet<String> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for statement in turn.statements.iter().filter(|statement| !statement.contains(NOTIFICATION)) {
        let text = statement.split_once(": ").map_or(&**statement, |(_, text)| text);
        let text = text.split("-- created at").next().unwrap_or(text).trim();
        *counts.entry(text).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| *count >= calls * 9 / 10).map(|(text, _)| text.to_owned()).collect()
}

#[tokio::test]
async fn statements_layer_sends_what_the_library_sends() {
    let server = server();
    let cases = [
        "send/send-single",
        "send/send-batch-10",
        "read/read-batch-10",
        "ack/delete-single",
        "ack/archive-batch-10",
        "layer-comparison/pop-batch-10",
    ];
    let patterns = cases.map(|case| ["statements", "queue"].map(|layer| format!("^{case}/{layer}$"))).concat();
    let turns = turns(&server, &patterns).await;
    for case in cases {
        let sent = ["statements", "queue"].map(|layer| {
            let turn = turns.iter().find(|turn| turn.name == format!("{case}/{layer}")).expect(case);
            let batch: u64 = case.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(1);
            let calls = (turn.sent / batch) as usize;
            assert!(calls > 100, "{}: {calls} calls", turn.name);
            // Messages are sent in every case: they are measured, or prepared for what is measured.
            assert!(turn.count(NOTIFICATION) > 0, "{}: no notification", turn.name);
            of_each_call(turn, calls)
        });
        assert!(!sent[0].is_empty() && sent[0] == sent[1], "{case}: {sent:#?}");
    }
}

#[tokio::test]
async fn take_full_cycle_and_worker_run_their_own_code() {
    let server = server();
    // Each entry has a row, the statements that it must send, and statements of other layers that
    // it must not send.
    let by_function =
        ["select trunkline.enqueue('bench'", "from trunkline.lease('bench'", "select trunkline.ack('bench'"];
    let by_library =
        ["insert into trunkline.queue_bench ", "from trunkline.do_lease_bench(", "from trunkline.do_ack_bench("];
    // A worker leases with a flag that isolates messages which may have crashed another worker.
    let by_worker =
        ["insert into trunkline.queue_bench ", "$4::pg_catalog.int4, true)", "from trunkline.do_ack_bench("];
    let cases: [(&str, &[&str], &[&str]); 5] = [
        ("pop-batch-10/sql", &["from trunkline.take('bench'"], &["from trunkline.do_take_bench("]),
        ("pop-batch-10/queue", &["from trunkline.do_take_bench("], &["from trunkline.take('bench'"]),
        ("full-cycle/sql", &by_function, &by_library),
        ("full-cycle/queue", &by_library, &by_function),
        ("full-cycle/worker", &by_worker, &by_function),
    ];
    let patterns = cases.map(|(name, ..)| format!("^layer-comparison/{name}$"));
    let run = Bench::new("run").args(["--database-url", &server.url("postgres"), "--skip-cleanup"]);
    let rows = patterns.iter().fold(run, |run, pattern| run.pattern(pattern)).rows(LONG_ENOUGH).await;
    let log = std::fs::read_to_string(server.log_file()).expect("the server's log");
    for (case, own, others) in cases {
        let row = rows.iter().find(|row| name(row).ends_with(case)).expect(case);
        assert_eq!(row["outcome"], "measured", "{row}");
        assert!(row["rounds"][0]["sent"].as_u64() > Some(0), "{row}");
        // The second database of a row belongs to the program that counts allocations.
        let at = rows.iter().position(|other| name(other) == name(row)).expect(case);
        let databases = connect(&server, "postgres").await;
        let names = "select datname::text from pg_database where datname like 'trunkline%' order by oid";
        let names = databases.query(names, &[]).await.expect("names of databases");
        assert_eq!(names.len(), 2 * rows.len());
        let said = statements(&log, names[2 * at].get(0));
        let count = |words: &str| said.iter().filter(|statement| statement.contains(words)).count();
        for words in own {
            assert!(count(words) > 0, "{case}: no {words}");
        }
        for words in others {
            assert_eq!(count(words), 0, "{case}: {words}");
        }
    }
}

#[tokio::test]
async fn only_coalesced_layer_mixes_messages_of_callers_in_a_row() {
    let server = server();
    let layers = ["sql", "queue", "coalesced"];
    let patterns = layers.map(|layer| format!("^layer-comparison/send-single, 16 callers/{layer}$"));
    let turns = turns(&server, &patterns).await;
    for turn in &turns {
        let count = "select count(*), sum(size)::int8 from trunkline.queue_bench";
        let left = connect(&server, &turn.database).await.query_one(count, &[]).await.expect("the queue's table");
        let (rows, messages): (i64, i64) = (left.get(0), left.get(1));
        assert!(messages as u64 >= turn.sent && turn.sent > 0, "{}: {messages} messages", turn.name);
        // Subtracts the messages before the clock started. They were sent in one call, so they
        // share a row.
        let alone = messages - 31;
        match turn.name.ends_with("coalesced") {
            true => assert!(rows < alone / 2, "{}: {messages} messages in {rows} rows", turn.name),
            false => assert_eq!(rows, alone, "{}: {messages} messages in {rows} rows", turn.name),
        }
    }
    let inserts = |turn: &Turn| turn.count("insert into trunkline.queue_bench ");
    let [sql, queue, coalesced] = &turns[..] else { panic!("{} turns", turns.len()) };
    assert!(sql.count("select trunkline.enqueue('bench'") as u64 >= sql.sent && inserts(sql) == 0);
    assert!(inserts(queue) as u64 >= queue.sent, "{} inserts, {} sent", inserts(queue), queue.sent);
    assert!((inserts(coalesced) as u64) < coalesced.sent, "{} inserts, {} sent", inserts(coalesced), coalesced.sent);
}
