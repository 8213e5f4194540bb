//! A program for `tokio_postgres` runs on this crate's driver after one changed import.

mod binary_copy;
mod ended;
mod generic_client;
mod pipelined;
mod queues;
mod raw_stream;
mod room;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, TryStreamExt, future::join_all, join};
use std::{pin::pin, time::Duration};
use tokio::{task::JoinHandle, time::timeout};
use trunkline::postgres::compat::{
    self as tokio_postgres, AsyncMessage, Client, Config, Error, IsolationLevel, NoTls, SimpleQueryMessage,
    config::{ChannelBinding, Host, LoadBalanceHosts, SslMode, SslNegotiation, TargetSessionAttrs},
    error::SqlState,
    types::Type,
};

use crate::fixture::{SOON, database, eventually};

async fn connect() -> (Client, JoinHandle<Result<(), Error>>) {
    let (client, connection) = tokio_postgres::connect(&database().await, NoTls).await.expect("connected");
    (client, tokio::spawn(connection))
}

async fn with_table() -> Client {
    let (client, _) = connect().await;
    client.batch_execute("create temp table t (n int unique, word text)").await.expect("created");
    client
}

async fn count(client: &Client) -> i64 {
    client.query_one_scalar("select count(*) from t", &[]).await.expect("counted")
}

