//! The login, which turns a stream into a session.

mod binding;
mod exchange;
mod proof;

use std::{collections::HashMap, io::ErrorKind::ConnectionRefused};

use bytes::{Bytes, BytesMut};
use postgres_protocol::message::frontend;
use tokio_postgres::{Config, config::TargetSessionAttrs};

use self::{
    exchange::{Exchange, failed, unexpected},
    proof::prove,
};
use super::{frame::texts, stream::Stream};
use crate::error::{Error, Result};

#[derive(Debug)]
pub(crate) struct Connected {
    pub stream: Stream,
    /// The bytes that the server sent after its first `ReadyForQuery`.
    pub read: BytesMut,
    pub parameters: HashMap<String, String>,
    /// The process id of the backend, as in `pg_stat_activity` and in the server's log.
    pub process_id: i32,
    /// The secret key for cancel requests.
    pub key: Bytes,
    /// The first notices from the server.
    pub notices: Vec<Bytes>,
}

pub(super) async fn login(stream: Stream, config: &Config) -> Result<Connected> {
    let mut exchange = Exchange::new(stream);
    let user = match config.get_user() {
        Some(user) => user.to_owned(),
        None => whoami::username().map_err(|error| {
            Error::invalid(format!(
                "no user was named, and the operating system's user is unknown: {error}; add user=NAME"
            ))
        })?,
    };
    let named = [
        ("user", Some(&*user)),
        ("database", config.get_dbname()),
        ("client_encoding", Some("UTF8")),
        ("application_name", config.get_application_name()),
        ("options", config.get_options()),
    ];
    let named = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
    frontend::startup_message(named, &mut exchange.write)
        .map_err(|error| Error::invalid(format!("the connection string cannot be sent: {error}")))?;
    exchange.send().await?;
    prove(&mut exchange, config, &user).await?;

    let (mut parameters, mut process_id, mut key) = (HashMap::new(), 0, Bytes::new());
    loop {
        match exchange.next().await? {
            (b'S', body) => parameters.extend(texts(&body)),
            (b'K', mut body) => {
                process_id = process(&body)?;
                key = body.split_off(4);
            }
            (b'Z', _) => break,
            (kind, _) => return Err(unexpected(kind)),
        }
    }
    suits(&mut exchange, config.get_target_session_attrs()).await?;
    let Exchange { stream, read, notices, .. } = exchange;
    Ok(Connected { stream, read, parameters, process_id, key, notices })
}

/// Returns the process id of the backend. In the message, the key for cancel requests follows it.
fn process(body: &[u8]) -> Result<i32> {
    body.first_chunk().map(|number| i32::from_be_bytes(*number)).ok_or_else(|| unexpected(b'K'))
}

/// Checks that the server matches `target_session_attrs`.
async fn suits(exchange: &mut Exchange, wanted: TargetSessionAttrs) -> Result<()> {
    if wanted == TargetSessionAttrs::Any {
        return Ok(());
    }
    frontend::query("show transaction_read_only", &mut exchange.write).map_err(|_| unexpected(b'Q'))?;
    exchange.send().await?;
    let mut row = Bytes::new();
    loop {
        match exchange.next().await? {
            (b'D', body) => row = body,
            (b'Z', _) => break,
            _ => {}
        }
    }
    // Returns a temporary error, because another server accepts writes after a failover.
    match (wanted, row.ends_with(b"\x02on")) {
        (TargetSessionAttrs::ReadWrite, true) => Err(failed(ConnectionRefused, "the database does not allow writes")),
        (TargetSessionAttrs::ReadOnly, false) => Err(failed(ConnectionRefused, "the database is not read only")),
        _ => Ok(()),
    }
}
