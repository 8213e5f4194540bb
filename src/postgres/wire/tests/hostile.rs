//! Tests that a malicious or faulty server causes an error and cannot use unlimited time or memory.

use std::{sync::Arc, time::Duration};

use bytes::BytesMut;
use postgres_types::Type;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    time::timeout,
};

use super::group;
use crate::{
    error::Error,
    postgres::{
        target::AnswerLimits,
        wire::{
            Bound, Columns, Connection, Use, WireError,
            connection::Connection as Ours,
            drive::drive,
            queued::Link,
            row::{Row, only},
        },
    },
};

pub(super) const SOON: Duration = Duration::from_secs(10);

pub(super) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

pub(super) fn row(values: &[&[u8]]) -> Vec<u8> {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        body.extend((value.len() as u32).to_be_bytes());
        body.extend_from_slice(value);
    }
    message(b'D', &body)
}

pub(super) fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

/// Returns a connection, the server's end of it, and the driver's task.
pub(super) fn between(
    limits: AnswerLimits,
    usage: Use,
) -> (Ours, DuplexStream, tokio::task::JoinHandle<std::io::Result<()>>) {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let shared = Arc::new(Link::new(limits, usage));
    let connection = Connection::over(shared.clone());
    (connection, theirs, tokio::spawn(drive(ours, BytesMut::new(), shared)))
}

/// Sends the same reply to each request.
async fn answers(mut server: DuplexStream, answer: Vec<u8>) {
    let mut asked = vec![0; 64 << 10];
    while let Ok(count @ 1..) = server.read(&mut asked).await {
        let syncs = asked[..count].windows(5).filter(|bytes| *bytes == b"S\0\0\0\x04").count();
        for _ in 0..syncs {
            if server.write_all(&answer).await.is_err() {
                return;
            }
        }
    }
}

#[tokio::test]
async fn a_message_of_an_impossible_length_ends_the_connection() {
    for length in [0_u32, 3, (1 << 30) + 1, u32::MAX] {
        let (connection, mut server, driver) = between(AnswerLimits::default(), Use::Common);
        let answer = connection.send(group(&["select 1"]));
        server.write_all(&[&b"C"[..], &length.to_be_bytes(), b"SELECT 1\0"].concat()).await.expect("sent");
        let answer = timeout(SOON, answer).await.expect("no call waits without end");
        assert!(matches!(answer, Err(WireError::Lost(None))), "{length}: {answer:?}");
        assert!(driver.await.expect("no panic").is_err() && connection.is_closed());
    }
}

#[tokio::test]
async fn an_answer_without_end_is_not_kept() {
    let limits = AnswerLimits { answer_bytes: 1 << 20, ..AnswerLimits::default() };
    let (connection, mut server, _driver) = between(limits, Use::Common);
    let answer = connection.send(group(&["select 1", "select 2"]));
    let next = connection.send(group(&["select 3"]));
    let (row, end) = (row(&[&[b'x'; 8000]]), message(b'C', b"SELECT 1\0"));
    for _ in 0..4000 {
        server.write_all(&row).await.expect("read"); // 32 MB, more than the socket holds
    }
    server.write_all(&[&end[..], &row, &end, &ready(b'I')].concat()).await.expect("read");
    let outcome = timeout(SOON, answer).await.expect("answered");
    assert!(matches!(outcome, Err(WireError::TooLarge(limit)) if limit == 1 << 20), "{outcome:?}");
    // The other caller's reply is unaffected.
    server.write_all(&[&end[..], &ready(b'I')].concat()).await.expect("read");
    assert_eq!(timeout(SOON, next).await.expect("answered").expect("its own").tag(0), "SELECT 1");
    // If the server reports an error, the caller receives that error.
    let answer = connection.send(group(&["select 1"]));
    for _ in 0..400 {
        server.write_all(&row).await.expect("read");
    }
    let error = message(b'E', b"VERROR\0C22012\0Mdivision\0\0");
    server.write_all(&[&error[..], &ready(b'I')].concat()).await.expect("read");
    let outcome = timeout(SOON, answer).await.expect("answered").expect_err("an error");
    assert_eq!(outcome.server().map(|error| &*error.message), Some("division"));
}

