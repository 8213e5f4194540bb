mod upstream;
mod lane;
mod trouble;

use crate::error::{Error, Result};
use lane::{Lane, Piece};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};
pub use trouble::Hold;
use trouble::{Cut, Gate};
pub use upstream::Upstream;

const LONGEST: Duration = Duration::from_secs(3600);
/// What is read at once.
const CHUNK: usize = 64 << 10;
const STACK: usize = 256 << 10;
/// Before the next attempt where the system refuses a connection, as when there are too many open
/// files.
const PAUSE: Duration = Duration::from_millis(10);

/// A server as if it were far away: takes TCP connections and passes every byte on, a fixed time
/// later each way.
///
/// Order and content stay as they are, and so does the bandwidth: however long the delay, the next
/// bytes are taken while the earlier ones are on their way. Up to 64 MiB are on their way in a
/// connection and direction, their bookkeeping included; who sends more than that in one delay
/// waits, as on a real line. The end of what a side sends, and a broken side, reach the other one
/// as late as bytes do, after the bytes before them.
///
/// How precise it is: never early, and late by what threads take to wake up. `thread::sleep` is 70
/// to 100 µs late on Linux; here a finer timer is asked for, which is 20 to 45 µs late. Measured on
/// two cores shared with a build, a round trip beyond its two delays: 50 µs with a delay of 0
/// (which passes bytes at once, through two threads each way), 80 to 100 at 0.1 ms, 150 to 170 at 1
/// ms, 290 to 340 at 5 ms in the median, and milliseconds now and then when another process has the
/// processor. The bandwidth there was 0.25 to 0.6 GB/s for every delay from 0 to 50 ms. TCP's own
/// handshake is not delayed.
///
/// A connection costs four threads. At the end of the value all of its connections and threads end,
/// what is on its way included; that takes up to five seconds an address if just then a server that
/// does not answer is being connected to.
///
/// ```no_run
/// # use std::time::Duration;
/// use trunkline_embedded::{Cluster, DelayProxy};
///
/// let cluster = Cluster::temporary().start()?;
/// let proxy = DelayProxy::start("127.0.0.1:0", &cluster, Duration::from_millis(5))?;
/// println!("host=127.0.0.1 port={} user=trunkline dbname=postgres", proxy.addr().port());
/// # Ok::<(), trunkline_embedded::Error>(())
/// ```
#[derive(Debug)]
pub struct DelayProxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl DelayProxy {
    /// Listens from now on; port 0 is any free one. Each connection is passed on to `to`: an
    /// [`Upstream`], a [`SocketAddr`], the [`Path`] of a unix socket or a
    /// [`Cluster`](crate::Cluster). A connection that `to` does not take is closed.
    ///
    /// Fails when the address cannot be listened on, and for a delay of more than an hour.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use trunkline_embedded::{DelayProxy, Upstream};
    ///
    /// let server: Upstream = "127.0.0.1:5432".parse()?;
    /// let proxy = DelayProxy::start("127.0.0.1:0", server, Duration::from_micros(500))?;
    /// assert_ne!(proxy.addr().port(), 0);
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn start(listen: impl ToSocketAddrs, to: impl Into<Upstream>, delay: Duration) -> Result<Self> {
        within_bounds(delay)?;
        let listen: Vec<SocketAddr> =
            listen.to_socket_addrs().map_err(Error::because("cannot find the address to listen on"))?.collect();
        let shown: Vec<String> = listen.iter().map(ToString::to_string).collect();
        let failed = || Error::because(format!("cannot listen on {}", shown.join(" or ")));
        let listener = TcpListener::bind(&*listen).map_err(failed())?;
        let addr = listener.local_addr().map_err(failed())?;
        let shared = Shared {
            name: format!("delay:{}", addr.port()),
            to: to.into(),
            delay: AtomicU64::new(delay.as_nanos() as u64),
            answers: Cut::default(),
            requests: Cut::default(),
            answers_gate: Gate::default(),
            requests_gate: Gate::default(),
            open: Mutex::new(Some(Vec::new())),
        };
        let shared = Arc::new(shared);
        let accepts = shared.clone();
        let acceptor = thread::Builder::new().name(shared.name.clone()).spawn(move || accept(listener, &accepts));
        let acceptor = Some(acceptor.map_err(Error::because("cannot start a thread"))?);
        Ok(Self { addr, shared, acceptor })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Cuts a connection in the middle of what the server says: of all that has not been delivered
    /// yet to whichever client, `bytes` more are, and then the connection that got the last of them
    /// ends on both sides. `Some(0)` ends the next connection that would have got anything.
    ///
    /// One cut a call; connections go on as usual after it. The client sees the end of the stream,
    /// or a reset if it goes on sending; what it had sent and was still on its way is lost. `None`
    /// takes a cut back that has not happened yet.
    ///
    /// ```
    /// # use std::{io::{Read, Write}, net::{TcpListener, TcpStream}, time::Duration};
    /// # use trunkline_embedded::DelayProxy;
    /// # let server = TcpListener::bind("127.0.0.1:0").unwrap();
    /// let proxy = DelayProxy::start("127.0.0.1:0", server.local_addr().unwrap(), Duration::ZERO)?;
    /// proxy.cut_answers_after(Some(4));
    /// let mut client = TcpStream::connect(proxy.addr()).unwrap();
    /// server.accept().unwrap().0.write_all(b"answer").unwrap();
    /// let mut got = String::new();
    /// client.read_to_string(&mut got).unwrap();
    /// assert_eq!(got, "answ");
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn cut_answers_after(&self, bytes: Option<usize>) {
        self.shared.answers.set(bytes);
    }

    /// As [`DelayProxy::cut_answers_after`], in the middle of what the clients say: the server gets
    /// this many bytes more, and then the end of the stream, in a word or between two.
    ///
    /// ```
    /// # use std::{io::{Read, Write}, net::{TcpListener, TcpStream}, time::Duration};
    /// # use trunkline_embedded::DelayProxy;
    /// # let server = TcpListener::bind("127.0.0.1:0").unwrap();
    /// let proxy = DelayProxy::start("127.0.0.1:0", server.local_addr().unwrap(), Duration::ZERO)?;
    /// proxy.cut_requests_after(Some(4));
    /// TcpStream::connect(proxy.addr()).unwrap().write_all(b"request").unwrap();
    /// let mut got = String::new();
    /// server.accept().unwrap().0.read_to_string(&mut got).unwrap();
    /// assert_eq!(got, "requ");
    /// assert!(!proxy.is_cut_ahead(), "it has happened");
    /// # Ok::<(), trunkline_embedded::Error>(())
    /// ```
    pub fn cut_requests_after(&self, bytes: Option<usize>) {
        self.shared.requests.set(bytes);
    }

    /// Whether a cut that was asked for has neither happened nor been taken back.
    #[must_use]
    pub fn is_cut_ahead(&self) -> bool {
        self.shared.answers.is_ahead() || self.shared.requests.is_ahead()
    }
}

impl Drop for DelayProxy {
    fn drop(&mut self) {
        self.hold(Hold::Nothing);
        let open = locked(&self.shared.open).take();
        open.iter().flatten().filter_map(Weak::upgrade).for_each(|connection| connection.end());
        let Some(acceptor) = self.acceptor.take() else { return };
        let mut itself = self.addr;
        if itself.ip().is_unspecified() {
            itself.set_ip(if itself.is_ipv4() { [127, 0, 0, 1].into() } else { [0, 0, 0, 0, 0, 0, 0, 1].into() });
        }
        // One more connection is what wakes it.
        while TcpStream::connect_timeout(&itself, PAUSE).is_err() && !acceptor.is_finished() {
            thread::sleep(PAUSE);
        }
        let _ = acceptor.join();
    }
}

#[derive(Debug)]
struct Shared {
    name: String,
    to: Upstream,
    /// In nanoseconds; it may change at any time.
    delay: AtomicU64,
    answers: Cut,
    requests: Cut,
    answers_gate: Gate,
    requests_gate: Gate,
    /// `None` from the end of the proxy on.
    open: Mutex<Option<Vec<Weak<Connection>>>>,
}

impl Shared {
    fn spawn<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        work: impl FnOnce() + Send + 'scope,
    ) -> std::io::Result<ScopedJoinHandle<'scope, ()>> {
        thread::Builder::new().name(self.name.clone()).stack_size(STACK).spawn_scoped(scope, work)
    }

    /// Whether it came in time.
    fn register(&self, connection: &Arc<Connection>) -> bool {
        let mut open = locked(&self.open);
        let Some(open) = open.as_mut() else { return false };
        open.retain(|known| known.strong_count() > 0);
        open.push(Arc::downgrade(connection));
        true
    }
}

