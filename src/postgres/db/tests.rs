//! Tests that the listener logs in like the other connections of its connection string.

use std::time::Duration;

use tokio::time::timeout;

use super::{Db, Listener};
use crate::postgres::{
    target::Target,
    wire::{
        proxy,
        server::{server, unused_port},
    },
};

/// The maximum wait for any single event.
const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn listener_logs_in_where_other_connections_do() {
    let server = server().await;
    let direct = proxy::direct(server.socket(), &[b"postgresql"]).await;
    let (port, down, folder) = (server.port, unused_port(), server.socket_dir().display());
    for words in [
        format!("host=localhost port={port} user=scram password=pencil sslmode=require channel_binding=require"),
        format!("host=localhost port={direct} user=trunkline sslmode=require sslnegotiation=direct"),
        format!("host={folder},localhost port={port},{down} user=trunkline sslmode=require"),
    ] {
        let db = Db::connect_with(&format!("{words} dbname=postgres"), |_| None).await.expect(&words);
        assert!(db.notifications_arrive().await.expect(&words), "{words}");
    }
}

#[tokio::test]
async fn listener_detects_a_man_in_the_middle() {
    let port = proxy::in_the_middle(server().await.port).await;
    let url = format!("host=localhost port={port} user=scram password=pencil dbname=postgres sslmode=require");
    let listener = Listener::new(Target::parse_in(&url, |_| None).expect("parsed"));
    let mut subscription = listener.subscribe("channel", None);
    timeout(SOON, subscription.heard.changed()).await.expect("it connects").expect("it runs");
    let refused = listener.why_deaf().expect_err("the certificate is not the server's").to_string();
    assert!(refused.contains("channel binding check failed"), "{refused}");
}
