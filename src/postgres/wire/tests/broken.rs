//! Tests of connections that break at a critical moment.

use trunkline_embedded::DelayProxy;

use super::{Connection, Use, WireError, connection, group, numbers, server};
use crate::postgres::target::Target;

/// Connects through a proxy that can cut the connection.
async fn through(proxy: &DelayProxy) -> Connection {
    let url = format!("host=127.0.0.1 port={} user=trunkline dbname=postgres sslmode=disable", proxy.addr().port());
    Connection::open(&Target::parse_in(&url, |_| None).expect("a valid string"), Use::Alone).await.expect("connected")
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_cut_at_any_byte_is_an_unknown_outcome() {
    let socket = server().await.socket();
    let proxy = DelayProxy::start("127.0.0.1:0", &*socket, std::time::Duration::ZERO).expect("started");
    let statements = ["select 1", "select 'a text'", "select generate_series(1, 3)"];
    let mut cut = 0;
    loop {
        let connection = through(&proxy).await;
        proxy.cut_answers_after(Some(cut));
        let outcome = connection.send(group(&statements)).await;
        proxy.cut_answers_after(None);
        match outcome {
            Err(WireError::Lost(_)) => {
                assert!(connection.send(group(&["select 1"])).await.is_err(), "it stays closed");
                assert!(connection.is_closed());
            }
            Ok(answer) => {
                assert_eq!(numbers(&answer, 2), [1, 2, 3]);
                break;
            }
            other => panic!("cut after {cut} bytes: {other:?}"),
        }
        cut += 1;
    }
    assert!(cut > 100, "the answer was only {cut} bytes long");
}

#[tokio::test]
async fn the_last_words_of_a_backend_reach_whoever_waits() {
    let connection = connection().await;
    let outcome = connection.send(group(&["select pg_terminate_backend(pg_backend_pid())", "select 1"])).await;
    let failure = outcome.expect_err("it is gone");
    let said = failure.server().map(|error| error.code.code().to_owned());
    assert_eq!(said.as_deref(), Some("57P01"), "{failure:?}");
    let next = connection.send(group(&["select 1"])).await;
    assert!(matches!(next, Err(WireError::Unsent(Some(_)))), "{next:?}");
    assert!(connection.is_closed());
}

#[tokio::test]
async fn dropped_connection_terminates_after_its_last_answer() {
    let connection = connection().await;
    let mine = connection.send(group(&["select pg_backend_pid()"])).await.expect("answered");
    let pid = numbers(&mine, 0)[0];
    let last = connection.send(group(&["select 5"]));
    drop(connection);
    assert_eq!(numbers(&last.await.expect("answered all the same"), 0), [5]);
    let observer = super::connection().await;
    let there = format!("select count(*)::int from pg_stat_activity where pid = {pid}");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while numbers(&observer.send(group(&[&there])).await.expect("asked"), 0) != [0] {
        assert!(std::time::Instant::now() < deadline, "the backend is still there");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn copy_without_data_ends_only_the_connection() {
    let connection = connection().await;
    connection.batch("create temp table t (n int)").await.expect("created");
    let outcome = connection.send(group(&["copy t from stdin"])).await;
    assert!(matches!(outcome, Err(WireError::Lost(_))), "{outcome:?}");
}
