//! Tests that a caller writes directly, without waking the driver, if the connection is idle.

use std::{
    io::{self, Read},
    os::fd::AsFd,
    sync::Arc,
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

use super::{
    group,
    hostile::{SOON, message, ready},
};
use crate::postgres::{
    target::AnswerLimits,
    wire::{Connection, Use, drive::drive, queued::Link, socket::Socket, stream::Stream},
};

const SYNC: &[u8] = b"S\0\0\0\x04";

/// Returns a connection whose driver has not started, the arguments of the driver, and the server's
/// end of the connection.
fn undriven(limits: AnswerLimits) -> (Connection, (Stream, Arc<Link>), UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let (ours, shared) = (Stream::of_local(ours).expect("registered"), Arc::new(Link::new(limits, Use::Common)));
    shared.lock().socket = Socket::of(&ours);
    (Connection::over(shared.clone()), (ours, shared), theirs)
}

async fn groups(server: &mut UnixStream, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.windows(SYNC.len()).filter(|part| *part == SYNC).count() < count {
        timeout(SOON, server.read_buf(&mut bytes)).await.expect("it was sent").expect("and read");
    }
    bytes
}

/// Returns true if no bytes were sent. Reads from the socket directly, because the runtime would
/// wait for a readiness event.
fn is_sent_nothing(server: &UnixStream) -> bool {
    let handle = server.as_fd().try_clone_to_owned().expect("another handle");
    let read = std::os::unix::net::UnixStream::from(handle).read(&mut [0]);
    matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

#[tokio::test]
async fn first_group_is_written_at_once_and_others_follow() {
    let (connection, (ours, shared), mut server) = undriven(AnswerLimits::default());
    let first = connection.send(group(&["select 'first'"]));
    let sent = groups(&mut server, 1).await;
    assert!(sent.ends_with(SYNC) && sent.windows(5).any(|part| part == b"first"), "{sent:?}");
    let others = [connection.send(group(&["select 'second'"])), connection.send(group(&["select 'third'"]))];
    assert!(is_sent_nothing(&server), "they would not share a flush");
    let _driver = tokio::spawn(drive(ours, BytesMut::new(), shared));
    let sent = groups(&mut server, 2).await;
    let at = |word: &[u8]| sent.windows(word.len()).position(|part| part == word).expect("sent");
    assert!(at(b"second") < at(b"third"));
    for number in 1..=3 {
        let tag = format!("SELECT {number}\0");
        server.write_all(&[message(b'C', tag.as_bytes()), ready(b'I')].concat()).await.expect("answered");
    }
    for (number, answer) in [first].into_iter().chain(others).enumerate() {
        let answer = timeout(SOON, answer).await.expect("it came").expect("answered");
        assert_eq!(answer.affected(0), number as u64 + 1, "answers go to their own groups");
    }
}

#[tokio::test]
async fn bytes_that_the_socket_refuses_are_left_to_the_driver() {
    let (connection, (ours, shared), mut server) = undriven(AnswerLimits::default());
    let bytes = 4 << 20;
    let _answer = connection.send(group(&[&format!("select '{}'", "é".repeat(bytes / 2))]));
    let left = shared.lock().bytes.len();
    assert!((1..bytes).contains(&left), "{left} bytes of {bytes} are left, so neither all nor nothing was written");
    let _driver = tokio::spawn(drive(ours, BytesMut::new(), shared));
    let sent = groups(&mut server, 1).await;
    assert_eq!(String::from_utf8_lossy(&sent).matches('é').count(), bytes / 2, "each once");
}

#[tokio::test]
async fn driver_with_answer_timeout_is_not_bypassed() {
    let (connection, (_ours, shared), server) =
        undriven(AnswerLimits { answer: Some(std::time::Duration::from_secs(1)), ..AnswerLimits::default() });
    let _answer = connection.send(group(&["select 1"]));
    assert!(is_sent_nothing(&server));
    assert!(shared.lock().bytes.ends_with(SYNC), "it is the driver's");
}

#[tokio::test]
async fn socket_closes_with_the_driver_though_callers_remain() {
    let (connection, (ours, shared), mut server) = undriven(AnswerLimits::default());
    let driver = tokio::spawn(drive(ours, BytesMut::new(), shared));
    driver.abort();
    let end = timeout(SOON, server.read(&mut [0])).await.expect("the handles are closed");
    assert_eq!(end.expect("no error"), 0);
    assert!(connection.is_closed());
}
