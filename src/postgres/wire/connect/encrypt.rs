//! The negotiation of TLS with a server before the login.

use std::{
    io::{self, ErrorKind},
    sync::Arc,
};

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_rustls::TlsConnector;

use crate::{
    error::{Error, Kind, Result},
    postgres::{
        target::{Target, explained},
        wire::stream::Stream,
    },
};

/// The name of PostgreSQL's protocol. With direct TLS, the client and the server use it to agree on
/// this protocol.
const ALPN: &[u8] = b"postgresql";

/// Encrypts a socket if the connection string requires encryption. Also encrypts it if the
/// connection string prefers encryption and the server supports it.
pub(super) async fn encrypted(mut socket: TcpStream, name: &str, target: &Target) -> Result<Stream> {
    let must = match target.config.get_ssl_mode() {
        SslMode::Disable => return Ok(Stream::Tcp(socket)),
        SslMode::Prefer => false,
        _ => true,
    };
    let direct = target.config.get_ssl_negotiation() == SslNegotiation::Direct;
    if !direct && !agreed(&mut socket).await.map_err(|error| failed(name, &error))? {
        if must {
            return Err(failed(name, &io::Error::new(ErrorKind::Unsupported, "the server does not support it")));
        }
        return Ok(Stream::Tcp(socket));
    }
    let mut rustls = target.tls.config();
    if direct {
        Arc::make_mut(&mut rustls).alpn_protocols = vec![ALPN.to_vec()];
    }
    let server = ServerName::try_from(name.to_owned())
        .map_err(|error| failed(name, &io::Error::new(ErrorKind::InvalidInput, error)))?;
    let stream = TlsConnector::from(rustls).connect(server, socket).await.map_err(|error| failed(name, &error))?;
    if direct && stream.get_ref().1.alpn_protocol() != Some(ALPN) {
        return Err(failed(
            name,
            &io::Error::new(ErrorKind::InvalidData, "the server does not speak Postgres' protocol"),
        ));
    }
    Ok(Stream::Tls(Box::new(stream)))
}

/// Asks the server whether it supports TLS. Only an exact `N` counts as a no. Otherwise an attacker
/// who can inject bytes could force an unencrypted connection.
async fn agreed(socket: &mut TcpStream) -> io::Result<bool> {
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    socket.write_all(&request).await?;
    let mut said = [0; 2];
    let length = socket.read(&mut said).await?;
    match &said[..length] {
        b"S" => Ok(true),
        b"N" => Ok(false),
        // Refuses extra bytes, which would later look as if the trusted server had sent them
        // (CVE-2021-23222).
        [b'S' | b'N', _] => Err(io::Error::new(ErrorKind::InvalidData, "there were bytes before the handshake")),
        // A server that cannot start a process replies in this way.
        [b'E', ..] => Err(io::Error::new(ErrorKind::ConnectionRefused, "the server answered with an error")),
        [] => Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")),
        _ => Err(io::Error::new(ErrorKind::InvalidData, "the server is not PostgreSQL")),
    }
}

fn failed(name: &str, error: &io::Error) -> Error {
    let text = explained(error).unwrap_or_else(|| error.to_string());
    Error::new(Kind::Unreachable(io::Error::new(error.kind(), format!("TLS with {name}: {text}"))))
}