#[tokio::test]
async fn ends_without_end_end_the_connection() {
    let limits = AnswerLimits { answer_bytes: 1 << 20, ..AnswerLimits::default() };
    let (connection, mut server, driver) = between(limits, Use::Common);
    let answer = connection.send(group(&["select 1"]));
    let end = message(b'C', &[b'x'; 8000]);
    while server.write_all(&end).await.is_ok() {}
    assert!(matches!(timeout(SOON, answer).await.expect("answered"), Err(WireError::Lost(None))));
    assert!(driver.await.expect("no panic").is_err());
}

#[tokio::test]
async fn transaction_left_open_ends_a_shared_connection() {
    for (usage, status) in [(Use::Common, b'T'), (Use::Common, b'E'), (Use::Common, b'?'), (Use::Alone, b'T')] {
        let (connection, mut server, _driver) = between(AnswerLimits::default(), usage);
        let (begins, next) = (connection.send(group(&["begin"])), connection.send(group(&["insert"])));
        let end = message(b'C', b"BEGIN\0");
        server.write_all(&[&end[..], &ready(status), &end, &ready(status)].concat()).await.expect("sent");
        let outcomes = (timeout(SOON, begins).await.expect("answered"), timeout(SOON, next).await.expect("answered"));
        match usage {
            Use::Common => {
                assert!(matches!(outcomes, (Err(WireError::LeftOpen), Err(WireError::Lost(None)))), "{outcomes:?}");
                assert!(connection.is_closed(), "before its caller knew");
            }
            Use::Alone => assert!(outcomes.0.is_ok() && outcomes.1.is_ok()),
        }
    }
}

#[tokio::test]
async fn answer_timeout_ends_a_silent_server_despite_constant_requests() {
    let limits = AnswerLimits { answer: Some(Duration::from_millis(50)), ..AnswerLimits::default() };
    let (connection, mut server, driver) = between(limits, Use::Common);
    // Five replies that arrive within the timeout do not end the connection.
    for _ in 0..5 {
        let answer = connection.send(group(&["select 1"]));
        server.write_all(&[&message(b'C', b"SELECT 1\0")[..], &ready(b'I')].concat()).await.expect("sent");
        assert!(answer.await.is_ok());
    }
    let answer = connection.send(group(&["select 2"]));
    let talks = async {
        while !connection.is_closed() {
            drop(connection.send(group(&["select 3"])));
            tokio::task::yield_now().await;
            // the server reads, and sends no reply
            let _ = timeout(Duration::from_millis(1), server.read(&mut [0; 4096])).await;
        }
    };
    timeout(SOON, talks).await.expect("it ends");
    let answer = answer.await;
    let limit = Duration::from_millis(50);
    assert!(matches!(answer, Err(WireError::Silent { limit: after, sent: true }) if after == limit), "{answer:?}");
    let why = driver.await.expect("no panic").expect_err("a reason").to_string();
    assert_eq!(why, "no answer in 0.05 s (answer_timeout)");
}

#[tokio::test]
async fn answer_timeout_does_not_count_while_the_server_waits_for_data() {
    const LIMIT: Duration = Duration::from_millis(50);
    let limits = AnswerLimits { answer: Some(LIMIT), ..AnswerLimits::default() };
    let (asks, late) = (message(b'G', &[0, 0, 0]), "no answer in 0.05 s (answer_timeout)");
    for (is_asked, is_ended) in [(false, false), (true, false), (true, true)] {
        let (connection, mut server, mut driver) = between(limits, Use::Alone);
        let _copy = connection.begin_copy(group(&["copy t from stdin"])).await.expect("sent");
        let _behind = connection.send(group(&["select 1"]));
        if is_asked {
            server.write_all(&asks).await.expect("sent");
            assert!(timeout(LIMIT * 6, &mut driver).await.is_err(), "the caller is slow, not the server");
            connection.copy_data(&b"1\n"[..]).expect("sent");
            assert!(timeout(LIMIT * 6, &mut driver).await.is_err(), "the caller has more data");
            if is_ended {
                connection.end_copy(true);
                drop(connection.begin_copy(group(&["copy t from stdin"])).await.expect("sent"));
            } else {
                connection.copy_data(vec![b'x'; 1 << 20].as_slice()).expect("sent"); // the server does not read it
            }
        }
        let why = timeout(SOON, driver).await.expect("it ends").expect("no panic").expect_err("a reason").to_string();
        assert_eq!(why, late, "{is_asked} {is_ended}");
    }
}

