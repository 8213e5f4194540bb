//! Another role creates functions, operators and types in the session's search path. No statement
//! of the library, the command line, a relay, the console or Python uses them.

mod words;

use std::{fs, path::Path, time::Duration};

use trunkline::{Db, Draft, Limits, Right, Schedule, Settings, Unique, Worker};

use self::words::left_to_the_path;
use crate::{
    fixture::Ids,
    fixture::{connect, database, superuser},
    house::files,
};

/// Returns string literals in a program's source that begin like a statement, or like a fragment
/// with a call.
fn statements(text: &str) -> Vec<&str> {
    const BEGINS: [&str; 7] = ["select ", "insert into ", "update ", "delete from ", "with ", "lock table ", "cast("];
    let mut found = Vec::new();
    for part in text.split('"').skip(1) {
        let part = part.trim_start_matches([' ', ',']);
        if BEGINS.iter().any(|begin| part.starts_with(begin)) || part.contains("pg_catalog.") {
            found.push(part);
        }
    }
    found
}

#[test]
fn client_statements_leave_no_name_to_the_search_path() {
    let mut wrong = Vec::new();
    for path in files("sql/statements", "sql").into_iter().chain(files("crates/relay/sql", "sql")) {
        let text = fs::read_to_string(&path).expect("readable");
        // Requires that a file with several statements sets its own path first.
        if !text.contains("\nset local search_path = pg_catalog, pg_temp;\n") {
            wrong.extend(left_to_the_path(&text).into_iter().map(|what| format!("{}: {what}", path.display())));
        }
    }
    let programs = ["src", "crates/cli/src", "crates/relay/src", "crates/python/src"]
        .iter()
        .flat_map(|folder| files(folder, "rs"));
    for path in programs.chain(files("crates/python/python/trunkline", "py")) {
        let text = fs::read_to_string(&path).expect("readable");
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        if path.components().any(|part| part.as_os_str() == "tests")
            || path.ends_with("tests.rs")
            || path.ends_with("soil.rs")
        {
            continue;
        }
        let code: String =
            text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        for statement in statements(&code) {
            let named = statement
                .replace("{schema}.{verb}_many", "trunkline.verb")
                .replace("{schema}", "trunkline")
                .replace("%s", "$1")
                .replace("{verb}", "verb");
            wrong.extend(
                left_to_the_path(&named).into_iter().map(|what| format!("{}: {what} in {statement}", path.display())),
            );
        }
    }
    assert!(wrong.is_empty(), "say pg_catalog. and operator(pg_catalog.…):\n{}", wrong.join("\n"));
}

/// The console's statements on the catalog have dozens of unqualified operators each. They run with
/// a path that contains only the catalog.
#[test]
fn the_console_asks_in_the_catalog_alone() {
    for bounds in ["alone", "within"] {
        let path = format!("crates/console/sql/metrics/{bounds}.sql");
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&path)).expect("readable");
        assert!(text.contains("set_config('search_path', 'pg_catalog, pg_temp', true)"), "{path}: set the path first");
    }
    for path in files("crates/console/src", "rs") {
        let text = fs::read_to_string(&path).expect("readable");
        assert!(!text.contains("db.run(") && !text.contains("db.run_many("), "{}: run_in_catalog", path.display());
        if text.contains(".begin") && !path.ends_with("packed.rs") {
            assert!(
                text.contains("'pg_catalog, pg_temp'") || text.contains("\"alone\"") || text.contains("/within.sql"),
                "{}: set the path first",
                path.display()
            );
        }
    }
}

/// Puts a copy of the whole catalog in front of the catalog. Each name that is found through the
/// path raises an error.
#[tokio::test(flavor = "multi_thread")]
async fn library_meets_no_function_operator_or_type_of_another_role() {
    let url = database().await;
    let admin = superuser(&url).await;
    admin.batch_execute(include_str!("../traps/lay.sql")).await.expect("laid");
    for path in ["public, trap", "trap, pg_catalog"] {
        let name: String =
            admin.query_one("select pg_catalog.current_database()::pg_catalog.text", &[]).await.expect("read").get(0);
        admin.batch_execute(&format!("alter database {name} set search_path = {path}")).await.expect("set");
        let trapped =
            connect(&url).await.batch_execute("select * from unnest(array['a'])").await.expect_err("the trap works");
        assert!(trapped.as_db_error().is_some_and(|error| error.message() == "trapped by unnest"), "{trapped:?}");
        let db = Db::connect(&url).await.expect("connected");
        works(&db).await;
    }
}

