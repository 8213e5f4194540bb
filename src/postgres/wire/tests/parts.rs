//! Tests that the first parts of a reply can be read before the rest has arrived.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use bytes::Bytes;
use tokio::{io::AsyncWriteExt, sync::mpsc, time::timeout};

use super::{
    Use, WireError, group,
    hostile::{SOON, between, message, ready, row},
};
use crate::postgres::{
    target::AnswerLimits,
    wire::{Incoming, Reply, answer::Reading, frames, inbox::Came},
};

const END: &[u8] = b"SELECT 1\0";

/// Encodes a reply to a statement. The reply has one row with a value of `bytes` bytes.
fn answer(bytes: usize) -> Vec<u8> {
    [row(&[&vec![b'x'; bytes]]), message(b'C', END)].concat()
}

#[tokio::test]
async fn answer_is_read_while_the_server_runs_the_next_statement() {
    let (connection, mut server, _driver) = between(AnswerLimits::default(), Use::Common);
    let (seen, mut places) = mpsc::unbounded_channel();
    let reply = connection.send_in_parts(group(&["select 1"; 6]));
    let reading = tokio::spawn(reply.parts(move |reply: &Reply, at, place| {
        assert_eq!(reply.affected(at), 1);
        let _ = seen.send(place);
    }));
    server.write_all(&answer(40_000).repeat(4)).await.expect("sent"); // the driver may hold back the end of the last reply
    for place in 0..3 {
        assert_eq!(timeout(SOON, places.recv()).await.expect("before the end"), Some(place));
    }
    assert!(!reading.is_finished(), "nothing has happened yet");
    server.write_all(&[answer(1), answer(1), ready(b'I')].concat()).await.expect("sent");
    assert!(timeout(SOON, reading).await.expect("ended").expect("no panic").is_ok());
    for place in 3..6 {
        assert_eq!(places.recv().await, Some(place));
    }
    assert_eq!(places.recv().await, None);
}

#[tokio::test]
async fn reply_read_in_parts_may_still_fail_with_its_place() {
    let (connection, mut server, _driver) = between(AnswerLimits::default(), Use::Common);
    let reply = connection.send_in_parts(group(&["select 1", "select 1", "select 2"]));
    let mut read = 0;
    let error = message(b'E', b"VERROR\0C22012\0Mdivision\0\0");
    let answers = [answer(40_000), answer(40_000)].concat();
    server.write_all(&answers).await.expect("sent");
    server.write_all(&[error, ready(b'I')].concat()).await.expect("sent");
    let outcome = timeout(SOON, reply.parts(|_, _, _| read += 1)).await.expect("answered");
    match outcome {
        Err(WireError::Server { statement: 2, text: Some(text), .. }) => assert_eq!(&*text, "select 2"),
        other => panic!("{other:?}"),
    }
    assert_eq!(read, 2);
    // A reply without an end is an error, even if some parts have been read.
    let reply = connection.send_in_parts(group(&["select 1"; 3]));
    server.write_all(&[answers, ready(b'I')].concat()).await.expect("sent");
    let outcome = timeout(SOON, reply.parts(|_, _, _| ())).await.expect("answered");
    assert!(matches!(outcome, Err(WireError::Protocol(_))), "{outcome:?}");
}

