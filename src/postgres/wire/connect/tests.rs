//! Tests of connecting: hosts, TLS, authentication, and their errors.

mod fake;
pub(crate) mod proxy;
pub(crate) mod server;

use std::time::Duration;

use tokio_postgres::error::SqlState;
use trunkline_embedded::DelayProxy;

use self::server::{server, unused_port};
use super::{Connected, connect};
use crate::{
    error::Result,
    postgres::{target::Target, wire::stream::Stream},
};

async fn to(url: &str) -> Result<Connected> {
    connect(&Target::parse_in(url, |_| None)?).await
}

/// Returns the kind of stream. If connecting fails, returns the error code and the error.
async fn outcome(url: &str) -> String {
    match to(url).await {
        Ok(Connected { stream: Stream::Tcp(_), .. }) => "plain".to_owned(),
        Ok(Connected { stream: Stream::Unix(_), .. }) => "socket".to_owned(),
        Ok(Connected { stream: Stream::Tls(_), .. }) => "encrypted".to_owned(),
        Err(error) => {
            assert!(error.is_closed(), "{error}");
            format!("{} {error}", error.sqlstate().map_or("", SqlState::code))
        }
    }
}

#[tokio::test]
async fn a_socket_leads_to_a_session() {
    let server = server().await;
    let connected =
        to(&format!("{} options='-c statement_timeout=1234'", server.on_socket())).await.expect("connected");
    assert!(matches!(connected.stream, Stream::Unix(_)));
    assert!(connected.read.is_empty());
    for (name, value) in [("client_encoding", "UTF8"), ("application_name", "trunkline"), ("is_superuser", "on")] {
        assert_eq!(connected.parameters.get(name).map(String::as_str), Some(value), "{name}");
    }
    let seen = "select usename::text, datname::text from pg_stat_activity where pid = $1";
    let row = server.observer().await.query_one(seen, &[&connected.process_id]).await.expect("the process is there");
    assert_eq!((row.get(0), row.get(1)), ("trunkline", "postgres"));
}

#[tokio::test]
async fn each_proof_of_a_password_is_given() {
    let port = server().await.port;
    for role in ["md5", "scram", "clear"] {
        let url = format!("host=127.0.0.1 port={port} user={role} dbname=postgres sslmode=disable");
        assert_eq!(outcome(&format!("{url} password=pencil")).await, "plain", "{role}");
        let wrong = outcome(&format!("{url} password=pen")).await;
        let wanted =
            format!("28P01 cannot connect to the database: password authentication failed for user \"{role}\"");
        assert_eq!(wrong, wanted);
        let none = outcome(&url).await;
        assert!(
            none.ends_with("asks for a password, and neither the connection string nor the environment has one"),
            "{none}"
        );
    }
}

#[tokio::test]
async fn a_password_is_bound_to_the_certificate() {
    let port = server().await.port;
    for (role, options, said) in [
        ("scram", "sslmode=require", "encrypted"),
        ("scram", "sslmode=require channel_binding=require", "encrypted"),
        ("scram", "sslmode=require channel_binding=disable", "encrypted"),
        ("scram", "sslmode=disable channel_binding=require", "channel_binding=require needs TLS"),
        ("md5", "sslmode=require channel_binding=require", "the server asks for an MD5 hash"),
        ("clear", "sslmode=require channel_binding=require", "asks for a password in clear text"),
        ("encrypted", "sslmode=require channel_binding=require", "the server asks for nothing"),
    ] {
        let url = format!("host=localhost port={port} user={role} password=pencil dbname=postgres {options}");
        let found = outcome(&url).await;
        assert!(found.contains(said), "{role} {options}: {found}");
    }
}

#[tokio::test]
async fn man_in_the_middle_is_detected() {
    let port = server().await.port;
    let url = "host=localhost user=scram password=pencil dbname=postgres sslmode=require";
    let bound = outcome(&format!("{url} port={}", proxy::in_the_middle(port).await)).await;
    assert!(bound.contains("channel binding check failed"), "{bound}");
    let unbound = outcome(&format!("{url} channel_binding=disable port={}", proxy::in_the_middle(port).await)).await;
    assert_eq!(unbound, "encrypted");
}

