//! A server that accepts no more connections stops no program that has one.

use std::time::Duration;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, UnixStream},
    time::timeout,
};
use tokio_postgres::Client;
use trunkline::{Db, Draft, Queue, Settings, Wait, Worker};

use crate::fixture::{Runs, Said, Seen, cluster, connect, database, eventually, one_waits, superuser, through};

const OURS: &str =
    "select pid from pg_stat_activity where usename = 'few' and query not like 'listen%' order by backend_start";

async fn pids(sql: &Client) -> Vec<i32> {
    sql.query(OURS, &[]).await.expect("read").iter().map(|row| row.get(0)).collect()
}

/// Makes five calls at the same time, so that both connections for dequeues are used.
async fn call(queue: &Queue<i64>) {
    let calls = async { tokio::join!(queue.lease(1), queue.stats(), queue.find(1), queue.peek(1), queue.lease(1)) };
    let (leased, stats, found, peeked, more) =
        timeout(Duration::from_secs(10), calls).await.expect("no caller waits for a connection");
    assert!(leased.expect("leased").is_empty() && more.expect("leased").is_empty());
    assert_eq!(stats.expect("counted").messages, 0);
    assert!(found.expect("looked for").is_none() && peeked.expect("read").is_empty());
}

/// Returns a handle of a new role with the rights of an operator. It has one connection.
async fn as_operator(url: &str, sql: &Client, role: &str, settings: &Settings) -> Db {
    Db::connect(url).await.expect("connected").create_queue("q", settings).await.expect("created");
    let grant = format!(
        "do $$ begin create role {role}; exception when duplicate_object then null; end $$;
         alter role {role} login connection limit -1; select trunkline.grant_rights('{role}', 'operator', 'q')"
    );
    sql.batch_execute(&grant).await.expect("granted");
    Db::connect(&format!("{url} user={role}")).await.expect("connected")
}