#[tokio::test]
async fn reply_in_parts_is_bounded_and_its_reader_may_leave() {
    let limits = AnswerLimits { answer_bytes: 1 << 20, ..AnswerLimits::default() };
    let (connection, mut server, _driver) = between(limits, Use::Common);
    let many = connection.send_in_parts(group(&["select 1"; 400]));
    let gone = connection.send_in_parts(group(&["select 1"; 400]));
    let next = connection.send(group(&["select 3"]));
    let mut read = 0;
    let reading = many.parts(|_, _, _| read += 1);
    drop(gone);
    let says = async {
        for _ in 0..2 {
            for _ in 0..400 {
                server.write_all(&answer(8000)).await.expect("read"); // 3.2 MB
            }
            server.write_all(&ready(b'I')).await.expect("read");
        }
        server.write_all(&[answer(1), ready(b'I')].concat()).await.expect("read");
    };
    let (outcome, ()) = timeout(SOON, async { tokio::join!(reading, says) }).await.expect("answered");
    assert!(matches!(outcome, Err(WireError::TooLarge(limit)) if limit == 1 << 20), "{outcome:?}");
    assert!(read < 140, "{read} answers of 8,000 bytes are more than the limit");
    assert_eq!(timeout(SOON, next).await.expect("answered").expect("in step").tag(0), "SELECT 1");
    let one = connection.send_in_parts(group(&["select 4"]));
    let mut bytes = 0;
    let reading = row_by_row(one, |length| bytes += length);
    let says = async {
        for _ in 0..400 {
            server.write_all(&row(&[&vec![b'x'; 8000]])).await.expect("read");
        }
        server.write_all(&[message(b'C', END), ready(b'I')].concat()).await.expect("read");
    };
    let (outcome, ()) = timeout(SOON, async { tokio::join!(reading, says) }).await.expect("answered");
    assert!(matches!(outcome, Err(WireError::TooLarge(limit)) if limit == 1 << 20), "{outcome:?}");
    assert!(bytes < 2 << 20, "{bytes} bytes are more than the limit and what is collected before rows are dropped");
}

/// Reads a reply row by row. Passes the length of each row to `seen`.
async fn row_by_row(mut reply: Incoming, mut seen: impl FnMut(usize)) -> Result<Reply, WireError> {
    let mut place = None;
    loop {
        let arrived = std::future::poll_fn(|context| reply.poll_rows(&mut place, context)).await;
        let messages = arrived.messages.chunks.iter().flat_map(|chunk| frames(chunk));
        messages.filter(|(kind, _)| *kind == b'D').for_each(|(_, body)| seen(body.len()));
        if let Some(end) = arrived.end {
            return end;
        }
    }
}

#[tokio::test]
async fn rows_of_one_statement_are_read_before_its_end() {
    let (connection, mut server, _driver) = between(AnswerLimits::default(), Use::Common);
    let (seen, mut rows) = mpsc::unbounded_channel();
    let reply = connection.send_in_parts(group(&["select 1"]));
    let reading = tokio::spawn(row_by_row(reply, move |length| seen.send(length).unwrap_or_default()));
    let large = row(&[&vec![b'x'; 40_000]]);
    server.write_all(&[&large[..], &large, &large, &large].concat()).await.expect("sent");
    let large = Some(2 + 4 + 40_000);
    for _ in 0..3 {
        assert_eq!(timeout(SOON, rows.recv()).await.expect("before the end"), large);
    }
    assert!(!reading.is_finished(), "the statement has not ended");
    server.write_all(&[row(&[b"y"]), message(b'C', END), ready(b'I')].concat()).await.expect("sent");
    assert!(timeout(SOON, reading).await.expect("ended").expect("no panic").is_ok());
    assert_eq!([rows.recv().await, rows.recv().await, rows.recv().await], [large, Some(2 + 4 + 1), None]);
}

#[tokio::test]
async fn rows_that_were_read_may_still_be_those_of_a_failed_statement() {
    let (connection, mut server, _driver) = between(AnswerLimits::default(), Use::Common);
    let reply = connection.send_in_parts(group(&["select 1"]));
    let error = message(b'E', b"VERROR\0C22012\0Mdivision\0\0");
    let large = row(&[&vec![b'x'; 40_000]]);
    server.write_all(&[&large[..], &large, &error, &ready(b'I')].concat()).await.expect("sent");
    let mut read = 0;
    let outcome = timeout(SOON, row_by_row(reply, |_| read += 1)).await.expect("answered");
    assert!(matches!(outcome, Err(WireError::Server { statement: 0, .. })), "{outcome:?}");
    assert_eq!(read, 2);
    // If the end of the reply is missing, the statement does not count as run.
    let reply = connection.send_in_parts(group(&["select 1"]));
    server.write_all(&[&large[..], &ready(b'I')].concat()).await.expect("sent");
    let outcome = timeout(SOON, row_by_row(reply, |_| ())).await.expect("answered");
    assert!(matches!(outcome, Err(WireError::Protocol(_))), "{outcome:?}");
}