async fn works(db: &Db) {
    const SECOND: Duration = Duration::from_secs(1);
    connect_and_admin(db).await;
    for (name, settings) in [
        ("plain", Settings::new("pg_catalog.text")),
        ("first", Settings::new("pg_catalog.text").priorities(3)),
        ("keys", Settings::new("pg_catalog.text").partitions(4)),
        ("once", Settings::new("pg_catalog.text").uniqueness(true)),
    ] {
        db.create_queue(name, &settings).await.expect("created");
        let queue = db.queue::<String>(name).await.expect("opened");
        let draft = |text: &str| match name {
            "keys" => Draft::new(text.to_owned()).key("k"),
            "once" => Draft::new(text.to_owned()).unique(Unique::key(text)),
            _ => Draft::new(text.to_owned()),
        };
        queue.enqueue(draft("a")).await.expect("enqueued");
        queue.enqueue(draft("b").after(SECOND)).await.expect("enqueued");
        queue.enqueue(draft("c").with("x", "y")).await.expect("enqueued");
        let drafts = [draft("d"), draft("e"), draft("f")];
        let ids = queue.enqueue_many(&drafts).await.expect("enqueued").ids();
        let transaction = db.begin().await.expect("begun");
        drop(queue.send_enqueue(&transaction, draft("g")).await.expect("sent"));
        transaction.commit().await.expect("committed");
        queue.find(ids[0]).await.expect("found");
        queue.cancel(&ids[..1]).await.expect("cancelled");
        queue.reschedule(&ids[1..2], SECOND).await.expect("moved");
        queue.peek(9).await.expect("read");
        queue.stats().await.expect("counted");
        if name != "keys" {
            let leased = queue.lease(3).await.expect("leased");
            queue.extend(&leased, SECOND).await.expect("held");
            queue.retry(&leased[..1], Duration::ZERO, "no").await.expect("held");
            queue.release(&leased[1..2]).await.expect("held");
            queue.bury(&leased[2..3], "no").await.expect("held");
            let leased = queue.lease(2).await.expect("leased");
            queue.archive(&leased[..1]).await.expect("held");
            queue.ack(&leased[1..]).await.expect("held");
            queue.take(9).await.expect("taken");
            queue.dead_letters(0, 9).await.expect("read");
            queue.archived(0, 9).await.expect("read");
            queue.replay_all().await.expect("replayed");
            queue.discard(&[1]).await.expect("none");
            queue.prune(SECOND).await.expect("pruned");
        }
        db.limit_queue(name, &Limits::none().max_leased(9).per_second(1e6)).await.expect("limited");
        db.pause_queue(name).await.expect("paused");
        db.resume_queue(name).await.expect("resumed");
        let worker = Worker::new(queue.clone(), async |_| Ok::<_, std::convert::Infallible>(())).reports(true);
        worker.drain().await.expect("drained");
        queue.purge().await.expect("purged");
        if name == "plain" {
            queue.schedule(&Schedule::new("nightly", "@daily"), &"x".to_owned()).await.expect("set");
            db.schedules().await.expect("listed");
            db.fire_schedule("nightly").await.expect("fired");
            db.drop_schedule("nightly").await.expect("dropped");
        }
        db.drop_queue(name).await.expect("dropped");
    }
}

async fn connect_and_admin(db: &Db) {
    db.migrate().await.expect("current");
    db.list_queues().await.expect("listed");
    db.create_queue("granted", &Settings::new("int8")).await.expect("created");
    let role = [(Right::Operator, "pg_monitor")];
    db.grant(&role, Some("granted")).await.expect("granted");
    db.revoke(&["pg_monitor"], Some("granted")).await.expect("revoked");
    db.drop_queue("granted").await.expect("dropped");
}
