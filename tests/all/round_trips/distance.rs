//! A distant server, and a count of the round trips to it.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream, UnixStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
        unix,
    },
    sync::mpsc,
    time::{Instant, sleep_until},
};

use crate::fixture::{cluster, eventually};

/// The delay of an answer. It is long enough for a program to send everything that it can send
/// without that answer.
const AWAY: Duration = Duration::from_millis(500);
/// The time without traffic after which background work, such as the notification after an enqueue,
/// is assumed to have ended.
const QUIET: Duration = Duration::from_millis(20);

/// A proxy to the cluster that counts turns. A turn consists of everything that is sent between two
/// answers, on any connection. So the count does not depend on time, and parallel requests count as
/// one turn.
pub struct Distance {
    pub port: u16,
    state: Arc<State>,
}

struct State {
    far: AtomicBool,
    /// True if an answer has arrived, and nothing was sent since.
    heard: AtomicBool,
    turns: AtomicUsize,
    /// The time at which the last bytes pass or have passed.
    last: Mutex<Instant>,
}

impl State {
    fn passes_at(&self, due: Instant) {
        let mut last = self.last.lock().expect("no panic");
        *last = due.max(*last);
    }

    fn is_quiet(&self) -> bool {
        Instant::now() > *self.last.lock().expect("no panic") + QUIET
    }
}

impl Distance {
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("bound").port();
        let (far, heard, turns) = Default::default();
        let distance = Self { port, state: Arc::new(State { far, heard, turns, last: Mutex::new(Instant::now()) }) };
        let state = distance.state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, state.clone()));
            }
        });
        distance
    }

    /// Counts the turns that a future takes while the server is distant.
    pub async fn turns<T>(&self, of: impl Future<Output = T>) -> (usize, T) {
        eventually("all is quiet", async || self.state.is_quiet()).await;
        self.state.far.store(true, Ordering::Relaxed);
        self.state.heard.store(true, Ordering::Relaxed);
        self.state.turns.store(0, Ordering::Relaxed);
        let outcome = of.await;
        let turns = self.state.turns.load(Ordering::Relaxed);
        self.state.far.store(false, Ordering::Relaxed);
        (turns, outcome)
    }
}

async fn pass(client: TcpStream, state: Arc<State>) -> io::Result<()> {
    let socket = cluster().socket_dir().join(format!(".s.PGSQL.{}", cluster().port()));
    let (from_server, to_server) = UnixStream::connect(socket).await?.into_split();
    client.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (arrive, arriving) = mpsc::unbounded_channel();
    tokio::spawn(there(from_client, to_server, state.clone()));
    tokio::spawn(travel(from_server, arrive, state.clone()));
    back(arriving, to_client, state).await
}

async fn there(mut from: OwnedReadHalf, mut to: unix::OwnedWriteHalf, state: Arc<State>) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut bytes).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        if state.heard.swap(false, Ordering::Relaxed) {
            state.turns.fetch_add(1, Ordering::Relaxed);
        }
        state.passes_at(Instant::now());
        to.write_all(&bytes[..count]).await?;
    }
}

type Arrival = (Instant, Vec<u8>);

async fn travel(
    mut from: unix::OwnedReadHalf,
    arrive: mpsc::UnboundedSender<Arrival>,
    state: Arc<State>,
) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut bytes).await?;
        let away = if state.far.load(Ordering::Relaxed) { AWAY } else { Duration::ZERO };
        let due = Instant::now() + away;
        state.passes_at(due);
        if count == 0 || arrive.send((due, bytes[..count].to_vec())).is_err() {
            return Ok(());
        }
    }
}

async fn back(
    mut arriving: mpsc::UnboundedReceiver<Arrival>,
    mut to: OwnedWriteHalf,
    state: Arc<State>,
) -> io::Result<()> {
    while let Some((due, bytes)) = arriving.recv().await {
        sleep_until(due).await;
        state.heard.store(true, Ordering::Relaxed);
        to.write_all(&bytes).await?;
    }
    to.shutdown().await
}