#[tokio::test]
async fn failed_bind_is_outdated_in_any_language() {
    let (connection, mut server, _driver) = between(AnswerLimits::default(), Use::Common);
    let fields = b"VERROR\0CXX000\0Mcache lookup failed for type 7\0Wunbenanntes Portal, Parameter $1\0\0";
    let error = message(b'E', fields);
    let (bound, end) = (message(b'2', b""), message(b'C', END));
    for (before, is_outdated) in [(Vec::new(), true), (bound.clone(), false), ([bound, end].concat(), false)] {
        let answer = connection.send(group(&["select 1"]));
        server.write_all(&[&before[..], &error, &ready(b'I')].concat()).await.expect("sent");
        let failure = timeout(SOON, answer).await.expect("answered").expect_err("an error");
        assert_eq!(failure.is_outdated(), is_outdated, "{failure:?}");
    }
}

#[tokio::test]
async fn rows_that_came_before_a_look_at_the_reply_are_kept() {
    let (connection, mut server, _driver) = between(AnswerLimits::default(), Use::Common);
    let mut reply = connection.send_in_parts(group(&["select 1"]));
    server.write_all(&[answer(1), ready(b'I')].concat()).await.expect("sent");
    let looked = async {
        loop {
            if let Some((outcome, unread)) = reply.come() {
                return (outcome, unread);
            }
            tokio::task::yield_now().await;
        }
    };
    let (outcome, unread) = timeout(SOON, looked).await.expect("answered");
    assert!(outcome.is_ok());
    assert_eq!(unread.chunks.iter().flat_map(|chunk| frames(chunk)).filter(|(kind, _)| *kind == b'D').count(), 1);
}

#[test]
fn a_reply_in_any_parts_is_the_same() {
    let ends = [&b"SELECT 1\0"[..], b"INSERT 0 2\0", b"UPDATE 7\0", b""];
    let messages: Vec<Vec<u8>> = (0..12)
        .flat_map(|place: usize| {
            let rows = (0..place % 3).map(move |n| row(&[&[b'a' + n as u8; 5]]));
            rows.chain([message(if place % 4 == 3 { b'I' } else { b'C' }, ends[place % 4])])
        })
        .collect();
    let statements = || group(&["select 1"; 12]);
    let told =
        |reply: &Reply, at| (reply.tag(at).to_owned(), reply.affected(at), reply.rows(at, &Arc::default()).len());
    let chunk = |messages: &[Vec<u8>]| Came { chunks: vec![Bytes::from(messages.concat())], over: None };
    let mut whole = Reading::new(statements().places, false);
    whole.take(chunk(&messages));
    let whole = whole.end().expect("a reply");
    let whole: Vec<_> = (0..12).map(|place| told(&whole, place)).collect();
    for step in 1..messages.len() {
        let (mut reading, mut parts) = (Reading::new(statements().places, false), Vec::new());
        for some in messages.chunks(step) {
            reading.take(chunk(some));
            assert_eq!(reading.ended().start, parts.len());
            parts.extend((0..reading.ended().len()).map(|at| told(&reading.reply, at)));
            reading.forget();
        }
        assert_eq!(parts, whole, "{step} messages at a time");
        assert!(reading.end().is_ok());
    }
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn reply_wakes_each_waiter_once() {
    let (connection, mut server, _driver) = between(AnswerLimits::default(), Use::Common);
    let mut reply = connection.send(group(&["select 1"]));
    let wakers: Vec<(Arc<Woken>, Waker)> =
        (0..3).map(|_| Arc::new(Woken::default())).map(|woken| (woken.clone(), woken.into())).collect();
    let mut places = [None; 3];
    for ((_, waker), place) in wakers.iter().zip(&mut places) {
        for _ in 0..2 {
            assert!(reply.poll_whole(place, &Context::from_waker(waker)).is_pending());
        }
    }
    server.write_all(&[answer(1), ready(b'I')].concat()).await.expect("sent");
    while wakers[2].0.0.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    let mut reply = pin!(reply);
    let outcome = reply.as_mut().poll(&mut Context::from_waker(&wakers[1].1));
    assert!(matches!(outcome, Poll::Ready(Ok(_))), "{outcome:?}");
    let woken: Vec<usize> = wakers.iter().map(|(woken, _)| woken.0.load(Ordering::Relaxed)).collect();
    assert_eq!(woken, [1, 1, 1]);
}
