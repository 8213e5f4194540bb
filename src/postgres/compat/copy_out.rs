//! Copies of data out of the database.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::Stream;

use super::{
    client::Client,
    failure::Error,
    messages::ReplyMessages,
    query,
    session::ClientSession,
    statement::{ToStatement, sealed::Form},
};
use crate::postgres::wire::ReplyMode;

impl Client {
    /// Runs `copy … to stdout`, and returns the data as a stream.
    ///
    /// # Errors
    /// The errors of [`Client::prepare`]. Also an error if the statement is not a `copy … to
    /// stdout`.
    pub async fn copy_out<T: ?Sized + ToStatement>(&self, statement: &T) -> Result<CopyOutStream, Error> {
        copy_out(&self.inner, statement.form()).await
    }
}

/// A stream of the data of a copy. If the stream is dropped, the remaining data are skipped.
pub struct CopyOutStream(ReplyMessages);

pub async fn copy_out(client: &Arc<ClientSession>, form: Form<'_>) -> Result<CopyOutStream, Error> {
    let statement = client.statement(form).await?;
    let mut group = query::group::<&(dyn postgres_types::ToSql + Sync)>(&statement, &[])?;
    group.mode = ReplyMode::Streamed;
    client.connection.room().await;
    let mut messages = ReplyMessages::new(client.clone(), client.connection.send(group));
    loop {
        match messages.next().await {
            Some(Ok((b'H', _))) => return Ok(CopyOutStream(messages)),
            // skips these messages; after an error message, the loop returns the error
            Some(Ok((b'1' | b'2' | b'n' | b'E' | b'Z', _))) => {}
            Some(Err(error)) => return Err(error),
            Some(Ok(_)) | None => return Err(Error::other("the statement is not a copy to stdout")),
        }
    }
}

impl Stream for CopyOutStream {
    type Item = Result<Bytes, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            match ready!(this.0.poll_next(context)) {
                Some(Ok((b'd', data))) => return Poll::Ready(Some(Ok(data))),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl std::fmt::Debug for CopyOutStream {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("CopyOutStream").finish_non_exhaustive()
    }
}
