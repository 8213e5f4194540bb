//! A proxy that counts the bytes that the server has sent.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream, UnixStream},
    time::timeout,
};

use crate::fixture::{cluster, eventually};

/// The time without traffic after which no further traffic is expected.
const QUIET: Duration = Duration::from_millis(100);

pub struct Counted {
    pub port: u16,
    bytes: Arc<AtomicUsize>,
}

impl Counted {
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("bound").port();
        let bytes = Arc::<AtomicUsize>::default();
        let counts = bytes.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, counts.clone()));
            }
        });
        Self { port, bytes }
    }

    /// Returns the number of bytes that the client's sockets have accepted.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Waits until no bytes pass any more.
    pub async fn until_quiet(&self) {
        eventually("the server waits", async || {
            let before = self.bytes();
            let changes = async {
                while self.bytes() == before {
                    tokio::task::yield_now().await;
                }
            };
            timeout(QUIET, changes).await.is_err()
        })
        .await;
    }
}

async fn pass(client: TcpStream, counts: Arc<AtomicUsize>) -> io::Result<()> {
    let socket = cluster().socket_dir().join(format!(".s.PGSQL.{}", cluster().port()));
    let (mut from_server, mut to_server) = UnixStream::connect(socket).await?.into_split();
    client.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let there = tokio::spawn(async move {
        copy(&mut from_client, &mut to_server).await?;
        to_server.shutdown().await
    });
    let mut bytes = vec![0; 64 << 10];
    loop {
        let count = from_server.read(&mut bytes).await?;
        if count == 0 {
            break;
        }
        to_client.write_all(&bytes[..count]).await?;
        counts.fetch_add(count, Ordering::Relaxed);
    }
    there.abort();
    to_client.shutdown().await
}
