//! Connections are encrypted if the connection string requests it; `sslmode` has the same meaning
//! as in libpq.
//!
//! The private cluster listens only on a socket, where PostgreSQL does not support TLS. So a proxy
//! provides TLS here.

use std::{path::PathBuf, sync::Arc};

use futures_util::future::join_all;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, UnixStream},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
};
use trunkline::{Db, Settings, Wait, postgres::Statement};

use crate::fixture::{cluster, database, through};

/// A TLS port for the cluster, and the file with the certificate to trust. The certificate is valid
/// only for `localhost`.
struct Proxy {
    port: u16,
    root: PathBuf,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.root); // the temporary folder of the run is removed anyway
    }
}

async fn proxy() -> Proxy {
    let params = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("a name");
    proxy_of(params).await
}

async fn proxy_of(params: rcgen::CertificateParams) -> Proxy {
    let signing_key = rcgen::KeyPair::generate().expect("a key is made");
    let cert = params.self_signed(&signing_key).expect("a certificate is made");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("its key is one");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions are known")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("the key fits");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("bound").port();
    let socket = cluster().socket_dir().join(format!(".s.PGSQL.{}", cluster().port()));
    tokio::spawn(async move {
        while let Ok((mut plain, _)) = listener.accept().await {
            let (acceptor, socket) = (acceptor.clone(), socket.clone());
            tokio::spawn(async move {
                let mut request = [0; 8];
                plain.read_exact(&mut request).await?;
                if request != [0, 0, 0, 8, 4, 210, 22, 47] {
                    return Ok(()); // not a request for TLS, so the proxy hangs up
                }
                plain.write_all(b"S").await?;
                let mut client = acceptor.accept(plain).await?;
                copy_bidirectional(&mut client, &mut UnixStream::connect(socket).await?).await.map(drop)
            });
        }
    });
    let root = std::env::temp_dir().join(format!("trunkline-tls-{}-{port}.pem", std::process::id()));
    std::fs::write(&root, cert.pem()).expect("the certificate is written");
    Proxy { port, root }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_travel_encrypted() {
    let proxy = proxy().await;
    let url = database().await;
    let value_of =
        |key: &str| url.split_whitespace().find_map(|word| word.strip_prefix(key)).expect("it is in the address");
    let (user, name) = (value_of("user="), value_of("dbname="));
    let root = proxy.root.display();
    for options in ["sslmode=require".to_owned(), format!("sslmode=verify-full&sslrootcert={root}")] {
        let url = format!("postgres://{user}@localhost:{}/{name}?{options}", proxy.port);
        let db = Db::connect(&url).await.unwrap_or_else(|error| panic!("{options}: {error}"));
        db.create_queue("q", &Settings::new("text")).await.expect("created");
        let queue = db.queue::<String>("q").await.expect("opened");
        let mut consumer = queue.consumer(Wait::Notify);
        let waiter = tokio::spawn(async move { consumer.take(1).await });
        queue.enqueue("secret".to_owned()).await.expect("enqueued");
        assert_eq!(waiter.await.expect("no panic").expect("taken")[0].payload, "secret");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_prove_its_name_is_refused() {
    let (proxy, other) = (proxy().await, self::proxy().await);
    let words = format!("port={} user=trunkline dbname=postgres", proxy.port);
    for (host, options, said) in [
        ("localhost", format!("sslmode=verify-full sslrootcert={}", other.root.display()), "certificate"),
        ("127.0.0.1", format!("sslmode=verify-full sslrootcert={}", proxy.root.display()), "certificate"),
        ("localhost", "sslmode=verify-full sslrootcert=/nowhere.pem".to_owned(), "/nowhere.pem"),
        ("localhost", "sslmode=maybe".to_owned(), "disable, allow, prefer, require, verify-ca or verify-full"),
        ("localhost", "sslmode=disable".to_owned(), "cannot connect"),
    ] {
        let error = Db::connect(&format!("host={host} {words} {options}")).await.expect_err(&options).to_string();
        assert!(error.contains(said), "{host} {options}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_travel_encrypted_to_a_server_that_proved_its_name() {
    static ECHO: Statement<(i32, &str), (i32, String)> = Statement::new("select $1::int4, $2::text");
    let (proxy, url) = (proxy().await, database().await);
    let words = through(&url, &format!("host=localhost port={}", proxy.port));
    let db = Db::connect(&format!("{words} sslmode=verify-full sslrootcert={}", proxy.root.display())).await;
    let db = db.expect("connected");
    // Sends many texts at the same time, each larger than a TLS record.
    let word = "secret".repeat(20_000);
    let answers = join_all((0..50).map(|n| db.run(&ECHO, (n, &word)))).await;
    for (n, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.expect("echoed"), (n as i32, word.clone()));
    }
    let transaction = db.begin().await.expect("begun");
    let echoes = transaction.run_many(&ECHO, (0..50).map(|n| (n, "secret"))).await.expect("echoed");
    assert!(echoes.into_iter().enumerate().all(|(n, echo)| echo == (n as i32, "secret".into())));
    transaction.commit().await.expect("committed");
}

/// Returns a certificate as in PostgreSQL's manual: it is self-signed, and has a common name but no
/// other name.
fn of_the_manual() -> rcgen::CertificateParams {
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, "localhost");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_trusted_as_libpq_trusts_it() {
    let (plain, manual) = (proxy().await, proxy_of(of_the_manual()).await);
    let mut expired = of_the_manual();
    expired.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let expired = proxy_of(expired).await;
    for (proxy, host, mode, is_trusted) in [
        (&plain, "localhost", "verify-full", Ok(())),
        (&plain, "127.0.0.1", "verify-full", Err("sslmode=verify-ca trusts its authority")),
        (&plain, "127.0.0.1", "verify-ca", Ok(())),
        (&plain, "127.0.0.1", "require", Ok(())),
        (&manual, "localhost", "verify-full", Ok(())),
        (&manual, "localhost", "verify-ca", Ok(())),
        (&manual, "localhost", "require", Ok(())),
        (&manual, "127.0.0.1", "verify-full", Err("sslmode=verify-ca trusts its authority")),
        (&manual, "127.0.0.1", "verify-ca", Ok(())),
        (&expired, "localhost", "verify-ca", Err("has expired")),
    ] {
        let (port, root) = (proxy.port, proxy.root.display());
        let words = format!("host={host} port={port} user=trunkline dbname=postgres sslmode={mode} sslrootcert={root}");
        match (Db::connect(&words).await.map_err(|error| error.to_string()), is_trusted) {
            (Ok(_), Ok(())) => {}
            (Err(error), Err(why)) => assert!(error.contains(why), "{words}: {error}"),
            (outcome, _) => panic!("{words}: {outcome:?}"),
        }
        // A certificate from another authority is not trusted in any mode.
        let other = if std::ptr::eq(proxy, &raw const manual) { &plain } else { &manual };
        let words = words.replace(&root.to_string(), &other.root.display().to_string());
        let error = Db::connect(&words).await.expect_err("another's").to_string();
        let why = ["is not signed by a trusted authority", "cannot be trusted", "has expired"];
        assert!(why.iter().any(|why| error.contains(why)), "{words}: {error}");
    }
}