/// Ends when all connections have ended.
fn accept(listener: TcpListener, shared: &Shared) {
    thread::scope(|scope| {
        let listener = listener;
        loop {
            let accepted = listener.accept();
            if locked(&shared.open).is_none() {
                return;
            }
            match accepted {
                Ok((client, _)) => drop(shared.spawn(scope, move || serve(client, shared))),
                Err(_) => thread::sleep(PAUSE),
            }
        }
    });
}

/// The life of a connection.
fn serve(client: TcpStream, shared: &Shared) {
    let Ok(server) = shared.to.connect() else { return };
    let _ = client.set_nodelay(true);
    let connection = Connection {
        client,
        server,
        there: Lane::new(),
        back: Lane::new(),
        half: AtomicBool::new(false),
        left: AtomicBool::new(false),
    };
    let connection = Arc::new(connection);
    if !shared.register(&connection) {
        return;
    }
    let Connection { client, server, there, back, .. } = &*connection;
    thread::scope(|scope| {
        let started = [
            shared.spawn(scope, || take(&connection, client, there, shared)),
            shared.spawn(scope, || deliver(&connection, there, server, (&shared.requests, &shared.requests_gate))),
            shared.spawn(scope, || take(&connection, server, back, shared)),
        ];
        if started.iter().any(std::result::Result::is_err) {
            connection.end();
        }
        deliver(&connection, back, client, (&shared.answers, &shared.answers_gate));
    });
}

