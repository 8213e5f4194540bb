//! Limits for one visitor: connections to the database, connections to the console, and numbers
//! after a logout.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
};
use trunkline::Settings;
use trunkline_console::web::{Access, Role, User, hash};

use super::Site;
use crate::browser::{form, get, post, send};

const PASSWORD: &str = "correct horse battery";
const SOON: Duration = Duration::from_secs(60);

async fn with_ada() -> Site {
    let ada = User { name: "ada".to_owned(), role: Role::Operator, hash: hash(PASSWORD).expect("hashed") };
    Site::with(|console| console.access(Access::Passwords(vec![ada])).connections(16)).await
}

async fn log_in(site: &Site) -> String {
    let answer = post(site.address, "/login", &[("name", "ada"), ("password", PASSWORD)]).await;
    let cookie = answer.header("set-cookie").expect("a cookie");
    cookie.split(';').next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn many_pages_at_once_take_few_connections_to_the_database() {
    let site = Site::new().await;
    site.db.create_queue("shop", &Settings::new("text")).await.expect("created");
    let sessions =
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    for path in ["/queues/shop/messages", "/queues/shop/dead", "/doctor", "/metrics", "/"] {
        let (before, mut pages, mut most) = (site.number(sessions).await, JoinSet::new(), 0);
        let address = site.address;
        for _ in 0..80 {
            pages.spawn(async move { get(address, path).await.status });
        }
        let mut statuses = Vec::new();
        while !pages.is_empty() {
            most = most.max(site.number(sessions).await);
            while let Some(status) = pages.try_join_next() {
                statuses.push(status.expect("no panic"));
            }
        }
        assert!(statuses.contains(&200) && statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
        assert!(most <= before.max(8) + 12, "{path}: {most} sessions, {before} before");
    }
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_end_with_the_session() {
    let site = with_ada().await;
    let cookie = log_in(&site).await;
    let mut stream = TcpStream::connect(site.address).await.expect("connected");
    let request =
        format!("GET /live HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncookie: {cookie}\r\n\r\n", site.address);
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut part = [0; 4096];
    assert!(stream.read(&mut part).await.expect("read") > 0);
    let page = send(site.address, "GET", "/", &[("cookie", &cookie)], "").await;
    let out = form(&[("csrf", &page.csrf())]);
    assert_eq!(send(site.address, "POST", "/logout", &[("cookie", &cookie)], &out).await.status, 303);
    let mut rest = Vec::new();
    tokio::time::timeout(SOON, stream.read_to_end(&mut rest)).await.expect("it ends").expect("read");
    site.end().await;
}

/// Connects from another address of this machine, requests a public file, and keeps the connection
/// open.
async fn stranger(site: &Site, from: u8) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 0, from], 0))).expect("bound");
    let mut stream = socket.connect(site.address).await.expect("connected");
    let request = format!("GET /assets/style.css HTTP/1.1\r\nhost: {}\r\n\r\n", site.address);
    stream.write_all(request.as_bytes()).await.expect("sent");
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_who_stay_connected_keep_no_visitor_out() {
    let site = with_ada().await;
    let mut held = Vec::new();
    for from in 2..12 {
        for _ in 0..6 {
            held.push(stranger(&site, from).await);
        }
    }
    for _ in 0..3 {
        let cookie = tokio::time::timeout(SOON, log_in(&site)).await.expect("a place");
        let cookie = [("cookie", cookie.as_str())];
        let page = send(site.address, "GET", "/", &cookie, "");
        let page = tokio::time::timeout(SOON, page).await.expect("a place");
        assert_eq!(page.status, 200);
    }
    drop(held);
    site.end().await;
}