#[tokio::test]
async fn sslmode_means_what_libpq_says() {
    let server = server().await;
    let (own, port) = (server.root(), server.port);
    let own = own.display();
    let other = std::env::temp_dir().join(format!("trunkline-other-{}.pem", std::process::id()));
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate is made");
    std::fs::write(&other, signed.cert.pem()).expect("written");
    for (host, role, options, said) in [
        ("localhost", "trunkline", "sslmode=disable".to_owned(), "plain"),
        ("localhost", "trunkline", String::new(), "encrypted"),
        ("localhost", "trunkline", "sslmode=prefer".to_owned(), "encrypted"),
        ("127.0.0.1", "trunkline", "sslmode=require".to_owned(), "encrypted"),
        ("localhost", "trunkline", format!("sslmode=verify-full sslrootcert={own}"), "encrypted"),
        ("127.0.0.1", "trunkline", format!("sslmode=verify-full sslrootcert={own}"), "certificate"),
        ("localhost hostaddr=127.0.0.1", "trunkline", format!("sslmode=verify-full sslrootcert={own}"), "encrypted"),
        ("localhost", "trunkline", format!("sslmode=verify-full sslrootcert={}", other.display()), "certificate"),
        ("localhost", "encrypted", "sslmode=disable".to_owned(), "28000"),
        ("localhost", "encrypted", "sslmode=require".to_owned(), "encrypted"),
        ("localhost", "trunkline", "sslmode=prefer sslnegotiation=direct".to_owned(), "needs sslmode=require"),
    ] {
        let url = format!("host={host} port={port} user={role} dbname=postgres {options}");
        let found = match said {
            "needs sslmode=require" => to(&url).await.expect_err(said).to_string(),
            _ => outcome(&url).await,
        };
        assert!(found.contains(said), "{host} {role} {options}: {found}");
    }
    std::fs::remove_file(other).expect("removed");
}

#[tokio::test]
async fn server_without_tls_gets_plain_text_unless_tls_is_required() {
    // PostgreSQL does not support TLS on its Unix socket, to which this proxy connects.
    let proxy = DelayProxy::start("127.0.0.1:0", server().await.socket().as_path(), Duration::ZERO).expect("started");
    let url = format!("host=127.0.0.1 port={} user=trunkline dbname=postgres", proxy.addr().port());
    assert_eq!(outcome(&format!("{url} sslmode=prefer")).await, "plain");
    let refused = outcome(&format!("{url} sslmode=require")).await;
    assert!(refused.ends_with("TLS with 127.0.0.1: the server does not support it"), "{refused}");
}

#[tokio::test]
async fn tls_may_begin_with_the_first_byte() {
    let url = "host=localhost user=trunkline dbname=postgres sslmode=require sslnegotiation=direct";
    let port = proxy::direct(server().await.socket(), &[b"postgresql"]).await;
    assert_eq!(outcome(&format!("{url} port={port}")).await, "encrypted");
    let port = proxy::direct(server().await.socket(), &[]).await;
    let refused = outcome(&format!("{url} port={port}")).await;
    assert!(refused.ends_with("does not speak Postgres' protocol"), "{refused}");
}

#[tokio::test]
async fn the_next_host_is_tried_where_one_is_down() {
    let (down, up) = (unused_port(), server().await.port);
    let words = "user=trunkline dbname=postgres sslmode=disable";
    assert_eq!(outcome(&format!("host=127.0.0.1,127.0.0.1 port={down},{up} {words}")).await, "plain");
    let random = "load_balance_hosts=random";
    assert_eq!(outcome(&format!("host=127.0.0.1,127.0.0.1 port={down},{up} {random} {words}")).await, "plain");
    let refused = outcome(&format!("host=127.0.0.1 port={down} {words}")).await;
    assert!(refused.contains(&format!("127.0.0.1 port {down}: ")), "{refused}");
    let refused = outcome(&format!("host=/nowhere port={down} {words}")).await;
    assert!(refused.contains(&format!("/nowhere/.s.PGSQL.{down}: ")), "{refused}");
}

#[tokio::test]
async fn server_is_chosen_by_whether_it_takes_writes() {
    let port = server().await.port;
    for (role, wanted, said) in [
        ("reader", "read-write", "does not allow writes"),
        ("reader", "read-only", "plain"),
        ("trunkline", "read-write", "plain"),
        ("trunkline", "read-only", "is not read only"),
    ] {
        let url = format!("host=127.0.0.1 port={port} user={role} dbname=postgres sslmode=disable");
        let found = outcome(&format!("{url} target_session_attrs={wanted}")).await;
        assert!(found.ends_with(said), "{role} {wanted}: {found}");
    }
}

#[tokio::test]
async fn a_missing_database_is_told() {
    let url = server().await.on_socket().replace("dbname=postgres", "dbname=nowhere");
    let found = outcome(&url).await;
    assert_eq!(found, "3D000 cannot connect to the database: database \"nowhere\" does not exist");
}
