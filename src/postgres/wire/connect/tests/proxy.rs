//! A proxy between a client and a server that offers TLS with its own certificate.

use std::{path::PathBuf, sync::Arc};

use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream, UnixStream},
};
use tokio_rustls::TlsAcceptor;

use super::super::encrypt::encrypted;
use crate::postgres::target::Target;

fn acceptor(alpn: &[&[u8]]) -> TlsAcceptor {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate is made");
    let key = PrivateKeyDer::try_from(signed.signing_key.serialize_der()).expect("its key is one");
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions are known")
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)
        .expect("the key fits");
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

/// Starts a proxy that decrypts the client's bytes and encrypts them again for the server.
pub async fn in_the_middle(server: u16) -> u16 {
    let (listener, port) = listen().await;
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await?;
        client.read_exact(&mut [0; 8]).await?;
        client.write_all(b"S").await?;
        let mut client = acceptor(&[]).accept(client).await?;
        let target = Target::parse_in("host=localhost sslmode=require", |_| None).expect("parsed");
        let server = TcpStream::connect(("127.0.0.1", server)).await?;
        let mut server = encrypted(server, "localhost", &target).await.expect("the server has TLS");
        copy_bidirectional(&mut client, &mut server).await
    });
    port
}

/// Starts a proxy that expects TLS from the first byte, as PostgreSQL 17 allows. It refuses clients
/// that name none of its protocols, if it has any. Returns its port.
pub async fn direct(socket: PathBuf, alpn: &'static [&'static [u8]]) -> u16 {
    let (listener, port) = listen().await;
    tokio::spawn(async move {
        let acceptor = acceptor(alpn);
        while let Ok((client, _)) = listener.accept().await {
            let (acceptor, socket) = (acceptor.clone(), socket.clone());
            tokio::spawn(async move {
                let mut client = acceptor.accept(client).await?;
                if client.get_ref().1.alpn_protocol().is_none() && !alpn.is_empty() {
                    return Ok((0, 0));
                }
                copy_bidirectional(&mut client, &mut UnixStream::connect(socket).await?).await
            });
        }
    });
    port
}