#[derive(Debug)]
struct Connection {
    client: TcpStream,
    server: TcpStream,
    there: Lane,
    back: Lane,
    /// Whether one direction has ended.
    half: AtomicBool,
    /// Whether the client is gone and the server is not to know.
    left: AtomicBool,
}

impl Connection {
    fn end(&self) {
        for socket in [&self.client, &self.server] {
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.there.close();
        self.back.close();
    }
}

/// From a socket into a lane.
fn take(connection: &Connection, mut from: &TcpStream, lane: &Lane, shared: &Shared) {
    let mut chunk = vec![0; CHUNK];
    loop {
        let piece = match from.read(&mut chunk) {
            Ok(0) => Piece::End,
            Ok(length) => Piece::Bytes(chunk[..length].to_vec()),
            Err(cause) if cause.kind() == ErrorKind::Interrupted => continue,
            Err(_) => Piece::Broken,
        };
        let is_last = !matches!(piece, Piece::Bytes(_));
        if connection.left.load(Ordering::Acquire) && std::ptr::eq(from, &raw const connection.client) {
            return;
        }
        let delay = Duration::from_nanos(shared.delay.load(Ordering::Relaxed));
        if !lane.push(Instant::now() + delay, piece) || is_last {
            return;
        }
    }
}

/// From a lane into a socket, up to the cut.
fn deliver(connection: &Connection, lane: &Lane, mut to: &TcpStream, (cut, gate): (&Cut, &Gate)) {
    finer_timer();
    while let Some(piece) = lane.pop() {
        gate.pass(lane);
        let end = match piece {
            Piece::Bytes(bytes) => match cut.passes(bytes.len()) {
                (length, false) if to.write_all(&bytes[..length]).is_ok() => continue,
                (_, false) => break, // the other direction notices as well, and still delivers what it has
                (length, true) => {
                    let _ = to.write_all(&bytes[..length]);
                    let _ = connection.server.shutdown(Shutdown::Both);
                    Shutdown::Write
                }
            },
            Piece::End => Shutdown::Write,
            Piece::Broken => Shutdown::Both,
        };
        let _ = to.shutdown(end);
        break;
    }
    lane.close();
    if connection.half.swap(true, Ordering::AcqRel) {
        connection.end();
    }
}

/// Linux wakes a thread up to 50 µs late so as to wake several at once, unless the thread asks for
/// better. Elsewhere, and where it may not ask, nothing happens.
fn finer_timer() {
    if let Some(thread) = std::fs::read_link("/proc/thread-self").ok().as_deref().and_then(Path::file_name) {
        let _ = std::fs::write(Path::new("/proc").join(thread).join("timerslack_ns"), "1");
    }
}

fn within_bounds(delay: Duration) -> Result<()> {
    match delay > LONGEST {
        true => Err(Error::new("a delay of at most an hour is possible")),
        false => Ok(()),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