#[tokio::test]
async fn a_type_that_is_made_of_itself_is_refused() {
    for kind in *b"drb" {
        let itself = 99_999_u32.to_be_bytes();
        let (connection, server, _driver) = between(AnswerLimits::default(), Use::Common);
        // The statement has a parameter of this type. The type consists of itself.
        let described = message(b't', &[&[0, 1][..], &itself].concat());
        let found = row(&[b"loop", b"public", &[kind], &itself, &itself, &itself]);
        let answer = [described, found, message(b'C', b"SELECT 1\0"), ready(b'I')].concat();
        let server = tokio::spawn(answers(server, answer));
        let refused = timeout(SOON, connection.prepare("select $1")).await.expect("in time").map(drop);
        assert!(matches!(refused, Err(WireError::Protocol(_))), "{}: {refused:?}", char::from(kind));
        server.abort();
    }
}

#[test]
fn a_row_of_another_shape_is_an_error() {
    let columns = Arc::new(Columns::new(Vec::new(), vec![("n".to_owned(), Type::INT8)]));
    let of = |bytes: &'static [u8]| Row { columns: columns.clone(), values: bytes.into() };
    let shape = |outcome: Result<i64, Error>| outcome.expect_err("another shape").to_string();
    for bytes in [&b""[..], b"\0\0", b"\0\0\0\x08", b"\0\0\0\x03abc", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xffab"] {
        let text = shape(of(bytes).read(0));
        assert!(text.contains("does not match the statement"), "{bytes:?}: {text}");
    }
    assert!(shape(of(b"\0\0\0\x08abcdefgh").read(1)).contains("fewer than are read"));
    assert!(of(b"\0\0\0\x08abcdefgh").read::<&str>(0).is_err());
    assert!(only(&[]).is_err());
}

#[tokio::test]
async fn rows_beyond_those_of_an_honest_answer_are_not_kept() {
    let (connection, mut server, _driver) = between(AnswerLimits::default(), Use::Common);
    let (row, end) = (row(&[&[b'x'; 8000]]), message(b'C', b"SELECT 1\0"));
    for (bound, rows, is_kept) in [
        (Bound { rows: Some(1), whole: false }, 4000, false),
        (Bound { rows: Some(1000), whole: true }, 4000, false),
        (Bound { rows: Some(4000), whole: true }, 4000, true),
        (Bound { rows: None, whole: true }, 4000, true),
    ] {
        let mut asked = group(&["select 1"]);
        asked.bound = bound;
        let answer = connection.send(asked);
        for _ in 0..rows {
            server.write_all(&row).await.expect("read");
        }
        server.write_all(&[&end[..], &ready(b'I')].concat()).await.expect("read");
        let outcome = timeout(SOON, answer).await.expect("answered");
        assert_eq!(outcome.is_ok(), is_kept, "{bound:?}");
        let most = bound.rows.unwrap_or_default();
        assert!(is_kept || matches!(outcome, Err(WireError::TooManyRows(found)) if found == most), "{outcome:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_kept_whole_may_exceed_the_limit() {
    let limits = AnswerLimits { answer_bytes: 1 << 20, ..AnswerLimits::default() };
    let (connection, mut server, _driver) = between(limits, Use::Common);
    let (row, end) = (row(&[&[b'x'; 8000]]), message(b'C', b"SELECT 1\0"));
    let mut asked = group(&["delete"]);
    asked.bound = Bound { rows: Some(500), whole: true };
    let answer = connection.send(asked);
    for _ in 0..500 {
        server.write_all(&row).await.expect("read");
    }
    server.write_all(&[&end[..], &ready(b'I')].concat()).await.expect("read");
    let reply = timeout(SOON, answer).await.expect("answered").expect("kept");
    assert_eq!(reply.rows(0, &std::sync::Arc::default()).len(), 500);
}
