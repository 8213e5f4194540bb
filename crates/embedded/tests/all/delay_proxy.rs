use crate::speak::exchange;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use trunkline_embedded::{Cluster, DelayProxy, Hold, Stop, Upstream};

/// Starts a server that does `work` with one connection, a proxy in front of that server, and a
/// client.
fn connect<T: Send + 'static>(
    delay: Duration,
    work: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (DelayProxy, TcpStream, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = DelayProxy::start("127.0.0.1:0", listener.local_addr().unwrap(), delay).unwrap();
    let server = thread::spawn(move || work(listener.accept().unwrap().0));
    let client = TcpStream::connect(proxy.addr()).unwrap();
    // Sets a timeout, because a blocked test should fail, not hang.
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client.set_nodelay(true).unwrap();
    (proxy, client, server)
}

fn echo(mut stream: TcpStream) {
    std::io::copy(&mut stream.try_clone().unwrap(), &mut stream).unwrap();
}

/// Returns bytes with a long period.
fn noise(mut seed: u64, length: usize) -> Vec<u8> {
    let next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 56) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn read_all(mut stream: impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all
}

/// Returns true at the end of the stream, or after a reset.
fn is_over(mut stream: impl Read) -> bool {
    match stream.read(&mut [0]) {
        Ok(length) => length == 0,
        Err(cause) => cause.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn a_round_trip_takes_the_delay_twice_and_little_more() {
    for delay in [0.0, 0.3, 5.0].map(|millis: f64| Duration::from_secs_f64(millis / 1e3)) {
        let (_proxy, mut client, _server) = connect(delay, echo);
        let round_trip = |_| {
            let start = Instant::now();
            client.write_all(b"x").unwrap();
            client.read_exact(&mut [0]).unwrap();
            start.elapsed()
        };
        let fastest = (0..20).map(round_trip).min().unwrap();
        assert!(fastest >= delay * 2 && fastest < delay * 2 + Duration::from_millis(10), "{delay:?}: {fastest:?}");
    }
}

#[test]
fn the_bandwidth_stays() {
    // Sends 20 MB, which are at least 306 pieces of 64 KiB. If each piece waited for the previous
    // one, they would take more than 15 seconds.
    let (_proxy, mut client, server) = connect(Duration::from_millis(50), |stream| read_all(stream).len());
    let (bytes, start) = (vec![7; 20_000_000], Instant::now());
    client.write_all(&bytes).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.join().unwrap(), bytes.len());
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}

#[test]
fn order_and_content_stay_in_both_directions_at_once() {
    const LENGTH: usize = 6_000_000;
    let say = |seed, mut stream: TcpStream| {
        for (at, piece) in noise(seed, LENGTH).chunks(77_777).enumerate() {
            stream.write_all(&piece[..at * 7]).unwrap();
            stream.write_all(&piece[at * 7..]).unwrap();
        }
        stream.shutdown(Shutdown::Write).unwrap();
    };
    let both = move |seed, stream: TcpStream| {
        let to = stream.try_clone().unwrap();
        let saying = thread::spawn(move || say(seed, to));
        let heard = read_all(stream);
        saying.join().unwrap();
        heard
    };
    let (_proxy, client, server) = connect(Duration::from_millis(2), move |stream| both(1, stream));
    assert!(both(2, client) == noise(1, LENGTH));
    assert!(server.join().unwrap() == noise(2, LENGTH));
}

#[test]
fn a_side_that_has_said_everything_still_hears() {
    let (_proxy, mut client, server) = connect(Duration::from_millis(2), |mut stream| {
        let heard = read_all(&stream);
        stream.write_all(&heard.repeat(1000)).unwrap();
    });
    client.write_all(b"once").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_all(client), b"once".repeat(1000));
    server.join().unwrap();
}

#[test]
fn server_that_goes_away_ends_client_after_its_last_words() {
    let (_proxy, mut client, server) = connect(Duration::from_millis(20), |mut stream| {
        stream.write_all(&vec![7; 300_000]).unwrap();
    });
    server.join().unwrap();
    assert_eq!(read_all(&client).len(), 300_000);
    // The client notices that no server is listening, as a direct client would.
    eventually(|| client.write_all(b"hello?").is_err());
}

