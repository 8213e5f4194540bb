//! Tests that the server must wait for the reader of a stream, unless another caller waits for a
//! reply.

use std::{
    future::poll_fn,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncWriteExt, DuplexStream},
    time::timeout,
};

use super::{
    Use, WireError, group,
    hostile::{SOON, between, message, ready, row},
};
use crate::postgres::{
    target::AnswerLimits,
    wire::{Arrived, Connection, Group, Incoming, Reply, ReplyMode},
};

const ALL: usize = 32 << 20;
/// The maximum number of bytes that are received but not read: the limit plus the buffers of the
/// connection and of the pipe.
const MOST: usize = (1 << 20) + (256 << 10);

fn streamed() -> Group {
    let mut group = group(&["select 1"]);
    group.mode = ReplyMode::Streamed;
    group
}

/// A simulated server that sends rows of 1,024 bytes.
struct Server {
    io: DuplexStream,
    bytes: usize,
}

impl Server {
    fn new(io: DuplexStream) -> Self {
        Self { io, bytes: 0 }
    }

    /// Sends `bytes` bytes, or fewer if the client stops reading for a while. Returns the number of
    /// bytes that were accepted.
    async fn says(&mut self, bytes: usize) -> usize {
        let (row, before) = (a_row(), self.bytes);
        while self.bytes < before + bytes {
            let rest = &row[self.bytes % row.len()..];
            match timeout(Duration::from_millis(200), self.io.write(rest)).await {
                Ok(written) => self.bytes += written.expect("open"),
                Err(_) => break,
            }
        }
        self.bytes - before
    }
}

fn a_row() -> Vec<u8> {
    row(&[&[b'x'; 1013]])
}

async fn next(stream: &mut Incoming, connection: &Connection) -> Arrived {
    let mut place = None;
    let arrived = poll_fn(|context| {
        let polled = stream.poll_rows(&mut place, context);
        connection.read_on();
        polled
    });
    timeout(SOON, arrived).await.expect("in time")
}

/// Reads a stream to its end. Returns the total length of its messages, and the outcome.
async fn whole(stream: &mut Incoming, connection: &Connection) -> (usize, Result<Reply, WireError>) {
    let mut bytes = 0;
    loop {
        let arrived = next(stream, connection).await;
        bytes += arrived.messages.chunks.iter().map(bytes::Bytes::len).sum::<usize>();
        if let Some(end) = arrived.end {
            return (bytes, end);
        }
    }
}

fn end() -> Vec<u8> {
    [message(b'C', b"SELECT 1\0"), ready(b'T')].concat()
}

#[tokio::test]
async fn server_waits_until_the_reader_goes_on() {
    let (connection, server, _driver) = between(AnswerLimits::default(), Use::Alone);
    let mut server = Server::new(server);
    let mut stream = connection.send(streamed());
    let held = server.says(ALL).await;
    assert!((1 << 20..MOST).contains(&held), "{held} bytes were accepted");
    let rest = tokio::spawn(async move {
        let said = server.says(ALL).await;
        (said, server)
    });
    let began = Instant::now();
    let mut bytes = 0;
    while !rest.is_finished() && began.elapsed() < SOON {
        if let Ok(arrived) = timeout(Duration::from_millis(10), next(&mut stream, &connection)).await {
            bytes += arrived.messages.chunks.iter().map(bytes::Bytes::len).sum::<usize>();
        }
    }
    let (said, _server) = rest.await.expect("no panic");
    assert!(said >= ALL && bytes > ALL / 2, "{said} bytes were accepted and {bytes} read");
}

#[tokio::test]
async fn caller_behind_a_full_stream_gets_its_answer() {
    let (connection, mut server, _driver) = between(AnswerLimits::default(), Use::Alone);
    let mut stream = connection.send(streamed());
    let full = async {
        let row = a_row();
        for _ in 0..8 << 10 {
            server.write_all(&row).await.expect("open");
        }
        server.write_all(&[end(), message(b'C', b"SELECT 7\0"), ready(b'T')].concat()).await.expect("open");
    };
    let behind = connection.send(group(&["select 7"]));
    let (answer, ()) = timeout(SOON, async { tokio::join!(behind, full) }).await.expect("no deadlock");
    assert_eq!(answer.expect("answered").tag(0), "SELECT 7");
    let (bytes, end) = whole(&mut stream, &connection).await;
    assert!(bytes >= 8 << 20 && end.is_ok(), "no row is lost");
}

