//! A view of a client that sends several statements before it waits for their replies.

use std::{
    marker::PhantomData,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use super::{
    client::Client,
    failure::Error,
    query::{self, Params},
    row::Row,
    session::ClientSession,
    statement::{Statement, ToStatement},
};
use crate::postgres::{
    transaction::sent::Sent,
    wire::{Group, Reply},
};

impl Client {
    /// Returns a view whose methods collect statements instead of waiting for each reply.
    #[must_use]
    pub fn pipelined(&self) -> Pipelined<'_> {
        Pipelined::new(self)
    }
}

/// A view of a [`Client`] or of a [`Transaction`](super::Transaction). Its methods have the same
/// names and arguments, but they only collect the statement and return a handle.
///
/// The collected statements are sent together, in one round trip, when a handle is awaited or when
/// [`Pipelined::finish`] is called. They run in one transaction. If a statement fails, none of them
/// takes effect, and all of their handles and `finish` return the error. If the view is dropped,
/// statements that have not been sent are discarded, and their handles return an error.
///
/// A method waits only if the text of its statement must first be prepared.
#[derive(Debug)]
pub struct Pipelined<'a> {
    client: &'a Client,
    gathered: ViewGroup,
}

/// The collected statements of a view. Discards those that were not sent when the view is dropped,
/// even if a handle waits for them, because the view's transaction may end next.
#[derive(Debug, Default)]
struct ViewGroup(Arc<Gathered>);

impl Drop for ViewGroup {
    fn drop(&mut self) {
        let mut gathered = self.0.lock();
        gathered.group = Group::new();
        gathered.statements.clear();
    }
}

#[derive(Debug, Default)]
struct Gathered(Mutex<OpenGroup>);

#[derive(Debug, Default)]
struct OpenGroup {
    group: Group,
    reply: Arc<Sent>,
    /// The statements of the group that are closed when they are dropped. If that was before the
    /// group is sent, the server could not run them.
    statements: Vec<Statement>,
    sent: Vec<Arc<Sent>>,
}

impl Gathered {
    fn lock(&self) -> MutexGuard<'_, OpenGroup> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flush(&self, client: &ClientSession) {
        let mut gathered = self.lock();
        if gathered.group.is_empty() {
            return;
        }
        let (group, reply) = (std::mem::take(&mut gathered.group), std::mem::take(&mut gathered.reply));
        reply.set(client.connection.send(group));
        gathered.sent.push(reply);
        gathered.statements.clear();
    }
}

impl<'a> Pipelined<'a> {
    pub(super) fn new(client: &'a Client) -> Self {
        Self { client, gathered: ViewGroup::default() }
    }

    /// Adds a statement that returns rows.
    ///
    /// # Errors
    /// An error if the server refuses to prepare the text, if the parameters do not fit, or if the
    /// connection broke.
    pub async fn query<T: ?Sized + ToStatement>(
        &self,
        statement: &T,
        params: Params<'_>,
    ) -> Result<Answer<Vec<Row>>, Error> {
        self.gathered(statement, params, |statement, reply, place| Ok(query::read(statement, reply, place))).await
    }

    /// Adds a statement that returns exactly one row.
    ///
    /// # Errors
    /// The errors of [`Pipelined::query`].
    pub async fn query_one<T: ?Sized + ToStatement>(
        &self,
        statement: &T,
        params: Params<'_>,
    ) -> Result<Answer<Row>, Error> {
        let read = |statement: &Statement, reply: &Reply, place| {
            query::at_most_one(query::read(statement, reply, place))?.ok_or_else(Error::row_count)
        };
        self.gathered(statement, params, read).await
    }

    /// Adds a statement that returns at most one row.
    ///
    /// # Errors
    /// The errors of [`Pipelined::query`].
    pub async fn query_opt<T: ?Sized + ToStatement>(
        &self,
        statement: &T,
        params: Params<'_>,
    ) -> Result<Answer<Option<Row>>, Error> {
        let read =
            |statement: &Statement, reply: &Reply, place| query::at_most_one(query::read(statement, reply, place));
        self.gathered(statement, params, read).await
    }

    /// Adds a statement. The handle returns the number of affected rows.
    ///
    /// # Errors
    /// The errors of [`Pipelined::query`].
    pub async fn execute<T: ?Sized + ToStatement>(
        &self,
        statement: &T,
        params: Params<'_>,
    ) -> Result<Answer<u64>, Error> {
        self.gathered(statement, params, |_, reply, place| Ok(reply.affected(place))).await
    }

    /// Sends the collected statements, and waits for all replies.
    ///
    /// # Errors
    /// The first error of a statement, or an error if the connection broke.
    pub async fn finish(&self) -> Result<(), Error> {
        self.client.inner.connection.room().await;
        self.gathered.0.flush(&self.client.inner);
        let sent = std::mem::take(&mut self.gathered.0.lock().sent);
        let mut first = Ok(());
        for reply in sent {
            let reply = reply.answer().await;
            if let Err(failure) = &*reply {
                self.client.inner.connection.forget_outdated(failure);
                first = first.and(Err(failure.into()));
            }
        }
        first
    }

    async fn gathered<T: ?Sized + ToStatement, R>(
        &self,
        statement: &T,
        params: Params<'_>,
        read: fn(&Statement, &Reply, usize) -> Result<R, Error>,
    ) -> Result<Answer<R>, Error> {
        let statement = self.client.inner.statement(statement.form()).await?;
        let mut gathered = self.gathered.0.lock();
        let place = gathered.group.len();
        query::push(&mut gathered.group, &statement, params)?;
        if !statement.is_kept() && gathered.statements.last().is_none_or(|last| !last.is_same(&statement)) {
            gathered.statements.push(statement.clone());
        }
        let (client, gathered, reply) = (self.client.inner.clone(), self.gathered.0.clone(), gathered.reply.clone());
        Ok(Answer { client, gathered, reply, statement, place, waiting: None, read, shape: PhantomData })
    }
}

/// A handle for the reply to a statement of a [`Pipelined`] view. It may be awaited or dropped.
pub struct Answer<R> {
    client: Arc<ClientSession>,
    gathered: Arc<Gathered>,
    reply: Arc<Sent>,
    statement: Statement,
    place: usize,
    waiting: Option<usize>,
    read: fn(&Statement, &Reply, usize) -> Result<R, Error>,
    shape: PhantomData<fn() -> R>,
}

impl<R> Future for Answer<R> {
    type Output = Result<R, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if !this.reply.is_sent() {
            this.gathered.flush(&this.client);
        }
        if !this.reply.is_sent() {
            return Poll::Ready(Err(Error::other("the statement was not sent before its pipelined view was dropped")));
        }
        let reply = ready!(this.reply.poll(&mut this.waiting, context));
        Poll::Ready(match &*reply {
            Ok(reply) => (this.read)(&this.statement, reply, this.place),
            Err(failure) => {
                this.client.connection.forget_outdated(failure);
                Err(failure.into())
            }
        })
    }
}

impl<R> std::fmt::Debug for Answer<R> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Answer").field("statement", &self.statement).finish_non_exhaustive()
    }
}
