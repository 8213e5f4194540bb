//! Connecting, and the task that drives a connection.

use std::{
    collections::HashMap,
    io,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_postgres::{Socket, tls::NoTlsStream};
use tracing::info;

use super::{
    cancel::CancelToken,
    client::Client,
    failure::{DbError, Error},
    session::ClientSession,
};
use crate::{
    error::{Kind, server::ServerError},
    postgres::{
        target::Target,
        wire::{self, Asides, CancelKey, Connected, Stream, Use, accept, notification, texts},
    },
};

/// A stream that the caller opens: a TCP socket or a Unix socket.
pub trait RawStream {
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "only this crate implements the trait")]
    fn stream(self) -> std::io::Result<Stream>;
}

impl RawStream for TcpStream {
    #[expect(private_interfaces, reason = "only this crate implements the trait")]
    fn stream(self) -> std::io::Result<Stream> {
        Ok(Stream::Tcp(self))
    }
}

#[cfg(unix)]
impl RawStream for UnixStream {
    #[expect(private_interfaces, reason = "only this crate implements the trait")]
    fn stream(self) -> std::io::Result<Stream> {
        Stream::of_local(self)
    }
}

pub(super) async fn open<S, T>(target: &Target) -> Result<(Client, Connection<S, T>), Error> {
    let connected = wire::connect(target).await.map_err(Error::connect)?;
    Ok(started(connected, target))
}

pub(super) async fn open_raw<S: RawStream, T>(stream: S, target: &Target) -> Result<(Client, Connection<S, T>), Error> {
    let stream = stream.stream().map_err(|error| Error::connect(crate::Error::new(Kind::Unreachable(error))))?;
    let connected = accept(stream, target).await.map_err(Error::connect)?;
    Ok(started(connected, target))
}

fn started<S, T>(connected: Connected, target: &Target) -> (Client, Connection<S, T>) {
    let cancel = CancelToken { target: target.clone(), cancel: CancelKey::of(&connected) };
    let parameters = connected.parameters.clone();
    let notices = connected.notices.clone();
    let (connection, driver) = wire::Connection::of(connected, target, Use::Alone);
    let asides = connection.keep_asides(notices);
    let client = Client { inner: Arc::new(ClientSession::new(connection, cancel)) };
    (client, Connection { driver: Some(Box::pin(driver)), end: None, asides, parameters, shape: PhantomData })
}

/// The task of a connection, which sends and receives data for its [`Client`]. The task ends with
/// an error, or after the client was dropped and all replies have arrived.
#[must_use = "a connection does nothing unless it is polled"]
pub struct Connection<S = Socket, T = NoTlsStream> {
    driver: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send>>>,
    end: Option<Result<(), Error>>,
    asides: Asides,
    parameters: HashMap<String, String>,
    shape: PhantomData<fn() -> (S, T)>,
}

impl<S, T> Connection<S, T> {
    /// Returns a parameter that the server has reported, such as `server_version`.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Drives the connection until a notice or a notification arrives. Returns `None` at the end.
    pub fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>> {
        if let Some(driver) = &mut self.driver
            && let Poll::Ready(ended) = driver.as_mut().poll(context)
        {
            self.driver = None;
            let last = || self.asides.last_error().map_or_else(Error::closed, Error::server);
            self.end = Some(
                ended.map_err(|error| if self.asides.last_error().is_some() { last() } else { Error::other(error) }),
            );
        }
        while let Some((kind, body)) = self.asides.next() {
            match message(kind, &body) {
                Some(message) => return Poll::Ready(Some(Ok(message))),
                None => self.parameters.extend(texts(&body)),
            }
        }
        match self.driver {
            Some(_) => Poll::Pending,
            None => Poll::Ready(self.end.take().and_then(Result::err).map(Err)),
        }
    }
}

impl<S, T> Future for Connection<S, T> {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match ready!(this.poll_message(context)) {
                Some(Ok(AsyncMessage::Notice(notice))) => info!("{notice}"),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl<S, T> std::fmt::Debug for Connection<S, T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// A message from the server that is not part of a reply.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AsyncMessage {
    /// A notice, for example a warning.
    Notice(DbError),
    /// A notification on a channel that the session listens on.
    Notification(Notification),
}

/// A notification that another session or this session sent.
#[derive(Debug, Clone)]
pub struct Notification {
    process_id: i32,
    channel: String,
    payload: String,
}

impl Notification {
    /// Returns the process id of the backend that sent the notification.
    #[must_use]
    pub fn process_id(&self) -> i32 {
        self.process_id
    }

    /// Returns the name of the channel.
    #[must_use]
    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// Returns the text of the notification.
    #[must_use]
    pub fn payload(&self) -> &str {
        &self.payload
    }
}

fn message(kind: u8, body: &Bytes) -> Option<AsyncMessage> {
    match kind {
        b'N' => Some(AsyncMessage::Notice(DbError(Arc::new(ServerError::parse(body))))),
        b'A' => {
            let (process_id, channel, payload) = notification(body)?;
            Some(AsyncMessage::Notification(Notification { process_id, channel, payload }))
        }
        _ => None,
    }
}
