//! Functions that run statements with parameters.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_util::Stream;
use postgres_types::{BorrowToSql, FromSqlOwned, ToSql, Type};

use super::{
    failure::Error,
    messages::{ReplyMessages, affected as count},
    row::Row,
    session::ClientSession,
    statement::{Statement, sealed::Form},
};
use crate::postgres::wire::{self, Group, Prepared, Reply, ReplyMode, Signature, WireError};

pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];
/// The parameters of a statement, with their types.
pub(super) type TypedParams<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// Creates a group with one statement.
pub(super) fn group<P: BorrowToSql>(statement: &Statement, params: &[P]) -> Result<Group, Error> {
    let mut group = Group::new();
    push(&mut group, statement, params)?;
    Ok(group)
}

pub(super) fn push<P: BorrowToSql>(group: &mut Group, statement: &Statement, params: &[P]) -> Result<(), Error> {
    let expected = statement.params().len();
    if params.len() != expected {
        return Err(Error::parameters(params.len(), expected));
    }
    group.push_borrowed(statement.prepared(), params)?;
    Ok(())
}

/// Runs a statement. If it was given as text and its table has changed, prepares it again.
async fn run(client: &Arc<ClientSession>, form: Form<'_>, params: Params<'_>) -> Result<(Statement, Reply), Error> {
    let statement = client.statement(form).await?;
    let group_of = |statement: &Statement| group(statement, params);
    let failure = match send(client, group_of(&statement)?).await {
        Ok(reply) => return Ok((statement, reply)),
        Err(failure) => failure,
    };
    if matches!(form, Form::Prepared(_)) || !statement.is_kept() || !failure.is_outdated() {
        return Err(failure.into());
    }
    let again = async {
        let statement = client.statement(form).await?;
        let reply = send(client, group_of(&statement).map_err(|_| failure.clone())?).await?;
        Ok((statement, reply))
    };
    again.await.map_err(|second: WireError| if second.only_follows() { failure.into() } else { second.into() })
}

/// Sends a group. If a statement fails because its table or type has changed, its next use prepares
/// it again.
pub(super) async fn send(client: &ClientSession, group: Group) -> Result<Reply, WireError> {
    client.connection.room().await;
    client.connection.send(group).await.inspect_err(|failure| client.connection.forget_outdated(failure))
}

pub(super) fn read(statement: &Statement, reply: &Reply, place: usize) -> Vec<Row> {
    let rows = reply.rows(place, &statement.prepared().columns);
    let changed = reply.changed(place).map(|columns| statement.with_columns(columns.clone()));
    let statement = changed.as_ref().unwrap_or(statement);
    rows.into_iter().map(|values| Row { statement: statement.clone(), values }).collect()
}

pub async fn rows(client: &Arc<ClientSession>, form: Form<'_>, params: Params<'_>) -> Result<Vec<Row>, Error> {
    let (statement, reply) = run(client, form, params).await?;
    Ok(read(&statement, &reply, 0))
}

pub async fn affected(client: &Arc<ClientSession>, form: Form<'_>, params: Params<'_>) -> Result<u64, Error> {
    Ok(run(client, form, params).await?.1.affected(0))
}

pub async fn affected_raw<P: BorrowToSql>(
    client: &Arc<ClientSession>,
    form: Form<'_>,
    params: impl IntoIterator<Item = P>,
) -> Result<u64, Error> {
    let statement = client.statement(form).await?;
    let group = group(&statement, &params.into_iter().collect::<Vec<P>>())?;
    Ok(send(client, group).await?.affected(0))
}

pub fn at_most_one(rows: Vec<Row>) -> Result<Option<Row>, Error> {
    match rows.len() {
        0 | 1 => Ok(rows.into_iter().next()),
        _ => Err(Error::row_count()),
    }
}

pub fn scalar<R: FromSqlOwned>(row: &Row) -> Result<R, Error> {
    if row.len() != 1 {
        return Err(Error::column_count());
    }
    row.try_get(0)
}

pub async fn stream<P: BorrowToSql>(
    client: &Arc<ClientSession>,
    form: Form<'_>,
    params: impl IntoIterator<Item = P>,
) -> Result<RowStream, Error> {
    let statement = client.statement(form).await?;
    let mut group = group(&statement, &params.into_iter().collect::<Vec<P>>())?;
    group.mode = ReplyMode::Streamed;
    client.connection.room().await;
    let messages = ReplyMessages::new(client.clone(), client.connection.send(group));
    Ok(RowStream { statement, messages, affected: None })
}

async fn run_typed<P: BorrowToSql>(
    client: &Arc<ClientSession>,
    text: &str,
    params: impl IntoIterator<Item = (P, Type)>,
) -> Result<Reply, Error> {
    let mut group = Group::new();
    {
        // The values are dropped before the await, so they need not be `Send`.
        let (values, types): (Vec<P>, Vec<Type>) = params.into_iter().unzip();
        group.push_described(&text.into(), &types, &values)?;
    }
    Ok(send(client, group).await?)
}

async fn described(client: &Arc<ClientSession>, text: &str, reply: &Reply) -> Result<Statement, Error> {
    let columns = client.connection.typed(&Signature::read(reply.chunks())?).await?;
    Ok(Statement::kept(Prepared { text: text.into(), named: None, columns: Arc::new(columns) }))
}

pub async fn typed<P: BorrowToSql>(
    client: &Arc<ClientSession>,
    text: &str,
    params: impl IntoIterator<Item = (P, Type)>,
) -> Result<Vec<Row>, Error> {
    let reply = run_typed(client, text, params).await?;
    Ok(read(&described(client, text, &reply).await?, &reply, 0))
}

pub async fn typed_affected<P: BorrowToSql>(
    client: &Arc<ClientSession>,
    text: &str,
    params: impl IntoIterator<Item = (P, Type)>,
) -> Result<u64, Error> {
    Ok(run_typed(client, text, params).await?.affected(0))
}

pub async fn typed_stream<P: BorrowToSql>(
    client: &Arc<ClientSession>,
    text: &str,
    params: impl IntoIterator<Item = (P, Type)>,
) -> Result<RowStream, Error> {
    let reply = run_typed(client, text, params).await?;
    let statement = described(client, text, &reply).await?;
    let messages = ReplyMessages::arrived(client.clone(), reply.chunks());
    Ok(RowStream { statement, messages, affected: None })
}

/// A stream of the rows of a statement. If the stream is dropped, the remaining rows are skipped.
pub struct RowStream {
    statement: Statement,
    messages: ReplyMessages,
    affected: Option<u64>,
}

impl RowStream {
    pub(super) fn new(statement: Statement, messages: ReplyMessages) -> Self {
        Self { statement, messages, affected: None }
    }

    /// Returns the number of affected rows. Returns `None` before the stream has ended.
    #[must_use]
    pub fn rows_affected(&self) -> Option<u64> {
        self.affected
    }
}

impl Stream for RowStream {
    type Item = Result<Row, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            match ready!(this.messages.poll_next(context)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok((b'D', body))) => {
                    if let Some(columns) = this.messages.changed() {
                        this.statement = this.statement.with_columns(columns);
                    }
                    let values = wire::Row::arrived(this.statement.prepared().columns.clone(), body);
                    return Poll::Ready(Some(Ok(Row { statement: this.statement.clone(), values })));
                }
                Some(Ok((b'C', tag))) => this.affected = Some(count(&tag)),
                Some(Ok(_)) => {}
            }
        }
    }
}

impl std::fmt::Debug for RowStream {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RowStream").finish_non_exhaustive()
    }
}
