//! `trunkline delay-proxy`, with the program itself as the client.

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    process::Child,
    time::{Duration, Instant},
};

use crate::fixture::{Trunkline, signal, sql};

/// Starts a proxy. Returns the proxy, its first line of output, and the same database through the
/// proxy.
pub fn far(near: &Trunkline, listen: &str, milliseconds: &str) -> (Child, String, Trunkline) {
    let (folder, rest) = near.url.strip_prefix("host=").and_then(|url| url.split_once(" port=")).expect("a folder");
    let (port, rest) = rest.split_once(' ').expect("a port");
    let mut proxy = near.start(&["delay-proxy", listen, folder, port, milliseconds]);
    let mut line = String::new();
    BufReader::new(proxy.stdout.take().expect("it is piped")).read_line(&mut line).expect("it can be read");
    let place = line.split('"').nth(1).expect("it says how to use it").to_owned();
    (proxy, line, Trunkline { url: format!("{place} {rest}") })
}

#[test]
fn a_database_is_far_away_until_a_signal_comes() {
    let near = Trunkline::with_queue(&[]);
    for name in ["INT", "TERM"] {
        let (mut proxy, line, far) = far(&near, "0", "2.5");
        let port = far.url.split("port=").nth(1).and_then(|rest| rest.split(' ').next()).expect("a port");
        assert!(line.starts_with(&format!("listening on 127.0.0.1:{port}, 2.5 ms each way to /")), "{line}");
        assert!(line.contains(&format!("PGHOST=127.0.0.1 PGPORT={port}")), "{line}");

        let start = Instant::now();
        sql(&far.url, "select 1");
        assert!(start.elapsed() >= Duration::from_millis(10), "a greeting and a statement: {:?}", start.elapsed());
        far.ok(&["enqueue", "q", "one", "two"]);
        assert_eq!(far.lines(&["dequeue", "q"]), ["one", "two"]);
        assert_eq!(near.json(&["stats", "--json"])[0]["messages"], 0);

        signal(&proxy, name);
        assert!(proxy.wait().expect("it ends").success());
        assert!(far.fails(&["stats"]).1.contains("cannot connect"));
    }
}

#[test]
fn what_it_cannot_do_it_says_at_once() {
    let trunkline = Trunkline { url: String::new() };
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    for (args, code, told) in [
        (["nowhere", "localhost:5432", "1"], 2, "a port (15432)"),
        (["0", "localhost:5432", "soon"], 2, "a number of milliseconds"),
        (["0", "localhost:5432", "-1"], 2, "expected 0 to"),
        (["0", "localhost", "1"], 1, "a server is HOST:PORT"),
        (["0", "no such host:5432", "1"], 1, "cannot find the host"),
        ([&port, &format!("127.0.0.1:{port}"), "1"], 1, "choose another port"),
    ] {
        let (exit, error) = trunkline.fails(&[&["delay-proxy"], &args[..]].concat());
        assert!(exit == code && error.contains(told), "{args:?}: {exit} {error}");
    }
}
