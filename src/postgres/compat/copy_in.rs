//! Copies of data into the database.

use std::{
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, BufMut, BytesMut};
use futures_util::Sink;

use super::{
    client::Client,
    failure::Error,
    messages::{ReplyMessages, affected},
    query,
    session::ClientSession,
    statement::{ToStatement, sealed::Form},
};

impl Client {
    /// Runs `copy … from stdin`, and returns a sink for the data.
    ///
    /// # Errors
    /// The errors of [`Client::prepare`]. Also an error if the statement is not a `copy … from
    /// stdin`.
    pub async fn copy_in<T, U>(&self, statement: &T) -> Result<CopyInSink<U>, Error>
    where
        T: ?Sized + ToStatement,
        U: Buf + 'static + Send,
    {
        copy_in(&self.inner, statement.form()).await
    }
}

/// The number of bytes that are collected before they are sent.
const GATHERED: usize = 4 << 10;

type Room = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A sink for the data of a copy. If the sink is dropped before the copy is finished or closed, the
/// copy is aborted.
///
/// Other calls of the client wait until the copy has ended.
pub struct CopyInSink<T> {
    messages: ReplyMessages,
    gathered: BytesMut,
    room: Option<Room>,
    stage: CopyStage,
    shape: PhantomData<fn(T)>,
}

enum CopyStage {
    Open,
    Ending { rows: u64 },
    Ended(u64),
}

/// A guard that aborts the copy if it is dropped before the copy has begun. After that, the guard
/// does nothing, because the open copy may belong to another call.
struct Beginning<'a>(Option<&'a ClientSession>);

impl Beginning<'_> {
    fn abort(&mut self) {
        if let Some(client) = self.0.take() {
            client.connection.end_copy(false);
        }
    }
}

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        self.abort();
    }
}

pub async fn copy_in<T>(client: &Arc<ClientSession>, form: Form<'_>) -> Result<CopyInSink<T>, Error> {
    let statement = client.statement(form).await?;
    let group = query::group::<&(dyn postgres_types::ToSql + Sync)>(&statement, &[])?;
    let incoming = client.connection.begin_copy(group).await?;
    let (mut messages, mut beginning) = (ReplyMessages::new(client.clone(), incoming), Beginning(Some(client)));
    loop {
        match messages.next().await {
            Some(Ok((b'G', _))) => break,
            Some(Ok((b'1' | b'2' | b'n' | b'Z', _))) => {}
            Some(Err(error)) => return Err(error),
            // Ends the copy. The server skips all messages up to the Sync, and then sends the
            // error.
            Some(Ok((b'E', _))) => beginning.abort(),
            Some(Ok(_)) | None => return Err(Error::other("the statement is not a copy from stdin")),
        }
    }
    beginning.0 = None;
    Ok(CopyInSink { messages, gathered: BytesMut::new(), room: None, stage: CopyStage::Open, shape: PhantomData })
}

impl<T> CopyInSink<T> {
    /// Ends the copy, and returns the number of rows.
    ///
    /// # Errors
    /// The server rejects the data, or the connection broke.
    pub async fn finish(mut self: Pin<&mut Self>) -> Result<u64, Error> {
        std::future::poll_fn(|context| self.as_mut().poll_finish(context)).await
    }

    /// Ends the copy like [`CopyInSink::finish`].
    ///
    /// # Errors
    /// The errors of [`CopyInSink::finish`].
    pub fn poll_finish(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<u64, Error>> {
        let this = self.get_mut();
        loop {
            match &mut this.stage {
                CopyStage::Open => {
                    this.send_gathered()?;
                    this.messages.client().connection.end_copy(true);
                    this.stage = CopyStage::Ending { rows: 0 };
                }
                CopyStage::Ending { rows } => match ready!(this.messages.poll_next(context)) {
                    Some(Ok((b'C', tag))) => *rows = affected(&tag),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Poll::Ready(Err(error)),
                    None => this.stage = CopyStage::Ended(*rows),
                },
                CopyStage::Ended(rows) => return Poll::Ready(Ok(*rows)),
            }
        }
    }

    fn send_gathered(&mut self) -> Result<(), Error> {
        if !self.gathered.is_empty() {
            self.messages.client().connection.copy_data(self.gathered.split().freeze())?;
        }
        Ok(())
    }

    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let client = self.messages.client().clone();
        let room = self.room.get_or_insert_with(|| Box::pin(async move { client.connection.copy_room().await }));
        ready!(room.as_mut().poll(context));
        self.room = None;
        Poll::Ready(())
    }
}

impl<T: Buf + 'static + Send> Sink<T> for CopyInSink<T> {
    type Error = Error;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.get_mut().poll_room(context).map(Ok)
    }

    fn start_send(self: Pin<&mut Self>, item: T) -> Result<(), Error> {
        let this = self.get_mut();
        if !matches!(this.stage, CopyStage::Open) {
            return Err(Error::other("the copy has ended"));
        }
        if item.remaining() > GATHERED {
            this.send_gathered()?;
            this.messages.client().connection.copy_data(item)?;
        } else {
            this.gathered.put(item);
            if this.gathered.len() > GATHERED {
                this.send_gathered()?;
            }
        }
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let this = self.get_mut();
        this.send_gathered()?;
        this.poll_room(context).map(Ok)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll_finish(context).map_ok(drop)
    }
}

impl<T> Drop for CopyInSink<T> {
    fn drop(&mut self) {
        if matches!(self.stage, CopyStage::Open) {
            self.messages.client().connection.end_copy(false);
        }
    }
}

impl<T> std::fmt::Debug for CopyInSink<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("CopyInSink").finish_non_exhaustive()
    }
}