#[test]
fn client_that_goes_away_ends_a_talking_server() {
    let (_proxy, mut client, server) =
        connect(Duration::from_millis(2), |mut stream| while stream.write_all(&vec![7; 10_000]).is_ok() {});
    client.read_exact(&mut vec![0; 100_000]).unwrap();
    drop(client);
    server.join().unwrap();
}

#[test]
fn a_server_that_is_not_there_ends_the_client() {
    let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = DelayProxy::start("127.0.0.1:0", addr, Duration::ZERO).unwrap();
    assert!(is_over(TcpStream::connect(proxy.addr()).unwrap()));
    let error = Upstream::from(addr).check().unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot connect to {addr}: ")), "{error}");
}

#[test]
fn bytes_on_their_way_are_bounded() {
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let (_proxy, mut client, server) = connect(Duration::ZERO, move |stream| {
        wait.recv().unwrap();
        read_all(stream).len()
    });
    client.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let (chunk, mut sent) = (vec![7; 1 << 20], 0);
    while let Ok(length) = client.write(&chunk) {
        sent += length;
        assert!(sent < 128 << 20, "64 MiB, and what the system keeps in its sockets");
    }
    go_on.send(()).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(server.join().unwrap(), sent);
}

#[test]
fn a_cut_comes_after_exactly_so_many_bytes_and_once() {
    let answer = noise(3, 200_000);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = DelayProxy::start("127.0.0.1:0", listener.local_addr().unwrap(), Duration::from_millis(1)).unwrap();
    let exchange = || {
        let mut client = TcpStream::connect(proxy.addr()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        client.write_all(b"?").unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.read_exact(&mut [0]).unwrap();
        let _ = server.write_all(&answer);
        (client, server)
    };
    for cut in [0, 1, 65_536, answer.len() - 1, answer.len()] {
        proxy.cut_answers_after(Some(cut));
        let (client, server) = exchange();
        assert!(read_all(client) == answer[..cut], "{cut}");
        assert!(is_over(server));
        let (client, server) = exchange();
        drop(server);
        assert!(read_all(client) == answer);
    }
    proxy.cut_answers_after(Some(7));
    proxy.cut_answers_after(None);
    let (client, server) = exchange();
    drop(server);
    assert!(read_all(client) == answer);
}

#[test]
fn the_end_of_the_proxy_ends_everything_at_once() {
    // Uses an address on which no other test listens, so that a released port refuses connections.
    let host = if cfg!(target_os = "linux") { "127.0.0.77" } else { "127.0.0.1" };
    for listen in [format!("{host}:0"), "0.0.0.0:0".to_owned()] {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = DelayProxy::start(listen, server.local_addr().unwrap(), Duration::from_secs(3600)).unwrap();
        let addr = (host, proxy.addr().port());
        let mut clients = [(), (), ()].map(|()| TcpStream::connect(addr).unwrap());
        let servers = [(), (), ()].map(|()| server.accept().unwrap().0);
        for client in &mut clients {
            client.write_all(b"in an hour").unwrap();
        }
        eventually(|| threads(addr.1) == if cfg!(target_os = "linux") { 1 + 3 * 4 } else { 0 });
        let start = Instant::now();
        drop(proxy);
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        assert!(clients.iter().all(is_over) && servers.iter().all(is_over));
        assert!(TcpStream::connect(addr).is_err());
        // Waits: the threads of the connections have ended, but the system may need a moment to
        // remove them.
        eventually(|| threads(addr.1) == 0);
    }
}

fn eventually(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(1));
    }
}

/// Counts this process's threads with the port in their names. Returns 0 if the system has no
/// /proc.
fn threads(port: u16) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim() == format!("delay:{port}")).count()
}

