//! Functions that run a text with several statements, and return the rows as text.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::Stream;

use super::{
    client::Client,
    failure::Error,
    messages::affected,
    row::{SimpleColumn, SimpleQueryMessage, SimpleQueryRow},
    session::ClientSession,
};
use crate::postgres::wire::{Group, Reply, Signature, frames};

pub async fn messages(client: &ClientSession, text: &str) -> Result<Vec<SimpleQueryMessage>, Error> {
    client.connection.room().await;
    let reply = run(client, text).await?;
    let (mut messages, mut columns) = (Vec::new(), Arc::from([]));
    for chunk in reply.chunks() {
        let mut rest = chunk.clone();
        for (kind, body) in frames(chunk) {
            let whole = rest.split_to(body.len() + 5);
            match kind {
                b'T' => {
                    let described = Signature::read(&[whole])?;
                    columns = described.columns.into_iter().map(|(name, _)| SimpleColumn(name)).collect();
                    messages.push(SimpleQueryMessage::RowDescription(columns.clone()));
                }
                b'D' => {
                    let values = values(body).ok_or_else(|| Error::other("a row ends early"))?;
                    messages.push(SimpleQueryMessage::Row(SimpleQueryRow { columns: columns.clone(), values }));
                }
                b'C' => messages.push(SimpleQueryMessage::CommandComplete(affected(body))),
                b'I' => messages.push(SimpleQueryMessage::CommandComplete(0)),
                _ => {}
            }
        }
    }
    Ok(messages)
}

/// Runs statements. The first poll sends them, also if there is no room: those of a transaction are
/// short, and decide what its drop has to undo. If a statement deallocates all prepared statements,
/// clears the client's cache.
pub(super) async fn run(client: &ClientSession, text: &str) -> Result<Reply, Error> {
    let mut group = Group::new();
    group.script(text)?;
    let outcome = client.connection.send(group).await;
    // Forgets the statements even after an error: a rollback does not restore deallocated
    // statements.
    let may_deallocate = || ["deallocate", "discard"].iter().any(|word| text.to_ascii_lowercase().contains(word));
    if outcome.is_err() && may_deallocate() {
        client.connection.forget_all();
    }
    let reply = outcome?;
    let deallocates = |tag: &[u8]| [&b"DISCARD ALL\0"[..], b"DEALLOCATE ALL\0"].contains(&tag);
    if reply.chunks().iter().flat_map(|chunk| frames(chunk)).any(|(kind, body)| kind == b'C' && deallocates(body)) {
        client.connection.forget_all();
    }
    Ok(reply)
}

impl Client {
    /// Runs statements in the simple protocol, and returns their rows as text.
    ///
    /// # Errors
    /// The errors of [`Client::prepare`].
    pub async fn simple_query(&self, query: &str) -> Result<Vec<SimpleQueryMessage>, Error> {
        messages(&self.inner, query).await
    }

    /// Runs statements like [`Client::simple_query`], and returns a stream.
    ///
    /// # Errors
    /// The errors of [`Client::prepare`].
    pub async fn simple_query_raw(&self, query: &str) -> Result<SimpleQueryStream, Error> {
        Ok(SimpleQueryStream::of(self.simple_query(query).await?))
    }

    /// Runs statements in the simple protocol, and discards their rows.
    ///
    /// # Errors
    /// The errors of [`Client::prepare`].
    pub async fn batch_execute(&self, query: &str) -> Result<(), Error> {
        self.inner.connection.room().await;
        run(&self.inner, query).await.map(drop)
    }

    /// Checks that the server replies.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn check_connection(&self) -> Result<(), Error> {
        self.batch_execute("").await
    }
}

/// Reads the values of a row: the number of values, and a length and a text for each value.
fn values(body: &[u8]) -> Option<Vec<Option<String>>> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut value = || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        rest = after;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else { return Some(None) };
        let (text, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(Some(String::from_utf8_lossy(text).into_owned()))
    };
    (0..u16::from_be_bytes(*count)).map(|_| value()).collect()
}

/// A stream of the reply to a text with several statements.
#[derive(Debug)]
pub struct SimpleQueryStream(std::vec::IntoIter<SimpleQueryMessage>);

impl SimpleQueryStream {
    pub(super) fn of(messages: Vec<SimpleQueryMessage>) -> Self {
        Self(messages.into_iter())
    }
}

impl Stream for SimpleQueryStream {
    type Item = Result<SimpleQueryMessage, Error>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.get_mut().0.next().map(Ok))
    }
}
