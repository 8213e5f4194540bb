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
/// The maximum number of bytes per read.
const CHUNK: usize = 64 << 10;
const STACK: usize = 256 << 10;
/// The pause after the system refuses a connection, for example because of too many open files.
const PAUSE: Duration = Duration::from_millis(10);

/// A proxy that makes a server seem far away: it accepts TCP connections and forwards every byte
/// after a fixed delay in each direction.
///
/// Order, content and bandwidth stay the same: the proxy reads the next bytes while earlier ones
/// are in transit. At most 64 MiB are in transit per connection and direction, including
/// bookkeeping. A sender of more bytes within one delay has to wait, as on a real line. The end of
/// a stream and a broken connection are delayed like bytes, and arrive after the preceding bytes.
///
/// Bytes never arrive early. They arrive slightly late, because threads take time to wake up.
/// `thread::sleep` is 70 to 100 µs late on Linux; the proxy requests a finer timer, which is 20 to
/// 45 µs late. The table shows the median time of a round trip in addition to its two delays, on
/// two cores shared with a build:
///
/// | delay  | beyond it     |
/// | ------ | ------------- |
/// | 0      | 50 µs         |
/// | 0.1 ms | 80 to 100 µs  |
/// | 1 ms   | 150 to 170 µs |
/// | 5 ms   | 290 to 340 µs |
///
/// With a delay of 0, bytes are forwarded immediately, through two threads per direction. While
/// another process uses the processor, single round trips take a few milliseconds more. The
/// bandwidth was 0.25 to 0.6 GB/s for every delay from 0 to 50 ms. TCP's own handshake is not
/// delayed.
///
/// A connection costs four threads. Dropping the value ends all its connections and threads, and
/// discards bytes in transit. This takes up to five seconds per address while the proxy connects to
/// a server that does not answer.
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
    /// Starts the proxy on `listen`; port 0 chooses any free port. Connects each client to `to`: an
    /// [`Upstream`], a [`SocketAddr`], the [`Path`] of a unix socket or a
    /// [`Cluster`](crate::Cluster). Closes a client's connection if `to` refuses it.
    ///
    /// Fails if it cannot listen on the address, and for a delay over one hour.
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

    /// Returns the address that the proxy listens on.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Cuts a connection in the middle of the server's answers. The proxy delivers `bytes` more
    /// bytes, counted over all clients. Then it ends the connection that received the last byte, on
    /// both sides. `Some(0)` ends the next connection that would receive a byte.
    ///
    /// Each call cuts once; later connections work as usual. The client sees the end of the stream,
    /// or a reset if it continues to send; bytes of the client that are in transit are lost. `None`
    /// cancels a cut that has not happened yet.
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

    /// Cuts a connection like [`DelayProxy::cut_answers_after`], but in the middle of the clients'
    /// requests. The server receives `bytes` more bytes and then the end of the stream, possibly in
    /// the middle of a protocol message.
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

    /// Returns true if a requested cut has neither happened nor been cancelled.
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
        // Opens a connection, which wakes the acceptor.
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
    /// The delay in nanoseconds, which a caller may change at any time.
    delay: AtomicU64,
    answers: Cut,
    requests: Cut,
    answers_gate: Gate,
    requests_gate: Gate,
    /// The open connections. `None` after the proxy has ended.
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

    /// Adds a connection. Returns false if the proxy has ended.
    fn register(&self, connection: &Arc<Connection>) -> bool {
        let mut open = locked(&self.open);
        let Some(open) = open.as_mut() else { return false };
        open.retain(|known| known.strong_count() > 0);
        open.push(Arc::downgrade(connection));
        true
    }
}

/// Accepts connections. Returns when all connections have ended.
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

/// Runs a connection until it ends.
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
    /// True once one direction has ended.
    half: AtomicBool,
    /// True if the client is gone but the server must not notice it.
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

/// Reads from a socket into a lane.
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

/// Writes from a lane into a socket, up to a requested cut.
fn deliver(connection: &Connection, lane: &Lane, mut to: &TcpStream, (cut, gate): (&Cut, &Gate)) {
    finer_timer();
    while let Some(piece) = lane.pop() {
        gate.pass(lane);
        let end = match piece {
            Piece::Bytes(bytes) => match cut.passes(bytes.len()) {
                (length, false) if to.write_all(&bytes[..length]).is_ok() => continue,
                (_, false) => break, // the other direction also ends, and delivers its bytes first
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

/// Requests precise wake-ups for this thread. By default, Linux delays a wake-up by up to 50 µs to
/// combine it with others. Does nothing on other systems, or without permission.
fn finer_timer() {
    if let Some(thread) = std::fs::read_link("/proc/thread-self").ok().as_deref().and_then(Path::file_name) {
        let _ = std::fs::write(Path::new("/proc").join(thread).join("timerslack_ns"), "1");
    }
}

fn within_bounds(delay: Duration) -> Result<()> {
    match delay > LONGEST {
        true => Err(Error::new("the delay must be at most one hour")),
        false => Ok(()),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