#[test]
fn impossible_proxy_is_refused() {
    let server = Upstream::from(std::net::SocketAddr::from(([127, 0, 0, 1], 5432)));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap();
    let error = DelayProxy::start(addr, server.clone(), Duration::ZERO).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot listen on {addr}: ")), "{error}");
    let error = DelayProxy::start("nowhere", server.clone(), Duration::ZERO).unwrap_err().to_string();
    assert!(error.contains("address to listen on"), "{error}");
    assert!(DelayProxy::start("127.0.0.1:0", server, Duration::from_secs(3601)).is_err());
}

#[test]
fn a_cluster_is_far_away_and_comes_back() {
    let cluster = Cluster::temporary().setting("fsync", "off").start().unwrap();
    let proxy = DelayProxy::start("127.0.0.1:0", &cluster, Duration::from_millis(3)).unwrap();
    let far = || TcpStream::connect(proxy.addr()).unwrap();
    let start = Instant::now();
    let long = exchange(far(), "SELECT repeat('x', 1000000)").unwrap();
    assert_eq!(long.len(), 1_000_000);
    assert!(start.elapsed() >= Duration::from_millis(12), "a greeting and a statement: {:?}", start.elapsed());

    let open = far();
    exchange(&open, "SELECT 7");
    cluster.stop(Stop::Immediate).unwrap();
    open.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    read_all(open);
    cluster.start_again().unwrap();
    assert_eq!(exchange(far(), "SELECT 7").as_deref(), Some("7"));
}

#[test]
fn a_delay_that_is_changed_counts_for_open_connections() {
    let (proxy, mut client, _server) = connect(Duration::ZERO, echo);
    let mut round_trip = || {
        let start = Instant::now();
        client.write_all(b"x").unwrap();
        client.read_exact(&mut [0]).unwrap();
        start.elapsed()
    };
    round_trip();
    proxy.set_delay(Duration::from_millis(60)).unwrap();
    assert!(round_trip() >= Duration::from_millis(120));
    proxy.set_delay(Duration::ZERO).unwrap();
    assert!((0..20).map(|_| round_trip()).min().unwrap() < Duration::from_millis(60));
    assert!(proxy.set_delay(Duration::from_secs(3601)).is_err());
}

#[test]
fn held_answers_stay_while_requests_pass_and_nothing_is_lost() {
    let (proxy, mut client, server) = connect(Duration::ZERO, |mut stream| {
        stream.write_all(b"before").unwrap();
        let mut heard = [0; 5];
        stream.read_exact(&mut heard).unwrap();
        stream.write_all(b"after").unwrap();
        heard
    });
    let mut said = [0; 6];
    client.read_exact(&mut said).unwrap();
    proxy.hold(Hold::Answers);
    client.write_all(b"hello").unwrap();
    assert_eq!(&server.join().unwrap(), b"hello", "requests pass");
    client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let error = client.read(&mut [0]).unwrap_err();
    assert!([ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()), "{error}");
    proxy.hold(Hold::Nothing);
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(read_all(client), b"after");
}

#[test]
fn connections_can_be_cut_at_once_also_while_held() {
    let (proxy, client, server) = connect(Duration::ZERO, |mut stream| {
        stream.write_all(b"held").unwrap();
        is_over(stream)
    });
    proxy.hold(Hold::Both);
    // Tries repeatedly, because the connection to the server may not be open yet.
    eventually(|| {
        proxy.cut_all();
        server.is_finished()
    });
    assert!(server.join().unwrap());
    assert!(is_over(client));
}

#[test]
fn half_open_connection_ends_for_the_client_alone() {
    let (tell, told) = std::sync::mpsc::channel();
    let (proxy, mut client, server) = connect(Duration::ZERO, move |mut stream| {
        stream.write_all(b"x").unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        tell.send(stream.read(&mut [0]).unwrap_err().kind()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        is_over(stream)
    });
    client.read_exact(&mut [0]).unwrap();
    proxy.leave_half_open();
    assert!(is_over(&client), "the client notices");
    let silent = told.recv().unwrap();
    assert!([ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&silent), "the server does not: {silent}");
    proxy.cut_all();
    assert!(server.join().unwrap(), "until it is told");
}