#[tokio::test(flavor = "multi_thread")]
async fn statement_may_be_a_text_or_prepared() {
    let client = with_table().await;
    let insert = client.prepare_typed("insert into t values ($1, $2)", &[Type::INT4]).await.expect("prepared");
    assert_eq!(insert.params(), [Type::INT4, Type::TEXT]);
    assert_eq!(client.execute(&insert, &[&1_i32, &"one"]).await.expect("inserted"), 1);
    assert_eq!(client.execute("insert into t values ($1, $2)", &[&2_i32, &"two"]).await.expect("inserted"), 1);
    let select = client.prepare("select n, word as \"Word\" from t order by n").await.expect("prepared");
    let rows = client.query(&select, &[]).await.expect("read");
    let all: Vec<(i32, &str)> = rows.iter().map(|row| (row.get("n"), row.get("word"))).collect();
    assert_eq!(all, [(1, "one"), (2, "two")]);
    assert_eq!((rows[0].columns()[1].name(), rows[0].len(), rows[0].columns()[0].column_id()), ("Word", 2, Some(1)));
    assert!(rows[0].try_get::<_, i64>(0).is_err() && rows[0].try_get::<_, i32>("none").is_err());
    assert!(client.query_one(&select, &[]).await.expect_err("two").to_string().contains("number of rows"));
    let error = client.execute(&insert, &[&3_i32]).await.expect_err("one parameter");
    assert_eq!(error.to_string(), "expected 2 parameters but got 1");
    let error = client.execute(&insert, &[&1_i32, &"again"]).await.expect_err("unique");
    let reported = error.as_db_error().expect("the server's");
    assert_eq!((error.code(), reported.constraint()), (Some(&SqlState::UNIQUE_VIOLATION), Some("t_n_key")));
    let typed = client.query_typed("select $1, 'x'", &[(&5_i64, Type::INT8)]).await.expect("read");
    assert_eq!((typed[0].get::<_, i64>(0), typed[0].get::<_, String>(1)), (5, "x".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_statement_is_closed_and_text_follows_its_table() {
    let client = with_table().await;
    let names = "select count(*) from pg_prepared_statements where statement = 'select 7'";
    let statement = client.prepare("select 7").await.expect("prepared");
    assert_eq!(client.query_one_scalar::<i64, _>(names, &[]).await.expect("counted"), 1);
    drop(statement);
    assert_eq!(client.query_one_scalar::<i64, _>(names, &[]).await.expect("counted"), 0);
    assert!(client.query("select * from t", &[]).await.expect("read").is_empty());
    client.batch_execute("alter table t add m int; insert into t values (1, 'one', 2)").await.expect("altered");
    let row = client.query_one("select * from t", &[]).await.expect("prepared again");
    assert_eq!(row.get::<_, i32>("m"), 2);
    // `query_raw` cannot run a statement twice, so the first call after the change fails. The next
    // call prepares the text again.
    client.batch_execute("alter table t add k int").await.expect("altered");
    let read = async || {
        let rows = client.query_raw("select * from t", Vec::<i32>::new()).await?;
        rows.try_collect::<Vec<_>>().await
    };
    assert_eq!(read().await.expect_err("outdated").code(), Some(&SqlState::FEATURE_NOT_SUPPORTED));
    assert_eq!(read().await.expect("prepared again")[0].len(), 4);
    client.batch_execute("alter table t add j int").await.expect("altered");
    let read = async || client.pipelined().query_one("select * from t", &[]).await?.await;
    assert_eq!(read().await.expect_err("outdated").code(), Some(&SqlState::FEATURE_NOT_SUPPORTED));
    assert_eq!(read().await.expect("prepared again").len(), 5);
    // A pool does this when a program returns its connection.
    client.batch_execute("discard plans; deallocate all").await.expect("deallocated");
    assert_eq!(read().await.expect("prepared again").len(), 5);
    client.batch_execute("deallocate all; select 1 / 0").await.expect_err("a rollback restores no statement");
    assert_eq!(read().await.expect("prepared again").len(), 5);
}

#[tokio::test]
async fn statement_of_another_client_is_refused() {
    let ((client, _), mut other) = (connect().await, with_table().await);
    other.batch_execute("insert into t values (1)").await.expect("inserted");
    let select = client.prepare("select 1").await.expect("prepared");
    let _delete = other.prepare("delete from t").await.expect("prepared");
    let error = other.query(&select, &[]).await.expect_err("of another client");
    assert_eq!(error.code(), Some(&SqlState::INVALID_SQL_STATEMENT_NAME));
    let error = other.transaction().await.expect("begun").bind(&select, &[]).await.expect_err("of another client");
    assert_eq!(error.code(), Some(&SqlState::INVALID_SQL_STATEMENT_NAME));
    assert_eq!(count(&other).await, 1, "its own statement did not run");
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_an_unsent_statement_stays_prepared() {
    let (client, _) = connect().await;
    let pipelined = client.pipelined();
    let mut answers = Vec::new();
    for n in 0..1100 {
        answers.push(pipelined.query_one(&format!("select {n}"), &[]).await.expect("queued"));
    }
    for (n, answer) in (0..).zip(answers) {
        assert_eq!(answer.await.expect("read").get::<_, i32>(0), n);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_and_savepoints_are_values() {
    let mut client = with_table().await;
    let mut transaction = client
        .build_transaction()
        .isolation_level(IsolationLevel::Serializable)
        .read_only(false)
        .start()
        .await
        .expect("begun");
    transaction.execute("insert into t values (1)", &[]).await.expect("inserted");
    let mut savepoint = transaction.savepoint("one").await.expect("set");
    savepoint.execute("insert into t values (2)", &[]).await.expect("inserted");
    let inner = savepoint.transaction().await.expect("set");
    assert!(inner.execute("insert into t values (2)", &[]).await.is_err());
    inner.rollback().await.expect("rolled back");
    savepoint.commit().await.expect("released");
    let dropped = transaction.transaction().await.expect("set");
    dropped.execute("insert into t values (3)", &[]).await.expect("inserted");
    drop(dropped);
    let level: String = transaction.query_one_scalar("show transaction_isolation", &[]).await.expect("shown");
    assert_eq!(level, "serializable");
    let portal = transaction.bind("select n from t order by n", &[]).await.expect("bound");
    assert_eq!(transaction.query_portal(&portal, 1).await.expect("read")[0].get::<_, i32>(0), 1);
    let rest: Vec<_> = transaction.query_portal_raw(&portal, 0).await.expect("sent").try_collect().await.expect("read");
    assert_eq!(rest.len(), 1);
    drop(portal);
    transaction.commit().await.expect("committed");
    assert_eq!(count(&client).await, 2);
    let transaction = client.transaction().await.expect("begun");
    transaction.execute("delete from t", &[]).await.expect("deleted");
    drop(transaction);
    assert_eq!(count(&client).await, 2, "rolled back");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_streamed_and_a_dropped_stream_harms_no_call() {
    let (client, _) = connect().await;
    let series = "select n, repeat('x', 1000) from generate_series(1, $1) n";
    for read in [0, 1, 3000] {
        let mut rows = pin!(client.query_raw(series, [20_000_i32]).await.expect("sent"));
        for n in 1..=read {
            assert_eq!(rows.try_next().await.expect("read").expect("a row").get::<_, i32>(0), n);
        }
    }
    let mut rows = pin!(client.query_raw(series, [20_000_i32]).await.expect("sent"));
    assert!(rows.try_next().await.expect("read").is_some());
    let answer = client.query_one_scalar::<i32, _>("select 7", &[]);
    assert_eq!(timeout(SOON, answer).await.expect("a slow reader delays no call").expect("read"), 7);
    let mut count = 1;
    while rows.try_next().await.expect("read").is_some() {
        count += 1;
    }
    assert_eq!((count, rows.rows_affected()), (20_000, Some(20_000)));
    let by_zero = "select 1 / (10 - n) from generate_series(1, $1) n";
    let rows: Vec<Result<_, _>> = client.query_raw(by_zero, [20_i32]).await.expect("sent").collect().await;
    assert!(rows.len() == 10 && rows[..9].iter().all(Result::is_ok));
    assert_eq!(rows[9].as_ref().expect_err("by zero").code(), Some(&SqlState::DIVISION_BY_ZERO));
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_go_both_ways_beside_other_calls() {
    let client = with_table().await;
    let mut sink = pin!(client.copy_in::<_, Bytes>("copy t from stdin").await.expect("begun"));
    let behind = tokio::time::timeout(SOON, count(&client));
    let copies = async {
        for n in 0..50_000 {
            sink.send(Bytes::from(format!("{n}\tword {n}\n"))).await.expect("sent");
        }
        sink.as_mut().finish().await.expect("copied")
    };
    let (behind, rows) = join!(behind, copies);
    assert_eq!((behind.expect("it follows the copy"), rows), (50_000, 50_000));
    let data: Vec<Bytes> = client
        .copy_out("copy (select n from t order by n) to stdout")
        .await
        .expect("begun")
        .try_collect()
        .await
        .expect("read");
    assert_eq!(data.concat().split(|byte| *byte == b'\n').count(), 50_001);
    drop(client.copy_out("copy t to stdout").await.expect("begun"));
    drop(client.copy_in::<_, Bytes>("copy t from stdin").await.expect("begun"));
    let wrong = client.copy_in::<_, Bytes>("select 1").await.expect_err("no copy").to_string();
    assert!(wrong.contains("not a copy from stdin"), "{wrong}");
    assert!(client.copy_out("select 1").await.is_err());
    assert!(client.copy_in::<_, Bytes>("copy nothing from stdin").await.is_err());
    let mut sink = pin!(client.copy_in::<_, Bytes>("copy t from stdin").await.expect("begun"));
    sink.send(Bytes::from_static(b"no number\n")).await.expect("sent");
    let error = sink.as_mut().finish().await.expect_err("no number");
    assert_eq!(error.code(), Some(&SqlState::INVALID_TEXT_REPRESENTATION));
    let counts = join_all((0..10).map(|_| count(&client))).await;
    assert_eq!(counts, [50_000; 10], "the session is in step");
}

/// The next copy begins before the caller of the refused copy receives its error.
#[tokio::test]
async fn refused_copy_does_not_abort_the_next_one() {
    let client = with_table().await;
    client.batch_execute("create temp table gone (n int)").await.expect("created");
    let refused = client.prepare("copy gone from stdin").await.expect("prepared");
    let next = client.prepare("copy t from stdin").await.expect("prepared");
    let out = client.prepare("copy gone to stdout").await.expect("prepared");
    client.batch_execute("drop table gone").await.expect("dropped");
    assert_eq!(client.copy_out(&out).await.expect_err("no table").code(), Some(&SqlState::UNDEFINED_TABLE));
    let (refused, next) = join!(client.copy_in::<_, Bytes>(&refused), client.copy_in::<_, Bytes>(&next));
    assert_eq!(refused.expect_err("no table").code(), Some(&SqlState::UNDEFINED_TABLE));
    let mut sink = pin!(next.expect("begun"));
    sink.send(Bytes::from_static(b"1\tone\n")).await.expect("sent");
    assert_eq!(sink.as_mut().finish().await.expect("copied"), 1);
    assert_eq!(count(&client).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn simple_queries_return_texts() {
    let client = with_table().await;
    let messages = client.simple_query("insert into t values (1, null); select n, word from t; ;").await.expect("run");
    let [
        SimpleQueryMessage::CommandComplete(1),
        SimpleQueryMessage::RowDescription(columns),
        SimpleQueryMessage::Row(row),
        SimpleQueryMessage::CommandComplete(1),
    ] = &messages[..]
    else {
        panic!("{messages:?}");
    };
    assert_eq!((columns.len(), row.get("n"), row.get(1)), (2, Some("1"), None));
    assert!(client.simple_query("select nothing").await.is_err());
    client.check_connection().await.expect("in step");
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_token_cancels_and_the_connection_ends_with_its_client() {
    let url = database().await;
    let connect = async || tokio_postgres::connect(&url, NoTls).await.expect("connected");
    let ((client, connection), (other, others)) = (connect().await, connect().await);
    let (connection, _others) = (tokio::spawn(connection), tokio::spawn(others));
    let token = client.cancel_token();
    let sleeps = client.batch_execute("select pg_sleep(3600)");
    let cancels = async {
        let running = "select count(*) from pg_stat_activity where query = 'select pg_sleep(3600)' and state = 'active'
            and datname = current_database()";
        eventually("it runs", async || other.query_one_scalar::<i64, _>(running, &[]).await.expect("counted") == 1)
            .await;
        token.cancel_query(NoTls).await.expect("sent");
    };
    let (slept, ()) = timeout(SOON, async { join!(sleeps, cancels) }).await.expect("cancelled");
    assert_eq!(slept.expect_err("cancelled").code(), Some(&SqlState::QUERY_CANCELED));
    assert!(!client.is_closed());
    drop(client);
    timeout(SOON, connection).await.expect("it ends").expect("no panic").expect("without an error");
}

#[tokio::test(flavor = "multi_thread")]
async fn notices_and_notifications_are_messages_of_the_connection() {
    let config: Config = database().await.parse().expect("valid");
    let (client, mut connection) = config.connect(NoTls).await.expect("connected");
    assert!(connection.parameter("server_version").is_some());
    let says = "listen a; notify a, 'hello'; do $$ begin raise notice 'by the way'; end $$";
    let (mut notes, mut notices) = (Vec::new(), Vec::new());
    let hears = async {
        while notes.is_empty() || notices.is_empty() {
            match std::future::poll_fn(|context| connection.poll_message(context)).await {
                Some(Ok(AsyncMessage::Notification(note))) => {
                    notes.push((note.channel().to_owned(), note.payload().to_owned()));
                }
                Some(Ok(AsyncMessage::Notice(notice))) => notices.push(notice.message().to_owned()),
                other => panic!("{other:?}"),
            }
        }
    };
    let said = async { client.batch_execute(says).await };
    let both = async { join!(hears, said) };
    // The answer may arrive in the same read as the last message, and needs no further poll.
    timeout(SOON, both).await.expect("both arrive").1.expect("run");
    assert_eq!((notes, notices), (vec![("a".to_owned(), "hello".to_owned())], vec!["by the way".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_settings_are_refused_by_name() {
    assert!("host=a port=b".parse::<Config>().is_err());
    let error = tokio_postgres::connect("user=a", NoTls).await.expect_err("no host").to_string();
    assert!(error.contains("host"), "{error}");
    let required = "host=127.0.0.1 port=1 sslmode=require";
    let error = tokio_postgres::connect(required, NoTls).await.map(drop).expect_err("no encryption").to_string();
    assert!(error.contains("AsConfigured"), "{error}");
    let mut config = Config::new();
    config.host("127.0.0.1").port(1).user("a b").password("it's").connect_timeout(Duration::from_secs(1));
    assert!(!format!("{config:?}").contains("it's"), "no secret is shown");
    assert!(config.connect(NoTls).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_read_as_they_were_set() {
    let config: Config = "host=a,/tmp port=1,2 user=u".parse().expect("valid");
    assert_eq!(
        (config.get_hosts(), config.get_ports()),
        (&[Host::Tcp("a".into()), Host::Unix("/tmp".into())][..], &[1, 2][..])
    );
    assert_eq!((config.get_user(), config.get_dbname(), config.get_password()), (Some("u"), None, None));
    let mut config: Config = database().await.parse().expect("valid");
    let hosts = config.get_hosts().to_vec();
    config
        .application_name("counted")
        .keepalives(true)
        .keepalives_idle(Duration::from_secs(60))
        .keepalives_interval(Duration::from_millis(1))
        .keepalives_retries(3)
        .tcp_user_timeout(Duration::from_secs(60))
        .ssl_mode(SslMode::Disable)
        .ssl_negotiation(SslNegotiation::Postgres)
        .channel_binding(ChannelBinding::Disable)
        .target_session_attrs(TargetSessionAttrs::ReadWrite)
        .load_balance_hosts(LoadBalanceHosts::Random);
    let (client, connection) = config.connect(NoTls).await.expect("connected");
    tokio::spawn(connection);
    let name = client.query_one_scalar::<String, _>("show application_name", &[]).await.expect("read");
    assert_eq!((config.get_hosts(), config.get_application_name()), (&hosts[..], Some(&*name)));
    config.target_session_attrs(TargetSessionAttrs::ReadOnly);
    assert!(config.connect(NoTls).await.is_err(), "it accepts writes");
}
