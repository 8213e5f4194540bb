//! Logins over streams that the caller has opened.

use futures_util::join;
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    time::timeout,
};
use trunkline::postgres::compat::{Config, NoTls};

use crate::fixture::SOON;

#[tokio::test]
async fn raw_stream_is_not_used_if_the_settings_require_encryption() {
    let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = server.local_addr().expect("bound");
    // This file looks like the socket of a server, which is the default host.
    let socket = format!("/tmp/.s.PGSQL.{}", address.port());
    for place in ["host=127.0.0.1".to_owned(), format!("port={}", address.port())] {
        std::fs::write(&socket, "").expect("written");
        let stream = TcpStream::connect(address).await.expect("connected");
        let config: Config = format!("{place} user=me password=secret sslmode=require").parse().expect("settings");
        let refused = timeout(SOON, config.connect_raw(stream, NoTls));
        let taken = async {
            let mut sent = Vec::new();
            server.accept().await.expect("connected").0.read_to_end(&mut sent).await.expect("closed");
            sent
        };
        let (refused, sent) = join!(refused, timeout(SOON, taken));
        std::fs::remove_file(&socket).expect("removed");
        let error = refused.expect("at once").map(drop).expect_err("not encrypted").to_string();
        assert!(error.contains("encryption") && sent.expect("closed").is_empty(), "{error}");
    }
}
