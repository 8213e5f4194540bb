//! Tests with simulated servers that are faulty or are not PostgreSQL.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use tokio_postgres::error::SqlState;

use super::{connect, outcome, to};
use crate::postgres::{db::Db, target::Target};

/// Starts a server that replies to each message with the next of these replies, and then waits
/// until the client disconnects. Returns the port.
fn fake(answers: Vec<Vec<u8>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        let (mut client, _) = listener.accept()?;
        for answer in answers {
            let _whatever = client.read(&mut [0; 4096])?;
            client.write_all(&answer)?;
        }
        client.read_to_end(&mut Vec::new())
    });
    port
}

fn url(port: u16, mode: &str) -> String {
    format!("host=127.0.0.1 port={port} user=u password=p sslmode={mode}")
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind][..], &length, body].concat()
}

/// Encodes a request for an authentication method. The code 0 accepts the login.
fn asks(code: u32, rest: &[u8]) -> Vec<u8> {
    message(b'R', &[&code.to_be_bytes(), rest].concat())
}

#[tokio::test]
async fn wrong_login_answers_have_distinct_errors() {
    let scram = || asks(10, b"SCRAM-SHA-256\0\0");
    let (misplaced, no_postgres) = ("has no place in a login", "the server is not PostgreSQL");
    for (mode, answers, said) in [
        ("prefer", vec![b"SX".to_vec()], "there were bytes before the handshake"),
        ("require", vec![b"S\x16\x03\x03".to_vec()], "there were bytes before the handshake"),
        ("prefer", vec![b"NE".to_vec()], "there were bytes before the handshake"),
        ("prefer", vec![b"EFATAL: no\0".to_vec()], "the server answered with an error"),
        ("prefer", vec![b"H".to_vec()], no_postgres),
        ("prefer", vec![b"S".to_vec(), b"Not at all TLS".to_vec()], "TLS with 127.0.0.1"),
        ("disable", vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()], no_postgres),
        ("disable", vec![b"Ecould not fork new process\n\0".to_vec()], "the database: could not fork new process"),
        ("disable", vec![b"R\0\0\0\x03".to_vec()], no_postgres),
        ("disable", vec![message(b'R', b"")], misplaced),
        ("disable", vec![message(b'Z', b"I")], misplaced),
        (
            "disable",
            vec![asks(7, b"")],
            "the server requires GSSAPI, which is not supported: use a password method in pg_hba.conf",
        ),
        ("disable", vec![asks(9, b"")], "the server requires SSPI"),
        ("disable", vec![asks(99, b"")], "the server requires a proof of kind 99"),
        ("disable", vec![asks(5, b"no")], misplaced),
        ("disable", vec![asks(10, b"OAUTHBEARER\0\0")], "knows only OAUTHBEARER, not SCRAM-SHA-256"),
        ("disable", vec![scram(), asks(0, b"")], misplaced),
        ("disable", vec![scram(), asks(11, b"no")], "SCRAM is wrong"),
        ("disable", vec![scram(), asks(11, b"r=n,s=c2FsdA==,i=4294967295")], "asks for \"4294967295\" iterations"),
        ("disable", vec![asks(3, b""), asks(3, b"")], misplaced),
        ("disable", vec![[asks(0, b""), message(b'K', b"ab")].concat()], misplaced),
        ("disable", vec![message(b'E', b"SFATAL\0C57P03\0Mlater\0\0")], "57P03 cannot connect to the database: later"),
    ] {
        let found = outcome(&url(fake(answers.clone()), mode)).await;
        assert!(found.contains(said), "{mode} {answers:?}: {found}");
    }
}

#[tokio::test]
async fn notices_during_login_are_skipped_and_early_bytes_kept() {
    let notice = message(b'N', b"SNOTICE\0C00000\0Mhello\0\0");
    let negotiated = message(b'v', b"\0\x03\0\0\0\0\0\0");
    let key = message(b'K', b"\0\0\0\x07\xff\xff\xff\xff");
    let (parameter, ready, early) = (message(b'S', b"a\0b\0"), message(b'Z', b"I"), b"A\0\0\0".to_vec());
    let said = [notice.clone(), negotiated, asks(0, b""), parameter, notice, key, ready, early.clone()].concat();
    let connected = to(&url(fake(vec![said]), "disable")).await.expect("connected");
    assert_eq!(connected.process_id, 7);
    assert_eq!(connected.parameters.get("a").map(String::as_str), Some("b"));
    assert_eq!(&connected.read[..], early);
}

#[tokio::test]
async fn a_server_that_closes_at_once_is_told() {
    for mode in ["disable", "prefer"] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("bound").port();
        thread::spawn(move || listener.accept().map(drop));
        let found = outcome(&url(port, mode)).await;
        // The client's bytes may arrive before or after the server closes the connection. The
        // client then receives either the end of the stream or a reset.
        assert!(["closed the connection", "broke", "TLS with"].iter().any(|said| found.contains(said)), "{found}");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_left_in_time() {
    for mode in ["disable", "prefer"] {
        let mut target = Target::parse_in(&url(fake(vec![Vec::new()]), mode), |_| None).expect("parsed");
        target.config.connect_timeout(Duration::from_millis(20));
        let error = connect(&target).await.expect_err("nothing was said").to_string();
        assert!(error.ends_with("no answer in 0.02 s (connect_timeout)"), "{error}");
    }
}

/// Starts a server that accepts logins, replies to the first messages of each connection, and
/// closes the connection. Returns the port, and the number of connections so far.
fn closing(replies: Vec<Vec<u8>>) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let (port, count) = (listener.local_addr().expect("bound").port(), Arc::new(AtomicUsize::new(0)));
    let counted = count.clone();
    let serve = move |mut client: TcpStream| -> io::Result<()> {
        counted.fetch_add(1, Ordering::Relaxed);
        let accepts = [asks(0, b""), message(b'Z', b"I")].concat();
        for reply in std::iter::once(&accepts).chain(&replies) {
            let _whatever = client.read(&mut vec![0; 1 << 16])?;
            client.write_all(reply)?;
        }
        Ok(())
    };
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let _ = serve(client); // fails if the client was faster
        }
    });
    (port, count)
}

#[tokio::test]
async fn connection_broken_during_set_up_is_no_unknown_outcome() {
    let fatal = message(b'E', b"VFATAL\0C57P01\0Mgoing\0\0");
    for (reply, code) in [(Vec::new(), None), (fatal, Some("57P01"))] {
        let (port, _) = closing(vec![reply]);
        let error = Db::connect_with(&url(port, "disable"), |_| None).await.expect_err("it breaks");
        assert!(error.is_closed() && !error.is_outcome_unknown(), "{error}");
        assert_eq!(error.sqlstate().map(SqlState::code), code, "{error}");
    }
}

#[tokio::test]
async fn statement_that_was_not_sent_is_sent_on_another_connection() {
    let set_up = [message(b'C', b"SET\0"), message(b'Z', b"I")].concat();
    let (port, count) = closing(vec![set_up, Vec::new()]);
    let db = Db::connect_with(&url(port, "disable"), |_| None).await.expect("connected");
    let error = db.schema_version().await.expect_err("no connection prepares it");
    assert!(error.is_closed() && !error.is_outcome_unknown(), "{error}");
    assert_eq!(count.load(Ordering::Relaxed), 2, "{error}");
}