#[tokio::test]
async fn reader_of_a_stream_behind_a_full_one_gets_its_rows() {
    let (connection, mut server, _driver) = between(AnswerLimits::default(), Use::Alone);
    let mut first = connection.send(streamed());
    let mut second = connection.send(streamed());
    let says = tokio::spawn(async move {
        let row = a_row();
        for _ in 0..2 {
            for _ in 0..4 << 10 {
                server.write_all(&row).await.expect("open");
            }
            server.write_all(&end()).await.expect("open");
        }
        server
    });
    let (bytes, end) = whole(&mut second, &connection).await;
    assert!(bytes >= 4 << 20 && end.is_ok());
    let (bytes, end) = whole(&mut first, &connection).await;
    assert!(bytes >= 4 << 20 && end.is_ok());
    drop(says.await.expect("no panic"));
}

#[tokio::test]
async fn reader_that_leaves_holds_the_server_no_longer() {
    let (connection, server, _driver) = between(AnswerLimits::default(), Use::Alone);
    let mut server = Server::new(server);
    let stream = connection.send(streamed());
    assert!(server.says(ALL).await < MOST);
    stream.skip_rows();
    connection.read_on();
    let said = timeout(SOON, server.says(ALL)).await.expect("in time");
    assert!(said >= ALL, "{said} bytes were accepted");
}

#[tokio::test]
async fn groups_that_no_caller_waits_for_do_not_empty_the_stream() {
    let (connection, server, _driver) = between(AnswerLimits::default(), Use::Alone);
    let mut server = Server::new(server);
    let _stream = connection.send(streamed());
    let mut close = Group::new();
    close.close_statement("s1").expect("encoded");
    drop(connection.send(close));
    connection.shared.lock().soiled = true;
    connection.clean();
    let said = server.says(ALL).await;
    assert!(said < MOST, "{said} bytes were accepted");
}

#[tokio::test]
async fn rollback_that_no_caller_awaits_does_not_wait_for_the_reader() {
    let (connection, server, _driver) = between(AnswerLimits::default(), Use::Alone);
    let mut server = Server::new(server);
    let _stream = connection.send(streamed());
    drop(connection.send(group(&["rollback"])));
    assert_eq!(server.says(ALL).await, ALL, "the driver reads on, to the reply of the rollback");
}

#[tokio::test]
async fn unread_rows_beyond_the_limit_are_an_error_after_the_rows() {
    let limits = AnswerLimits { answer_bytes: 2 << 20, ..AnswerLimits::default() };
    let (connection, mut server, _driver) = between(limits, Use::Alone);
    let mut stream = connection.send(streamed());
    let behind = connection.send(group(&["select 7"]));
    let says = async {
        let row = a_row();
        for _ in 0..8 << 10 {
            server.write_all(&row).await.expect("open");
        }
        server.write_all(&[end(), message(b'C', b"SELECT 7\0"), ready(b'T')].concat()).await.expect("open");
    };
    let (answer, ()) = timeout(SOON, async { tokio::join!(behind, says) }).await.expect("no deadlock");
    assert_eq!(answer.expect("answered").tag(0), "SELECT 7");
    let (bytes, end) = whole(&mut stream, &connection).await;
    assert!((1 << 20..(2 << 20) + 100).contains(&bytes), "{bytes} bytes were kept");
    assert!(matches!(end, Err(WireError::TooLarge(limit)) if limit == 2 << 20), "{end:?}");
}

#[tokio::test]
async fn server_that_waits_for_the_reader_is_not_late() {
    let limits = AnswerLimits { answer: Some(Duration::from_millis(300)), ..AnswerLimits::default() };
    let (connection, server, driver) = between(limits, Use::Alone);
    let mut server = Server::new(server);
    let mut stream = connection.send(streamed());
    let held = timeout(SOON, async {
        let mut held = 0;
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(1) {
            held += server.says(ALL).await;
        }
        held
    });
    assert!(held.await.expect("in time") < MOST);
    assert!(!driver.is_finished(), "the reader is slow, not the server");
    assert!(!next(&mut stream, &connection).await.messages.chunks.is_empty());
    let lost = timeout(SOON, driver).await.expect("the server is silent now").expect("no panic");
    assert!(lost.is_err());
}