#[tokio::test(flavor = "multi_thread")]
async fn open_connection_serves_while_the_server_refuses_another() {
    let url = database().await;
    let sql = superuser(&url).await;
    let db = as_operator(&url, &sql, "few", &Settings::new("int8")).await;
    let queue = db.queue::<i64>("q").await.expect("opened");
    assert_eq!(pids(&sql).await.len(), 1);

    sql.batch_execute("alter role few connection limit 1").await.expect("limited");
    call(&queue).await;
    assert_eq!(pids(&sql).await.len(), 1, "the second is refused");

    sql.batch_execute("alter role few connection limit -1").await.expect("unlimited");
    eventually("both are open", async || {
        call(&queue).await;
        pids(&sql).await.len() == 2
    })
    .await;
    let two = pids(&sql).await;
    sql.batch_execute("alter role few connection limit 1").await.expect("limited");
    sql.query("select pg_terminate_backend($1)", &[&two[0]]).await.expect("ended");
    eventually("the first is gone", async || pids(&sql).await == two[1..]).await;
    // The calls that were sent on the broken connection fail.
    eventually("the loss is noticed", async || queue.lease(1).await.is_ok() && queue.lease(1).await.is_ok()).await;
    call(&queue).await;
    assert_eq!(pids(&sql).await, two[1..], "the other serves all callers");
    drop(db);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_connection_serves_while_its_role_may_not_log_in_again() {
    let url = database().await;
    let sql = superuser(&url).await;
    let db = as_operator(&url, &sql, "former", &Settings::new("int8")).await;
    let queue = db.queue::<i64>("q").await.expect("opened");
    sql.batch_execute("alter role former nologin").await.expect("refused from now on");
    call(&queue).await;
}

/// Passes the first connection on to the server, and lets all others wait for an answer.
async fn answer_one(listener: TcpListener) {
    let (mut first, _) = listener.accept().await.expect("a client");
    let socket = cluster().socket_dir().join(format!(".s.PGSQL.{}", cluster().port()));
    let mut server = UnixStream::connect(socket).await.expect("connected");
    let mut silent = Vec::new();
    tokio::spawn(async move { copy_bidirectional(&mut first, &mut server).await });
    while let Ok((client, _)) = listener.accept().await {
        silent.push(client);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn open_connection_serves_while_no_other_is_answered() {
    let url = database().await;
    let admin = Db::connect(&url).await.expect("connected");
    admin.create_queue("q", &Settings::new("int8")).await.expect("created");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let way = format!("host=127.0.0.1 port={} sslmode=disable", listener.local_addr().expect("bound").port());
    let answering = tokio::spawn(answer_one(listener));
    let db = Db::connect(&through(&url, &way)).await.expect("connected");
    call(&db.queue::<i64>("q").await.expect("opened")).await;
    answering.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn claim_waits_for_an_open_one_without_another_connection() {
    let url = database().await;
    let mut sql = superuser(&url).await;
    let db = as_operator(&url, &sql, "claims", &Settings::new("int8").uniqueness(true)).await;
    let queue = db.queue::<i64>("q").await.expect("opened");
    queue.enqueue(Draft::new(1).unique("first")).await.expect("it has a connection for enqueues");
    sql.batch_execute("alter role claims connection limit 1").await.expect("limited");
    let transaction = sql.transaction().await.expect("begun");
    transaction.execute("select trunkline.enqueue_unique('q', 0::int8, 'claimed')", &[]).await.expect("claimed");
    let claim = tokio::spawn(async move { queue.enqueue(Draft::new(2).unique("claimed")).await });
    let observer = superuser(&url).await;
    eventually("it waits", || one_waits(&observer)).await;
    eventually("it needs a connection to go on", async || !one_waits(&observer).await).await;
    transaction.rollback().await.expect("rolled back");
    let claimed = timeout(Duration::from_secs(10), claim).await.expect("in time").expect("no panic");
    assert!(claimed.expect("enqueued").is_new());
}

#[tokio::test(flavor = "multi_thread")]
async fn second_connection_opens_although_the_first_host_is_silent() {
    let url = database().await;
    let sql = superuser(&url).await;
    Db::connect(&url).await.expect("connected").create_queue("q", &Settings::new("int8")).await.expect("created");
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let (port, socket) = (silent.local_addr().expect("bound").port(), cluster().socket_dir().display());
    // Longer than a call waits for a second connection.
    let way = format!("host=127.0.0.1,{socket} port={port},{} sslmode=disable connect_timeout=4", cluster().port());
    let db = Db::connect(&through(&url, &way)).await.expect("connected");
    let queue = db.queue::<i64>("q").await.expect("opened");
    let ours = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    eventually("a second connection is open", async || {
        let (one, another) = tokio::join!(queue.stats(), queue.stats());
        assert_eq!(one.expect("counted").messages + another.expect("counted").messages, 0);
        sql.query_one(ours, &[]).await.expect("seen").get::<_, i64>(0) == 2
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_outlives_a_database_that_is_closed_for_a_while() {
    let url = database().await;
    let name = url.split_whitespace().find_map(|word| word.strip_prefix("dbname=")).expect("a name").to_owned();
    let admin = connect(&cluster().url("postgres")).await;
    let db = Db::connect(&url).await.expect("connected");
    db.create_queue("q", &Settings::new("int8")).await.expect("created");
    let queue = db.queue::<i64>("q").await.expect("opened");
    let seen = Seen::default();
    let noted = seen.clone();
    let runs = Runs::start(Worker::new(queue.clone(), move |message| {
        noted.add(&message);
        async { Ok::<(), std::convert::Infallible>(()) }
    }));
    queue.enqueue(1).await.expect("enqueued");
    eventually("the first is handled", async || seen.all().len() == 1).await;
    let close = format!("alter database {name} allow_connections false");
    admin.batch_execute(&close).await.expect("closed");
    let end = format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'");
    admin.batch_execute(&end).await.expect("ended");
    // A call whose connection ends meanwhile fails.
    eventually("a call waits", async || timeout(Duration::from_secs(1), queue.enqueue(2)).await.is_err()).await;
    admin.batch_execute(&format!("alter database {name} allow_connections true")).await.expect("open again");
    queue.enqueue(3).await.expect("enqueued");
    eventually("the last is handled", async || seen.all().contains_key(&3)).await;
    runs.stop().await;
}

/// Uses one thread, because the recorder receives only the events of its own thread.
#[tokio::test]
async fn listener_that_may_not_say_that_it_is_alive_warns_and_rests() {
    let url = database().await;
    let sql = superuser(&url).await;
    let db = as_operator(&url, &sql, "listens", &Settings::new("int8")).await;
    let warnings = Said::warnings();
    let _ear = warnings.listen();
    let refuse = "revoke execute on function pg_catalog.pg_advisory_lock(bigint) from public";
    sql.batch_execute(refuse).await.expect("revoked");
    let mut consumer = db.queue::<i64>("q").await.expect("opened").consumer(Wait::Notify);
    let waiting = tokio::spawn(async move { consumer.take(1).await });
    eventually("it warns", async || warnings.contains("listener cannot connect")).await;
    waiting.abort();
}

/// Uses one thread, because the recorder receives only the events of its own thread.
#[tokio::test]
async fn listener_that_reaches_no_server_warns() {
    let url = database().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let way = format!("host=127.0.0.1 port={} sslmode=disable", listener.local_addr().expect("bound").port());
    let answering = tokio::spawn(answer_one(listener));
    let db = Db::connect(&through(&url, &way)).await.expect("connected");
    answering.abort(); // the open connection stays
    let warnings = Said::warnings();
    let _ear = warnings.listen();
    let subscribed = tokio::spawn(async move { db.notifications_arrive().await });
    eventually("it warns", async || warnings.contains("listener cannot connect")).await;
    subscribed.abort();
}
