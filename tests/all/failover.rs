//! After the failure of a primary, and before the promotion of its standby, the only server that
//! answers is read-only.

use std::{
    convert::Infallible,
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::Duration,
};

use tokio::time::timeout;
use tokio_postgres::{Client, error::SqlState};
use trunkline::{Db, Message, Settings, Wait, Worker, postgres::Statement};

use crate::{
    fixture::{Place, Runs, SOON, Seen, cluster, connect, eventually, move_time, place, through, until_asleep},
    moved::server::Server,
};

/// Makes the database read-only or writable, and terminates its sessions.
async fn read_only(admin: &Client, database: &str, on: &str) {
    let text = format!(
        "alter database {database} set default_transaction_read_only = {on};
         select pg_terminate_backend(pid) from pg_stat_activity where datname = '{database}'"
    );
    admin.batch_execute(&text).await.expect("said");
}

async fn refusals(admin: &Client, database: &str) -> i64 {
    let text = "select sessions::int8 from pg_stat_database where datname = $1";
    admin.query_one(text, &[&database]).await.expect("seen").get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_and_consumers_outlive_a_moment_without_a_writable_server() {
    let Place { url, .. } = place::<i64>(Settings::new("int8")).await;
    let name = url.split_whitespace().find_map(|word| word.strip_prefix("dbname=")).expect("a name").to_owned();
    let admin = connect(&cluster().url("postgres")).await;
    let db = Db::connect(&format!("{url} target_session_attrs=read-write")).await.expect("connected");
    let queue = db.queue::<i64>("q").await.expect("opened");
    let (seen, done) = (Seen::default(), ());
    let notes = seen.clone();
    let runs = Runs::start(Worker::new(queue.clone(), move |message: Message<i64>| {
        notes.add(&message);
        async move { Ok::<_, Infallible>(done) }
    }));
    queue.enqueue(1).await.expect("enqueued");
    eventually("the first is handled", || async { seen.all().len() == 1 }).await;
    db.create_queue("other", &Settings::new("int8")).await.expect("created");
    let mut consumer = db.queue::<i64>("other").await.expect("opened").consumer(Wait::Poll(Duration::from_millis(10)));
    let waiter = tokio::spawn(async move { consumer.take(1).await });
    read_only(&admin, &name, "on").await;
    let before = refusals(&admin, &name).await;
    eventually("they were refused a few times", || async { refusals(&admin, &name).await > before + 6 }).await;
    let error = Db::connect(&format!("{url} target_session_attrs=read-write")).await.expect_err("read only");
    assert!(error.to_string().contains("does not allow writes"), "{error}");
    read_only(&admin, &name, "off").await;
    queue.enqueue(2).await.expect("once it can be written to");
    eventually("the second is handled", || async { seen.all().len() == 2 }).await;
    db.queue::<i64>("other").await.expect("opened").enqueue(3).await.expect("enqueued");
    assert_eq!(waiter.await.expect("no panic").expect("it waited")[0].payload, 3);
    runs.stop().await;
}

#[tokio::test]
async fn transactions_leave_a_server_that_no_longer_accepts_writes() {
    static NOTE: Statement<(), u64> = Statement::new("insert into note values (1)");
    let server = Server::start(None, &[]);
    let admin = connect(&server.url()).await;
    admin.batch_execute("create table note (n int)").await.expect("created");
    let db = Db::connect(&format!("{} target_session_attrs=read-write", server.url())).await.expect("connected");
    let write = async || db.transact("", async |transaction| transaction.run(&NOTE, ()).await).await;
    write().await.expect("written");
    for mode in ["on", "off"] {
        let set = format!("alter system set default_transaction_read_only = {mode}");
        admin.batch_execute(&set).await.expect("set");
        admin.batch_execute("select pg_reload_conf()").await.expect("reloaded");
        // Waits until calls find a server that accepts writes. A connection whose transaction was
        // refused is not used again.
        eventually("the server is seen as it is now", async || {
            let mut call = std::pin::pin!(write());
            let outcome = loop {
                match timeout(Duration::from_millis(200), &mut call).await {
                    Ok(outcome) => break outcome,
                    // Ends the half minute for which a call waits for a server that accepts writes.
                    Err(_) => move_time(Duration::from_secs(31)).await,
                }
            };
            match (outcome, mode) {
                (Ok(_), mode) => mode == "off",
                (Err(error), "on") => error.to_string().contains("does not allow writes"),
                (Err(_), _) => false,
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn listener_leaves_a_server_that_no_longer_accepts_writes() {
    let servers = [Server::start(None, &[]), Server::start(None, &[])];
    for server in &servers {
        let db = Db::connect(&server.url()).await.expect("connected");
        db.migrate().await.expect("migrated");
        for name in ["q", "other"] {
            db.create_queue(name, &Settings::new("int8")).await.expect("created");
        }
    }
    let [old, new] = servers.each_ref().map(Server::url);
    let field = |url: &str, name: &str| {
        url.split_whitespace().find_map(|word| word.strip_prefix(name)).expect("it is named").to_owned()
    };
    let (hosts, port) = ([&old, &new].map(|url| field(url, "host=")).join(","), field(&old, "port="));
    let way = format!("host={hosts} port={port} target_session_attrs=read-write");
    let db = Db::connect(&through(&old, &way)).await.expect("connected");
    let (here, there) = (connect(&old).await, connect(&new).await);
    let other = db.queue::<i64>("other").await.expect("opened");
    let mut consumer = db.queue::<i64>("q").await.expect("opened").consumer(Wait::Notify);
    let waiter = tokio::spawn(async move {
        loop {
            match consumer.take(1).await {
                Err(error) if error.sqlstate() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => {}
                outcome => return outcome,
            }
        }
    });
    until_asleep(&here).await;
    // Opens the connection whose next statement meets the server that only reads.
    other.enqueue(0).await.expect("enqueued");
    for text in ["alter system set default_transaction_read_only = on", "select pg_reload_conf()"] {
        here.batch_execute(text).await.expect("set");
    }
    let is_some = async |count: &str| there.query_one(count, &[]).await.expect("counted").get::<_, i64>(0) > 0;
    let stored = "select count(*) from trunkline.queue_other";
    eventually("calls use the other server", async || other.enqueue(0).await.is_ok() && is_some(stored).await).await;
    let listens = "select count(*) from pg_stat_activity
                   where application_name = 'trunkline' and query ~ '^listen.*trunkline[.]q'";
    eventually("the listener uses it, too", async || is_some(listens).await).await;
    // Enqueues in another process, as it were: no other call wakes the consumer.
    let writer = Db::connect(&new).await.expect("connected");
    writer.queue::<i64>("q").await.expect("opened").enqueue(7).await.expect("enqueued");
    let taken = timeout(SOON, waiter).await.expect("before the slow poll").expect("no panic").expect("taken");
    assert_eq!(taken[0].payload, 7);
}

#[tokio::test]
async fn server_silent_after_login_is_left_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        let (mut client, _) = listener.accept()?;
        let _startup = client.read(&mut [0; 4096])?;
        client.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")?;
        client.read_to_end(&mut Vec::new()) // reads until the client gives up
    });
    let url = format!("host=127.0.0.1 port={port} user=u sslmode=disable connect_timeout=1");
    let error = timeout(SOON, Db::connect(&url)).await.expect("in time").expect_err("nothing was said").to_string();
    assert!(error.ends_with("no answer in 1 s (connect_timeout)"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_standby_wait_is_unknown_and_cancelled_one_is_ok() {
    // Names a standby that never connects.
    let server = Server::start(None, &[("synchronous_standby_names", "nobody"), ("synchronous_commit", "local")]);
    let admin = connect(&server.url()).await;
    let db = Db::connect(&server.url()).await.expect("connected");
    db.migrate().await.expect("migrated");
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    // Makes commits of new connections wait for the standby.
    admin.batch_execute("alter database postgres set synchronous_commit = on").await.expect("altered");
    let db = Db::connect(&server.url()).await.expect("connected");
    let queue = db.queue::<i64>("q").await.expect("opened");
    for (end, is_ok) in [("pg_terminate_backend", false), ("pg_cancel_backend", true)] {
        let waits = queue.clone();
        let caller = tokio::spawn(async move { waits.enqueue(1).await });
        let ended =
            format!("select count(*) from (select {end}(pid) from pg_stat_activity where wait_event = 'SyncRep') s");
        // Counts ended sessions. These include other commits that wait for the standby, for example
        // of a floor.
        let any = std::cell::Cell::new(0);
        eventually("it waits for its standby, and its session is ended", async || {
            any.set(any.get() + admin.query_one(&ended, &[]).await.expect("ended").get::<_, i64>(0));
            any.get() > 0 && caller.is_finished()
        })
        .await;
        let outcome = timeout(SOON, caller).await.expect("an answer").expect("no panic");
        match is_ok {
            // Accepts success: PostgreSQL reports it with a warning, so no client can detect the
            // loss. `docs/operations.md` warns about this case.
            true => drop(outcome.expect("a false Ok")),
            false => assert!(outcome.expect_err("unknown").is_outcome_unknown()),
        }
    }
}
