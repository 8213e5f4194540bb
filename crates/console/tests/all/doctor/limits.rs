//! The doctor's time limit, a server that does not answer, and a server with few free connections.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UnixStream},
    time::{Instant, timeout},
};
use trunkline::{Db, Settings};
use trunkline_console::doctor::{Doctor, Finding, Severity};

use super::{Ward, connect};

/// The doctor's limit, and some time for a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

async fn in_time(db: &Db) -> Vec<Finding> {
    timeout(LIMIT, Doctor::new().examine(db)).await.expect("in time").expect("examined")
}

/// The role has two connections, so the doctor cannot open the connection that listens, nor the one
/// that tests it.
#[tokio::test(flavor = "multi_thread")]
async fn two_connections_suffice_for_all_checks_but_listening() {
    let ward = Ward::new().await;
    for n in 0..20 {
        ward.queue(&format!("q{n}"), Settings::new("int8")).await;
    }
    let role = "create role few login connection limit 2; grant pg_monitor to few;
         select trunkline.grant_rights('few', 'operator')";
    ward.say(role).await;
    let url = ward.server.url("postgres").replace("user=trunkline", "user=few");
    let found = in_time(&Db::connect(&url).await.expect("connected")).await;
    let [listening] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((listening.check, listening.severity), ("listening", Severity::Unchecked), "{listening:?}");
    assert!(listening.what.contains("too many connections for role"), "{listening:?}");
    assert!(!listening.why.contains("pooler") && !listening.mend.contains("pooler"), "{listening:?}");
}

#[tokio::test]
async fn examination_ends_at_its_limit_and_names_what_was_not_checked() {
    let ward = Ward::with(&[("max_locks_per_transaction", "1000")]).await;
    let create = "select trunkline.create_queue('q' || n, 'int8') from generate_series(1, 100) n";
    ward.say(create).await;
    // Locks all queues, so that each check of a queue waits for a tenth of a second.
    let holder = connect(&ward.server.url("postgres")).await;
    let tables: Vec<String> = (1..=100).map(|n| format!("trunkline.queue_q{n}")).collect();
    let lock = format!("begin; lock table {} in access exclusive mode", tables.join(", "));
    holder.batch_execute(&lock).await.expect("locked");
    let begun = Instant::now();
    let found = crate::hurried(10, Box::pin(in_time(&ward.db))).await;
    assert!(begun.elapsed() > Duration::from_secs(50), "the locked queues took {:?}", begun.elapsed());
    let late = found.iter().filter(|one| one.what.contains("was not checked within the doctor's limit of 60 s"));
    let late: Vec<&Finding> = late.collect();
    assert!(late.iter().any(|one| one.check == "consumers" && one.queues.len() > 16), "{found:#?}");
    assert!(late.iter().all(|one| one.severity == Severity::Unchecked), "{late:#?}");
    assert!(late.iter().any(|one| one.check == "listening"), "{late:#?}");
}

/// Forwards connections to the server until a client sends this text. From then on all connections
/// stay open, and nothing is forwarded. Returns the port.
async fn silenced_by(ward: &Ward, text: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let socket = ward.server.socket_dir().join(format!(".s.PGSQL.{}", ward.server.port()));
    let silent = Arc::new(AtomicBool::new(false));
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = UnixStream::connect(&socket).await.expect("connected");
            let silent = Arc::clone(&silent);
            tokio::spawn(async move {
                let (mut sent, mut received) = (Vec::<u8>::new(), Vec::<u8>::new());
                loop {
                    let begun = sent.len();
                    let is_open = tokio::select! {
                        read = client.read_buf(&mut sent) => read.is_ok_and(|bytes| bytes > 0),
                        read = server.read_buf(&mut received) => read.is_ok_and(|bytes| bytes > 0),
                    };
                    let fresh = &sent[begun.saturating_sub(text.len())..];
                    if fresh.windows(text.len()).any(|part| part == text.as_bytes()) {
                        silent.store(true, Ordering::SeqCst);
                    }
                    if silent.load(Ordering::SeqCst) {
                        pending::<()>().await; // keeps the connection
                    }
                    let is_forwarded = server.write_all(&sent[begun..]).await.is_ok();
                    if !(is_open && is_forwarded && client.write_all(&received).await.is_ok()) {
                        return;
                    }
                    received.clear();
                }
            });
        }
    });
    port
}

#[tokio::test]
async fn server_that_falls_silent_is_the_only_finding_and_is_wrong() {
    let ward = Ward::new().await;
    ward.queue("q", Settings::new("int8")).await;
    let port = silenced_by(&ward, "pg_prepared_xacts").await; // the third check
    let url = ward.server.url("postgres");
    let rest = &url[url.find(" user=").expect("a user")..];
    let db = Db::connect(&format!("host=127.0.0.1 port={port} sslmode=disable{rest}")).await.expect("connected");
    let begun = Instant::now(); // by the hurried clock
    let found = crate::hurried(5, Box::pin(in_time(&db))).await;
    let [found] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((found.check, found.severity), ("server", Severity::Wrong), "{found:?}");
    assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());
}
