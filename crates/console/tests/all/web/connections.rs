//! A console without a proxy in front of it: TLS and slow visitors.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer},
};
use trunkline_console::web::{Access, Certificate, Role, User, hash};

use super::Site;
use crate::browser::{form, get, over, send};

const SOON: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

/// Writes a new certificate for this machine, and its key.
fn renew(folder: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    fs::write(folder.join("key.pem"), signing_key.serialize_pem()).expect("written");
    fs::write(folder.join("cert.pem"), cert.pem()).expect("written");
    cert.der().clone()
}

/// Connects as a client that trusts only this certificate.
async fn connect(site: &Site, trusted: &CertificateDer<'static>) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(tokio_rustls::rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(site.address).await?;
    TlsConnector::from(Arc::new(config)).connect("localhost".try_into().expect("a name"), stream).await
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_alone_serves_pages_with_secure_cookies_and_renewed_certificates() {
    let folder = std::env::temp_dir().join(format!("trunkline-console-tls-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let first = renew(&folder);
    let certificate = Certificate::of_files(folder.join("cert.pem"), folder.join("key.pem")).expect("read");
    let password = "correct horse battery";
    let ada = User { name: "ada".to_owned(), role: Role::Operator, hash: hash(password).expect("hashed") };
    let site = Site::with(|console| console.access(Access::Passwords(vec![ada])).certificate(certificate)).await;

    let stream = connect(&site, &first).await.expect("trusted");
    let body = form(&[("name", "ada"), ("password", password)]);
    let answer = over(stream, site.address, "POST", "/login", &[], &body).await;
    let cookie = answer.header("set-cookie").expect("a cookie").to_owned();
    assert!(answer.status == 303 && cookie.contains("; Secure"), "{answer:?}");
    let cookie = cookie.split(';').next().unwrap_or_default();
    let stream = connect(&site, &first).await.expect("trusted");
    assert_eq!(over(stream, site.address, "GET", "/", &[("cookie", cookie)], "").await.status, 200);

    let mut plain = TcpStream::connect(site.address).await.expect("connected");
    plain.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("sent");
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said).await;
    assert!(!said.starts_with(b"HTTP"), "nothing in the clear: {said:?}");

    let second = renew(&folder);
    let deadline = Instant::now() + SOON;
    while connect(&site, &second).await.is_err() {
        assert!(Instant::now() < deadline, "the new certificate is not served");
        crate::until_next_poll().await;
    }
    assert!(connect(&site, &first).await.is_err(), "the old one is");
    fs::write(folder.join("cert.pem"), "half a certi").expect("written");
    fs::write(folder.join("key.pem"), "half a k").expect("written");
    assert!(Certificate::of_files(folder.join("cert.pem"), folder.join("key.pem")).is_err());
    assert!(connect(&site, &second).await.is_ok(), "what makes no sense changes nothing");
    site.end().await;
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_key_of_another_certificate_is_refused_with_both_names() {
    let folder = std::env::temp_dir().join(format!("trunkline-console-keys-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    renew(&folder);
    fs::rename(folder.join("key.pem"), folder.join("other.pem")).expect("moved");
    renew(&folder);
    let refused = Certificate::of_files(folder.join("cert.pem"), folder.join("other.pem")).expect_err("they differ");
    assert!(refused.to_string().contains("other.pem") && refused.to_string().contains("cert.pem"), "{refused}");
    let refused = Certificate::of_files(folder.join("none.pem"), folder.join("key.pem")).expect_err("nothing there");
    assert!(refused.to_string().contains("none.pem"), "{refused}");
    fs::remove_dir_all(&folder).expect("removed");
}

/// Reads until the console closes the connection.
async fn told(stream: &mut TcpStream) -> String {
    let mut said = Vec::new();
    tokio::time::timeout(SOON, stream.read_to_end(&mut said)).await.expect("it is ended").expect("read");
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_sender_is_left() {
    let site = Site::with(|console| console.patience(Duration::from_secs(3))).await;
    let status = get(site.address, "/schedules").await.status;
    assert_eq!(status, 200);
    // The last visitor leaves the connection open: the request is done, and no other one follows.
    let mut visitors = Vec::new();
    for (sent, answer) in [
        ("", ""),
        ("GET / HTTP/1.1\r\nhost: localhost\r\nx-slow: ", ""),
        ("POST /act HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\nverb=", "408"),
        ("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n", " 200 "),
    ] {
        let mut stream = TcpStream::connect(site.address).await.expect("connected");
        stream.write_all(sent.as_bytes()).await.expect("sent");
        visitors.push((stream, sent, answer));
    }
    for (stream, sent, answer) in &mut visitors {
        let said = told(stream).await;
        assert!(said.contains(*answer) && (*answer == " 200 " || !said.contains(" 200 ")), "{sent:?}: {said}");
    }
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_limit_wait_for_one_to_end() {
    let site = Site::with(|console| console.connections(2)).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(site.address).await.expect("connected");
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("sent");
        let mut part = [0; 512];
        assert!(stream.read(&mut part).await.expect("read") > 0);
        held.push(stream);
    }
    let mut third = Box::pin(get(site.address, "/healthz"));
    assert!(tokio::time::timeout(SHORT, &mut third).await.is_err(), "it waits");
    held.pop();
    let answer = tokio::time::timeout(SOON, third).await.expect("it comes");
    assert_eq!(answer.status, 200);
    site.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_have_a_largest_size() {
    let site = Site::new().await;
    let nine = format!("payload={}", "x".repeat(9 * 1024 * 1024));
    for (path, body, status) in [("/act/ask", &nine, 413), ("/login", &nine[..17 * 1024].to_owned(), 413)] {
        let length = body.len().to_string();
        let mut stream = TcpStream::connect(site.address).await.expect("connected");
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\nconnection: close\r\ncontent-type: application/x-www-form-urlencoded\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("sent");
        let _ = stream.write_all(body.as_bytes()).await; // the request may be refused before its end
        let mut part = vec![0; 512];
        let count = stream.read(&mut part).await.unwrap_or(0);
        let said = String::from_utf8_lossy(&part[..count]).into_owned();
        // Accepts an empty response: a visitor who is still sending when the connection ends may be
        // unable to read the reason.
        assert!(said.is_empty() || said.contains(&status.to_string()), "{path}: {said:?}");
    }
    assert_eq!(send(site.address, "GET", "/", &[], "").await.status, 200);
    site.end().await;
}
